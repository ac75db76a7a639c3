// Models against Hugging Face transformers: scripts/goldens/models.py made the data.
#include <gtest/gtest.h>

#include "tests/models/tiny_models.h"
#include "tileweave/models/generator.h"

namespace tileweave {
namespace {

/// ||a - b||_2 / ||b||_2 of a row of logits, against fp32 arithmetic on the same weights.
constexpr double kTolerance = 1e-4;

class TinyModelTest : public testing::TestWithParam<std::string> {};

INSTANTIATE_TEST_SUITE_P(Goldens, TinyModelTest, testing::ValuesIn(tiny_model_names()),
                         [](const auto& param) { return param.param; });

TEST_P(TinyModelTest, PrefillAndStepwiseDecodeGiveTheLogitsOfTransformers) {
  const Golden golden = read_golden(GetParam());
  const struct {
    DType dtype;
    const std::vector<float>& logits;
  } cases[] = {{DType::kF32, golden.logits_f32},
               {DType::kBF16, golden.logits_bf16},
               {DType::kF16, golden.logits_f16}};
  for (const auto& [dtype, expected] : cases) {
    for (const Granularity granularity : {Granularity::kOps, Granularity::kStages}) {
      SCOPED_TRACE(testing::Message() << name_of(dtype) << ", " << name_of(granularity));
      TinyModel model = open_tiny_model(
          GetParam(), {.dtype = dtype, .decoder = {.granularity = granularity, .max_tokens = 65}});
      const auto vocabulary = static_cast<std::size_t>(model.config.vocab_size);
      ASSERT_EQ(expected.size(), 65 * vocabulary);
      const std::vector<float> prefill = logits_of(*model.decoder, golden.ids, 65);
      EXPECT_LE(largest_row_error(prefill, expected, vocabulary), kTolerance);
      const std::vector<float> decode = logits_of(*model.decoder, golden.ids, 1);
      EXPECT_EQ(decode, prefill) << "stepwise decode gives the same bits";
    }
  }
}

TEST_P(TinyModelTest, PromptsOfEveryLengthGiveTheLogitsOfTheirLastToken) {
  const Golden golden = read_golden(GetParam());
  TinyModel model = open_tiny_model(GetParam(), {.decoder = {.page_size = 16, .max_tokens = 65}});
  const auto vocabulary = static_cast<std::size_t>(model.config.vocab_size);
  for (std::size_t length = 1; length <= 65; ++length) {
    const auto sequence = model.decoder->add_sequence();
    const StepResult step = model.decoder->step(
        {.parts = {{sequence, std::span(golden.ids).first(length)}}, .head = Head::kLogits});
    model.decoder->remove_sequence(sequence);
    const auto expected =
        std::span(golden.logits_f32).subspan((length - 1) * vocabulary, vocabulary);
    ASSERT_LE(largest_row_error(step.logits, expected, vocabulary), kTolerance) << length;
  }
}

TEST_P(TinyModelTest, GreedyRepliesAreThoseOfTransformers) {
  const Golden golden = read_golden(GetParam());
  const struct {
    Mode mode;
    LoopUse loops;
  } cases[] = {{Mode::kSerial, LoopUse::kNever},
               {Mode::kOverlap, LoopUse::kNever},
               {Mode::kOverlap, LoopUse::kAlways}};
  for (const auto& [mode, loops] : cases) {
    TinyModel model = open_tiny_model(
        GetParam(),
        {.decoder = {
             .run = {.mode = mode}, .max_tokens = 64, .cache_tokens = 320, .loops = loops}});
    std::vector<GenerateRequest> batch;
    for (const GoldenReply& reply : golden.greedy) {
      ASSERT_GE(reply.ids.size(), 24U);
      GenerateRequest request{.ids = reply.prompt,
                              .max_new_tokens = static_cast<std::int64_t>(reply.ids.size())};
      EXPECT_EQ(generate(*model.decoder, {request}).results[0].ids, reply.ids);
      batch.push_back(request);
    }
    const Generated together = generate(*model.decoder, batch);
    for (std::size_t i = 0; i < batch.size(); ++i) {
      EXPECT_EQ(together.results[i].ids, golden.greedy[i].ids) << "in a batch of unequal prompts";
    }
  }
}

TEST_P(TinyModelTest, RepliesEndAtAnyOfTheEosIds) {
  const Golden golden = read_golden(GetParam());
  TinyModel model = open_tiny_model(GetParam(), {.decoder = {.max_tokens = 64}});
  for (const GoldenReply& reply : golden.greedy) {
    GenerateRequest request{.ids = reply.prompt,
                            .max_new_tokens = static_cast<std::int64_t>(reply.ids.size())};
    for (const std::int64_t id : model.generation.eos_token_ids) {
      request.stop_ids.push_back(static_cast<std::int32_t>(id));
    }
    const GenerateResult result = generate(*model.decoder, {request}).results[0];
    const bool stops = reply.stops_after >= 0;
    EXPECT_EQ(result.finish, stops ? Finish::kStopToken : Finish::kMaxNewTokens);
    EXPECT_EQ(result.ids.size(),
              stops ? static_cast<std::size_t>(reply.stops_after) : reply.ids.size());
  }
}

}  // namespace
}  // namespace tileweave
