// Models with random weights on a GPU: against the CPU's f32 arithmetic on the same weights (which
// the golden tests hold against transformers), and against themselves to the bit.
#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <vector>

#include "tests/models/tiny_models.h"
#include "tileweave/models/decode_loop.h"
#include "tileweave/models/presets.h"

namespace tileweave {
namespace {

/// ||a - b||_2 / ||b||_2 of a row of logits. Every operand is rounded to bf16 once, by at most
/// 2^-9 of each element; some twenty such roundings on the way through three layers add up like
/// independent errors to below 1 %, twice which is allowed.
constexpr double kTolerance = 0.02;
constexpr std::int64_t kTokens = 320;

struct TestShape {
  const char* name;
  ModelConfig config;
};

ModelConfig config_of(Architecture architecture, std::int64_t hidden, std::int64_t inner,
                      std::int64_t heads, std::int64_t kv_heads, std::int64_t head_dim) {
  ModelConfig config;
  config.architecture = architecture;
  config.hidden_size = hidden;
  config.intermediate_size = inner;
  config.num_heads = heads;
  config.num_kv_heads = kv_heads;
  config.head_dim = head_dim;
  config.num_layers = 3;
  config.vocab_size = 517;
  config.max_position_embeddings = 4096;
  return config;
}

std::vector<TestShape> shapes() {
  std::vector<TestShape> all = {
      {"llama, head_dim 64, tied", config_of(Architecture::kLlama, 192, 200, 4, 2, 64)},
      {"llama, head_dim 80, biases, odd sizes", config_of(Architecture::kLlama, 104, 67, 5, 5, 80)},
      {"qwen3, head_dim 128", config_of(Architecture::kQwen3, 256, 320, 4, 1, 128)},
      {"qwen3, head_dim 96", config_of(Architecture::kQwen3, 160, 176, 6, 3, 96)}};
  all[0].config.tie_word_embeddings = true;
  all[1].config.attention_bias = all[1].config.mlp_bias = true;
  return all;
}

std::vector<std::int32_t> random_ids(std::size_t count, std::uint64_t seed) {
  std::vector<std::int32_t> ids;
  for (std::size_t i = 0; i < count; ++i) {
    seed = seed * 6364136223846793005U + 1442695040888963407U;
    ids.push_back(static_cast<std::int32_t>((seed >> 33) % 517));
  }
  return ids;
}

struct Model {
  std::unique_ptr<Device> device;
  std::unique_ptr<Decoder> decoder;
};

Model open_model(const std::string& device, const ModelConfig& config, Granularity granularity,
                 DecoderOptions options = {}) {
  options.granularity = granularity;
  options.max_tokens = kTokens;
  options.cache_tokens = 17 * (kTokens + 16);
  Model model{.device = open_device(device), .decoder = nullptr};
  const WeightForm form = weight_form(numeric_form(device), granularity, options.wide_products);
  model.decoder = std::make_unique<Decoder>(
      *model.device, config, random_weights(*model.device, config, 5, form), options);
  return model;
}

constexpr Granularity kGranularities[] = {Granularity::kOps, Granularity::kStages};

TEST(GpuModel, PrefillAndDecodeGiveTheLogitsOfTheCpu) {
  const std::vector<std::int32_t> ids = random_ids(75, 1);
  for (const TestShape& shape : shapes()) {
    const auto vocabulary = static_cast<std::size_t>(shape.config.vocab_size);
    const Model cpu = open_model("cpu", shape.config, Granularity::kOps);
    const std::vector<float> expected = logits_of(*cpu.decoder, ids, 75);
    for (const Granularity granularity : kGranularities) {
      const Model gpu = open_model("cuda", shape.config, granularity);
      for (const std::size_t chunk : {75, 64, 7, 1}) {
        SCOPED_TRACE(testing::Message() << shape.name << ", " << name_of(granularity) << ", "
                                        << chunk << " tokens a step");
        const std::vector<float> logits = logits_of(*gpu.decoder, ids, chunk);
        EXPECT_LE(largest_row_error(logits, expected, vocabulary), kTolerance);
      }
    }
  }
}

/// How many elements of two vectors are not the same number, as text.
std::string differences(const std::vector<float>& a, const std::vector<float>& b) {
  std::size_t count = 0;
  for (std::size_t i = 0; i < a.size(); ++i) count += a[i] == b[i] ? 0 : 1;
  return std::to_string(count) + " of " + std::to_string(a.size()) + " logits differ";
}

TEST(GpuModel, APromptHasTheSameLogitsHoweverItIsCut) {
  const std::vector<std::int32_t> ids = random_ids(300, 6);
  for (const TestShape& shape : shapes()) {
    const auto vocabulary = static_cast<std::size_t>(shape.config.vocab_size);
    for (const Granularity granularity : kGranularities) {
      const Model gpu = open_model("cuda", shape.config, granularity);
      const std::vector<float> few = logits_of(*gpu.decoder, ids, 64);
      // 512: all rows in one step; 100: products of padded tiles.
      for (const std::size_t chunk : {512, 100, 7}) {
        SCOPED_TRACE(testing::Message() << shape.name << ", " << name_of(granularity) << ", "
                                        << chunk << " tokens a step instead of 64");
        const std::vector<float> logits = logits_of(*gpu.decoder, ids, chunk);
        // Twice the tolerance: both are off, each its own way.
        EXPECT_LE(largest_row_error(logits, few, vocabulary), 2 * kTolerance);
        // In `stages` norms of many rows are kernels of their own, which round behind the factor
        // of a row, where a product of few rows rounds before it.
        const bool same_kernels_norm = granularity == Granularity::kOps || chunk <= 64;
        EXPECT_TRUE(logits == few || !same_kernels_norm) << differences(logits, few);
      }
    }
  }
}

TEST(GpuModel, WideProductsOfTheVendorGiveTheLogitsOfTheCpu) {
  const std::vector<std::int32_t> ids = random_ids(300, 9);
  for (const TestShape& shape : shapes()) {
    const auto vocabulary = static_cast<std::size_t>(shape.config.vocab_size);
    const Model cpu = open_model("cpu", shape.config, Granularity::kOps);
    const std::vector<float> expected = logits_of(*cpu.decoder, ids, 75);
    for (const Granularity granularity : kGranularities) {
      Model gpu;
      try {
        gpu =
            open_model("cuda", shape.config, granularity, {.wide_products = WideProducts::kVendor});
        logits_of(*gpu.decoder, std::span(ids).first(70), 70);
      } catch (const Error& error) {
        const std::string said = error.what();
        if (said.find("load cuBLASLt") == std::string::npos) throw;  // no library, or no header
        GTEST_SKIP() << "skipped: wide products of the vendor (" << said << ")";
      }
      const Plan& plan =
          gpu.decoder->program({.rows = row_bucket_of(300), .sequences = 1, .outputs = 1}).plan();
      EXPECT_EQ(std::count_if(plan.nodes().begin(), plan.nodes().end(),
                              [](const NodeSpec& node) { return node.kernel == "vendor_gemm"; }),
                4 * shape.config.num_layers);
      for (const std::size_t chunk : {300, 100, 7}) {
        SCOPED_TRACE(testing::Message() << shape.name << ", " << name_of(granularity) << ", "
                                        << chunk << " tokens a step");
        EXPECT_LE(largest_row_error(logits_of(*gpu.decoder, ids, chunk), expected, vocabulary),
                  kTolerance);
      }
      const std::vector<float> once = logits_of(*gpu.decoder, ids, 300);
      EXPECT_TRUE(logits_of(*gpu.decoder, ids, 300) == once) << shape.name;
    }
  }
}

TEST(GpuModel, APromptHasTheBitsOfSerialForEveryEdgeKindAndNumberOfStreams) {
  const std::vector<std::int32_t> ids = random_ids(300, 7);
  for (const std::size_t which : {1, 2}) {
    const TestShape shape = shapes()[which];
    for (const Granularity granularity : kGranularities) {
      const auto run = [&](const RunOptions& options, const StepKnobs& knobs) {
        const Model gpu =
            open_model("cuda", shape.config, granularity, {.run = options, .knobs = knobs});
        return logits_of(*gpu.decoder, ids, 512);
      };
      const std::vector<float> serial = run({.mode = Mode::kSerial}, StepKnobs{});
      for (const EdgePolicy& edge :
           {EdgePolicy{.kind = EdgeKind::kFull}, EdgePolicy{.kind = EdgeKind::kProgrammatic},
            EdgePolicy{.kind = EdgeKind::kTile},
            EdgePolicy{.kind = EdgeKind::kTile, .start = StartRule::kWaitAll},
            EdgePolicy{.kind = EdgeKind::kTile, .start = StartRule::kLaunchCompletion}}) {
        for (const std::int32_t streams : {1, 2, 3}) {
          const std::vector<float> overlap = run({.launch_order = LaunchOrder::kTrusted},
                                                 with_edges({.num_streams = streams}, edge));
          EXPECT_TRUE(overlap == serial) << shape.name << ", " << name_of(granularity) << ", "
                                         << name_of(edge.kind) << " " << name_of(edge.start) << ", "
                                         << streams << " streams: " << differences(overlap, serial);
        }
      }
    }
  }
}

/// Sequences of different lengths, each prefilled alone.
std::vector<KvCache::SequenceId> prefilled(Decoder& decoder, std::size_t count) {
  std::vector<KvCache::SequenceId> sequences;
  for (std::size_t i = 0; i < count; ++i) {
    sequences.push_back(decoder.add_sequence());
    prefill(decoder, sequences.back(), random_ids(5 + 7 * i, 100 + i));
  }
  return sequences;
}

TEST(GpuModel, ASequenceHasTheSameBitsAloneAndInEveryBatch) {
  for (const TestShape& shape : shapes()) {
    for (const Granularity granularity : kGranularities) {
      SCOPED_TRACE(testing::Message() << shape.name << ", " << name_of(granularity));
      const Model gpu = open_model("cuda", shape.config, granularity);
      Decoder& decoder = *gpu.decoder;
      const std::vector<KvCache::SequenceId> sequences = prefilled(decoder, 16);
      const std::vector<std::int32_t> ids = random_ids(16, 3);
      const auto vocabulary = static_cast<std::size_t>(shape.config.vocab_size);
      const auto logits_of_first = [&](std::size_t first, std::size_t count) {
        StepRequest request{.parts = {}, .head = Head::kLogits};
        for (std::size_t i = first; i < first + count; ++i) {
          request.parts.push_back({sequences[i], std::span(ids).subspan(i, 1)});
        }
        std::vector<float> logits = decoder.step(request).logits;
        for (std::size_t i = first; i < first + count; ++i) {
          decoder.truncate(sequences[i], decoder.length(sequences[i]) - 1);
        }
        return logits;
      };
      const std::vector<float> all = logits_of_first(0, 16);
      for (const std::size_t count : {1, 2, 3, 8}) {
        for (std::size_t first = 0; first + count <= 16; first += 5) {
          const std::vector<float> some = logits_of_first(first, count);
          const std::vector<float> expected(
              all.begin() + static_cast<std::ptrdiff_t>(first * vocabulary),
              all.begin() + static_cast<std::ptrdiff_t>((first + count) * vocabulary));
          EXPECT_TRUE(some == expected) << count << " sequences from " << first;
        }
      }
    }
  }
}

struct LoopResult {
  std::vector<std::int32_t> ids;
  std::vector<std::uint32_t> scores;  // bits of the last step's logits
  friend bool operator==(const LoopResult&, const LoopResult&) = default;
};

LoopResult run_loop(Decoder& decoder, const std::vector<KvCache::SequenceId>& sequences,
                    const RunOptions& run, const std::optional<StepKnobs>& knobs,
                    std::int64_t steps) {
  DecodeLoop loop(
      decoder, {.run = run, .knobs = knobs, .rows = static_cast<std::int64_t>(sequences.size())});
  const std::vector<std::int32_t> ids = random_ids(sequences.size(), 4);
  loop.start(sequences, ids, steps);
  loop.enqueue(steps);
  LoopResult result{.ids = loop.wait(), .scores = {}};
  result.scores = loop.program().read<std::uint32_t>(loop.outputs().scores);
  loop.finish(0);
  return result;
}

TEST(GpuModel, ALoopChoosesTheTokensOfSteps) {
  for (const TestShape& shape : shapes()) {
    for (const Granularity granularity : kGranularities) {
      SCOPED_TRACE(testing::Message() << shape.name << ", " << name_of(granularity));
      const Model gpu = open_model("cuda", shape.config, granularity);
      const std::vector<KvCache::SequenceId> sequences = prefilled(*gpu.decoder, 3);
      const LoopResult loop = run_loop(*gpu.decoder, sequences, {}, std::nullopt, 40);
      std::vector<std::int32_t> next = random_ids(3, 4), all;
      for (int step = 0; step < 40; ++step) {
        next = decode_step(*gpu.decoder, sequences, next);
        all.insert(all.end(), next.begin(), next.end());
      }
      EXPECT_EQ(loop.ids, all);
    }
  }
}

TEST(GpuModel, ALoopOfMoreSequencesThanDecodeProductsTakeChoosesTheTokensOfSteps) {
  const TestShape shape = shapes()[2];
  for (const Granularity granularity : kGranularities) {
    SCOPED_TRACE(name_of(granularity));
    const Model gpu = open_model("cuda", shape.config, granularity);
    std::vector<KvCache::SequenceId> sequences;
    for (std::size_t i = 0; i < 70; ++i) {
      sequences.push_back(gpu.decoder->add_sequence());
      prefill(*gpu.decoder, sequences.back(), random_ids(3 + i % 5, 200 + i));
    }
    const LoopResult loop = run_loop(*gpu.decoder, sequences, {}, std::nullopt, 10);
    std::vector<std::int32_t> next = random_ids(sequences.size(), 4), all;
    for (int step = 0; step < 10; ++step) {
      next = decode_step(*gpu.decoder, sequences, next);
      all.insert(all.end(), next.begin(), next.end());
    }
    EXPECT_EQ(loop.ids, all);
  }
}

TEST(GpuModel, EveryEdgeKindAndNumberOfStreamsGivesTheBitsOfSerial) {
  const struct {
    const char* name;
    EdgePolicy edge;
  } edges[] = {
      {"full", {.kind = EdgeKind::kFull}},
      {"programmatic", {.kind = EdgeKind::kProgrammatic}},
      {"tile, none", {.kind = EdgeKind::kTile, .start = StartRule::kNone}},
      {"tile, wait_all", {.kind = EdgeKind::kTile, .start = StartRule::kWaitAll}},
      {"tile, launch_completion", {.kind = EdgeKind::kTile, .start = StartRule::kLaunchCompletion}},
  };
  for (const std::size_t which : {0, 2}) {
    const TestShape shape = shapes()[which];
    for (const Granularity granularity : kGranularities) {
      const Model gpu = open_model("cuda", shape.config, granularity);
      Decoder& decoder = *gpu.decoder;
      const std::vector<KvCache::SequenceId> sequences = prefilled(decoder, 3);
      const LoopResult serial =
          run_loop(decoder, sequences, {.mode = Mode::kSerial}, StepKnobs{}, 100);
      for (const auto& [name, edge] : edges) {
        for (const std::int32_t streams : {1, 2, 3}) {
          SCOPED_TRACE(testing::Message() << shape.name << ", " << name_of(granularity) << ", "
                                          << name << ", " << streams << " streams");
          const LoopResult overlap =
              run_loop(decoder, sequences, {.launch_order = LaunchOrder::kTrusted},
                       with_edges({.num_streams = streams}, edge), 100);
          EXPECT_EQ(overlap.ids, serial.ids);
          EXPECT_TRUE(overlap.scores == serial.scores) << "the logits of the last step";
        }
      }
    }
  }
}

TEST(GpuModel, DataTilesAndSlicesChangeNoBit) {
  const TestShape shape = shapes()[2];
  for (const Granularity granularity : kGranularities) {
    SCOPED_TRACE(name_of(granularity));
    const Model gpu = open_model("cuda", shape.config, granularity);
    const std::vector<KvCache::SequenceId> sequences = prefilled(*gpu.decoder, 2);
    const LoopResult serial =
        run_loop(*gpu.decoder, sequences, {.mode = Mode::kSerial}, StepKnobs{}, 20);
    StepKnobs knobs = with_edges({.num_streams = 2}, {.kind = EdgeKind::kTile});
    knobs.at(StepOp::kQkv).tile_columns = 128;
    knobs.at(StepOp::kAttention).tile_columns = 128;
    knobs.at(StepOp::kGateUp).tile_columns = 64;
    knobs.at(StepOp::kO).stages = 2;
    knobs.at(StepOp::kHead).strips_per_work = 1;
    knobs.at(StepOp::kAttention).splits = 2;
    EXPECT_TRUE(run_loop(*gpu.decoder, sequences, {}, knobs, 20) == serial);
  }
}

TEST(GpuModel, PortableProductsGiveTheSameBits) {
  for (const TestShape& shape : shapes()) {
    for (const Granularity granularity : kGranularities) {
      SCOPED_TRACE(testing::Message() << shape.name << ", " << name_of(granularity));
      const Model gpu = open_model("cuda", shape.config, granularity);
      const std::vector<KvCache::SequenceId> sequences = prefilled(*gpu.decoder, 2);
      StepKnobs portable;
      portable.products = SkinnyKernel::kPortable;
      EXPECT_TRUE(run_loop(*gpu.decoder, sequences, {}, portable, 10) ==
                  run_loop(*gpu.decoder, sequences, {}, StepKnobs{}, 10));
    }
  }
}

}  // namespace
}  // namespace tileweave
