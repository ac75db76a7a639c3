// Overlap gives the bits of serial over hundreds of steps, whatever delays blocks: every layer's
// keys and values of every step, every token, and the last step's logits.
#include <gtest/gtest.h>

#include <cstring>
#include <string>
#include <vector>

#include "tests/models/disturbance.h"
#include "tileweave/models/decode_loop.h"
#include "tileweave/models/presets.h"

namespace tileweave {
namespace {

constexpr std::int64_t kSteps = 500;
constexpr std::int64_t kPrompt = 11;
constexpr std::int64_t kSequences = 3;
constexpr std::int64_t kTokens = 544;  // of a sequence: whole pages, and more than are needed
constexpr int kPoison = 0xff;          // NaN: what reads a row that was not written shows it

ModelConfig small_model(Architecture architecture, std::int64_t head_dim) {
  ModelConfig config;
  config.architecture = architecture;
  config.hidden_size = 256;
  config.intermediate_size = 320;
  config.num_heads = 4;
  config.num_kv_heads = 2;
  config.head_dim = head_dim;
  config.num_layers = 3;
  config.vocab_size = 517;
  config.max_position_embeddings = 4096;
  return config;
}

std::vector<std::int32_t> some_ids(std::int64_t count, std::int64_t first) {
  std::vector<std::int32_t> ids;
  for (std::int64_t i = 0; i < count; ++i) {
    ids.push_back(static_cast<std::int32_t>((first + i * i * 31) % 517));
  }
  return ids;
}

struct States {
  std::vector<std::int32_t> ids;
  std::vector<std::uint32_t> logits;  // bits
  std::vector<std::byte> cache;       // keys and values of all layers
};

/// A model with its prompts taken in, for one run: the pages that a run gives back would go to the
/// next one in another order, and keys and values are compared where they lie.
class Steps {
 public:
  Steps(const ModelConfig& config, Granularity granularity)
      : device_(open_device("cuda")),
        decoder_(*device_, config, random_weights(*device_, config, 5, granularity),
                 {.granularity = granularity,
                  .max_tokens = kTokens,
                  .cache_tokens = kSequences * kTokens}) {
    device_->fill(decoder_.cache().keys(0), kPoison, bytes_of(decoder_.cache().shape()));
    for (std::int64_t s = 0; s < kSequences; ++s) {
      sequences_.push_back(decoder_.add_sequence());
      prefill(decoder_, sequences_.back(), some_ids(kPrompt + s, 3 + s));
    }
  }

  /// `seed`: of the disturbance; 0: none.
  States run(const RunOptions& options, const StepKnobs& knobs, std::uint64_t seed) {
    DecodeLoop loop(decoder_, {.run = options, .knobs = knobs, .rows = kSequences});
    States states{.ids = {},
                  .logits = {},
                  .cache = std::vector<std::byte>(bytes_of(decoder_.cache().shape()))};
    {
      std::unique_ptr<Disturbance> disturbance;
      if (seed != 0) disturbance = std::make_unique<Disturbance>(seed);
      loop.start(sequences_, some_ids(kSequences, 7), kSteps);
      loop.enqueue(kSteps);
      states.ids = loop.wait();
      if (disturbance) disturbances_ += disturbance->kernels();
    }
    states.logits = loop.program().read<std::uint32_t>(loop.outputs().scores);
    device_->download(states.cache.data(), decoder_.cache().keys(0), states.cache.size());
    loop.finish(0);
    return states;
  }

  std::int64_t disturbances() const { return disturbances_; }

 private:
  std::unique_ptr<Device> device_;
  Decoder decoder_;
  std::vector<KvCache::SequenceId> sequences_;
  std::int64_t disturbances_ = 0;
};

/// First byte that differs, in words; empty where none does.
std::string first_difference(const std::vector<std::byte>& a, const std::vector<std::byte>& b) {
  for (std::size_t i = 0; i < a.size(); ++i) {
    if (a[i] != b[i]) return "byte " + std::to_string(i) + " of " + std::to_string(a.size());
  }
  return {};
}

constexpr struct {
  const char* name;
  EdgePolicy edge;
} kEdges[] = {
    {"full", {.kind = EdgeKind::kFull}},
    {"programmatic", {.kind = EdgeKind::kProgrammatic}},
    {"tile, none", {.kind = EdgeKind::kTile, .start = StartRule::kNone}},
    {"tile, wait_all", {.kind = EdgeKind::kTile, .start = StartRule::kWaitAll}},
    {"tile, launch_completion", {.kind = EdgeKind::kTile, .start = StartRule::kLaunchCompletion}},
    {"tile, wait_first", {.kind = EdgeKind::kTile, .start = StartRule::kWaitFirst}},
};

TEST(GpuDelays, FiveHundredStepsHaveTheBitsOfSerialWhateverIsLate) {
  std::uint64_t seed = 20;
  for (const ModelConfig& config :
       {small_model(Architecture::kLlama, 64), small_model(Architecture::kQwen3, 128)}) {
    for (const Granularity granularity : {Granularity::kOps, Granularity::kStages}) {
      const States serial = Steps(config, granularity).run({.mode = Mode::kSerial}, {}, 0);
      std::int64_t disturbances = 0;
      for (const auto& [name, edge] : kEdges) {
        for (const std::int32_t streams : {1, 2, 3}) {
          ++seed;
          SCOPED_TRACE(testing::Message()
                       << "head_dim " << config.head_dim << ", " << name_of(granularity) << ", "
                       << name << ", " << streams << " streams, seed " << seed);
          Steps steps(config, granularity);
          const States overlap = steps.run({.launch_order = LaunchOrder::kTrusted},
                                           with_edges({.num_streams = streams}, edge), seed);
          disturbances += steps.disturbances();
          EXPECT_EQ(overlap.ids, serial.ids);
          EXPECT_TRUE(overlap.logits == serial.logits) << "the last step's logits";
          EXPECT_EQ(first_difference(overlap.cache, serial.cache), "") << "keys and values";
        }
      }
      EXPECT_GE(disturbances, 100) << "too few to disturb anything";
    }
  }
}

}  // namespace
}  // namespace tileweave
