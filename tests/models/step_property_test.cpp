// A whole model step: overlap gives the bits of serial, a sequence's bits are its own.
#include <gtest/gtest.h>

#include <cstdlib>
#include <random>

#include "tests/models/tiny_models.h"
#include "tileweave/models/generator.h"

namespace tileweave {
namespace {

/// Tokens for some sequences, some of which have a past.
struct RandomStep {
  std::vector<std::vector<std::int32_t>> past, now;
};

RandomStep random_step(std::mt19937& random, std::int64_t vocabulary) {
  RandomStep step;
  const std::size_t sequences = 1 + random() % 4;
  for (std::size_t s = 0; s < sequences; ++s) {
    const auto tokens = [&](std::size_t count) {
      std::vector<std::int32_t> ids(count);
      for (std::int32_t& id : ids) {
        id = static_cast<std::int32_t>(random() % static_cast<std::uint64_t>(vocabulary));
      }
      return ids;
    };
    step.past.push_back(tokens(random() % 3 == 0 ? 0 : 1 + random() % 20));
    step.now.push_back(tokens(random() % 2 == 0 ? 1 : 1 + random() % 12));
  }
  return step;
}

/// Logits of the last token of each sequence.
std::vector<float> run(Decoder& decoder, const RandomStep& step) {
  StepRequest request;
  request.head = Head::kLogits;
  std::vector<KvCache::SequenceId> sequences;
  for (std::size_t s = 0; s < step.now.size(); ++s) {
    sequences.push_back(decoder.add_sequence());
    if (!step.past[s].empty()) {
      decoder.step({.parts = {{sequences[s], step.past[s]}}, .head = Head::kNone});
    }
    request.parts.push_back({sequences[s], step.now[s]});
  }
  const StepResult result = decoder.step(request);
  for (const auto sequence : sequences) decoder.remove_sequence(sequence);
  return result.logits;
}

DecoderOptions options(Mode mode, Granularity granularity) {
  return {.run = {.mode = mode},
          .granularity = granularity,
          .page_size = 8,
          .max_tokens = 64,
          .cache_tokens = 256,
          .max_rows = 64};
}

TEST(ModelStep, OverlapGivesTheBitsOfSerialUnderTwoHundredSchedules) {
  constexpr std::uint32_t kSeeds = 200;
  const char* names[] = {"llama_biases", "qwen3"};
  for (const char* name : names) {
    for (const Granularity granularity : {Granularity::kOps, Granularity::kStages}) {
      TinyModel serial = open_tiny_model(name, {.decoder = options(Mode::kSerial, granularity)});
      for (std::uint32_t seed = 1; seed <= kSeeds / 4; ++seed) {
        const std::int32_t sms[] = {1, 2, 7};
        TinyModel overlap =
            open_tiny_model(name, {.device = {.way = CpuWay::kExplore,
                                              .num_sms = sms[seed % 3],
                                              .seed = seed,
                                              .delay_probability = 0.2},
                                   .decoder = options(Mode::kOverlap, granularity)});
        std::mt19937 random(seed);
        const RandomStep step = random_step(random, serial.config.vocab_size);
        ASSERT_EQ(run(*overlap.decoder, step), run(*serial.decoder, step))
            << name << ", " << name_of(granularity) << ", seed " << seed;
      }
    }
  }
}

TEST(ModelStep, KeepsToWhatItsOperatorsDeclare) {
  for (const std::string& name : tiny_model_names()) {
    for (const Granularity granularity : {Granularity::kOps, Granularity::kStages}) {
      SCOPED_TRACE(name + ", " + name_of(granularity));
      TinyModel model = open_tiny_model(
          name, {.device = {.way = CpuWay::kExplore, .num_sms = 2, .check_views = CheckViews::kOn},
                 .decoder = options(Mode::kOverlap, granularity)});
      std::mt19937 random(7);
      for (int i = 0; i < 3; ++i) {
        EXPECT_NO_THROW(run(*model.decoder, random_step(random, model.config.vocab_size)));
      }
    }
  }
}

TEST(ModelStep, ASequencesBitsDoNotDependOnItsBatch) {
  for (const char* name : {"llama_tied", "qwen3", "llama_mqa"}) {
    TinyModel model =
        open_tiny_model(name, {.decoder = options(Mode::kOverlap, Granularity::kOps)});
    const auto vocabulary = static_cast<std::size_t>(model.config.vocab_size);
    for (std::uint32_t seed = 1; seed <= 20; ++seed) {
      SCOPED_TRACE(testing::Message() << name << ", seed " << seed);
      std::mt19937 random(seed);
      const RandomStep step = random_step(random, model.config.vocab_size);
      const std::vector<float> together = run(*model.decoder, step);
      for (std::size_t s = 0; s < step.now.size(); ++s) {
        const std::vector<float> alone =
            run(*model.decoder, {.past = {step.past[s]}, .now = {step.now[s]}});
        const auto begin = together.begin() + static_cast<std::ptrdiff_t>(s * vocabulary);
        ASSERT_EQ(alone,
                  std::vector<float>(begin, begin + static_cast<std::ptrdiff_t>(vocabulary)));
      }
    }
  }
}

TEST(ModelStep, SubmissionsAndStreamsGiveTheSameBits) {
  TinyModel reference =
      open_tiny_model("qwen3", {.decoder = options(Mode::kSerial, Granularity::kOps)});
  std::mt19937 random(3);
  const RandomStep step = random_step(random, reference.config.vocab_size);
  const std::vector<float> expected = run(*reference.decoder, step);
  for (const Submit submit : {Submit::kEager, Submit::kGraph}) {
    for (const std::int32_t streams : {1, 2, 4}) {
      DecoderOptions decoder = options(Mode::kOverlap, Granularity::kOps);
      decoder.run.submit = submit;
      decoder.num_streams = streams;
      TinyModel model = open_tiny_model("qwen3", {.decoder = decoder});
      EXPECT_EQ(run(*model.decoder, step), expected) << streams << " streams";
    }
  }
}

TEST(ModelStep, OverlapsOnTiles) {
  TinyModel model =
      open_tiny_model("llama_tied", {.decoder = options(Mode::kOverlap, Granularity::kOps)});
  const Program& program =
      model.decoder->program({.rows = 4, .sequences = 4, .outputs = 4, .head = Head::kArgmax});
  std::int64_t tile_edges = 0;
  for (const EdgeReport& edge : program.verdict().edges) {
    tile_edges += edge.kind == EdgeKind::kTile ? 1 : 0;
  }
  EXPECT_EQ(program.verdict().num_downgrades(), 0) << program.verdict().table(program.plan());
  EXPECT_GE(tile_edges, 10 * model.config.num_layers);
}

}  // namespace
}  // namespace tileweave
