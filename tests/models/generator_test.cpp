#include "tileweave/models/generator.h"

#include <gtest/gtest.h>

#include <functional>
#include <set>
#include <string>

#include "tests/models/tiny_models.h"
#include "tileweave/core/error.h"

namespace tileweave {
namespace {

using Ids = std::vector<std::int32_t>;

std::string sentence_of(const std::function<void()>& action) {
  try {
    action();
  } catch (const Error& error) {
    return error.what();
  }
  return "no error";
}

TinyModel small(std::int64_t max_tokens, std::int64_t cache_tokens = 0) {
  return open_tiny_model(
      "llama_tied",
      {.decoder = {
           .page_size = 4, .max_tokens = max_tokens, .cache_tokens = cache_tokens, .max_rows = 8}});
}

TEST(Generator, PromptsLongerThanAStepAreCutAndGiveTheSameReply) {
  const Golden golden = read_golden("llama_tied");
  TinyModel cut = small(64);
  TinyModel whole = open_tiny_model("llama_tied", {.decoder = {.max_tokens = 64}});
  for (std::size_t length = 1; length <= 33; ++length) {
    const GenerateRequest request{
        .ids = Ids(golden.ids.begin(), golden.ids.begin() + static_cast<std::ptrdiff_t>(length)),
        .max_new_tokens = 5};
    EXPECT_EQ(generate(*cut.decoder, {request}).results[0].ids,
              generate(*whole.decoder, {request}).results[0].ids)
        << length;
  }
}

TEST(Generator, AsksBeforeEveryStepAlsoWithinAPrompt) {
  TinyModel model = small(64);
  int asked = 0;
  const Generated generated =
      generate(*model.decoder, {{.ids = Ids(40, 1), .max_new_tokens = 5}}, nullptr,
               [&] { return ++asked == 3 ? Continue::kStop : Continue::kGoOn; });
  EXPECT_EQ(asked, 3);
  EXPECT_EQ(generated.times.steps, 2);
  EXPECT_EQ(generated.times.prompt_tokens, 16);
  EXPECT_EQ(generated.results[0].ids, Ids());
  EXPECT_EQ(generated.results[0].finish, Finish::kStopped);
}

TEST(Generator, RefusesAnIdBeyondTheVocabularyBeforeAnythingIsComputed) {
  TinyModel model = small(64);
  const auto vocabulary = static_cast<std::int32_t>(model.config.vocab_size);
  int tokens = 0;
  for (const std::int32_t bad : {vocabulary, -1}) {
    for (const std::int64_t count : {0, 3}) {
      EXPECT_NE(sentence_of([&] {
                  generate(*model.decoder,
                           {{.ids = {1}, .max_new_tokens = 3},
                            {.ids = {1, bad}, .max_new_tokens = count}},
                           [&](std::size_t, std::int32_t) {
                             ++tokens;
                             return Continue::kGoOn;
                           });
                }).find(", got " + std::to_string(bad)),
                std::string::npos);
    }
  }
  EXPECT_EQ(tokens, 0);
}

TEST(Generator, FillsTheContextAndSaysSo) {
  TinyModel model = small(10);
  const Generated generated = generate(*model.decoder, {{.ids = {1, 2, 3}, .max_new_tokens = 100}});
  EXPECT_EQ(generated.results[0].ids.size(), 7U);
  EXPECT_EQ(generated.results[0].finish, Finish::kContextFull);
  EXPECT_EQ(generated.times.new_tokens, 7);
  EXPECT_EQ(generated.times.prompt_tokens, 3);
}

TEST(Generator, TakesAPromptUpToTheLimitAndRefusesALongerOne) {
  TinyModel model = small(10);
  const Generated last = generate(*model.decoder, {{.ids = Ids(9, 1), .max_new_tokens = 100}});
  EXPECT_EQ(last.results[0].ids.size(), 1U);
  EXPECT_EQ(sentence_of([&] { generate(*model.decoder, {{.ids = Ids(10, 1)}}); }),
            "generate: a prompt of at most 9 tokens (the limit of 10 less one for the reply), got "
            "10");
  EXPECT_EQ(sentence_of([&] { generate(*model.decoder, {{.ids = {}}}); }),
            "generate: a prompt of at least one token, got an empty one");
}

TEST(Generator, NamesAnIdThatTheVocabularyLacks) {
  TinyModel model = small(10);
  EXPECT_EQ(sentence_of([&] {
              generate(*model.decoder, {{.ids = {1, 151}}});
            }),
            "look up a token: token ids from 0 to 150, as the vocabulary has them, got 151");
  EXPECT_NE(sentence_of([&] { generate(*model.decoder, {{.ids = {-1}}}); }), "no error");
  // Nothing of the failed call is left in the cache.
  EXPECT_EQ(generate(*model.decoder, {{.ids = Ids(9, 1)}}).results[0].ids.size(), 1U);
}

TEST(Generator, AFullCacheIsOneSentenceAndLosesNothing) {
  TinyModel model = small(16, 16);
  const GenerateRequest request{.ids = Ids(9, 1), .max_new_tokens = 3};
  const std::string sentence = sentence_of([&] { generate(*model.decoder, {request, request}); });
  EXPECT_NE(sentence.find("room for"), std::string::npos) << sentence;
  EXPECT_EQ(generate(*model.decoder, {request}).results[0].ids.size(), 3U);
}

TEST(Generator, StopsWhenToldTo) {
  TinyModel model = small(64);
  int tokens = 0;
  const Generated generated = generate(
      *model.decoder, {{.ids = {1, 2}, .max_new_tokens = 50}},
      [&](std::size_t, auto) { return ++tokens == 4 ? Continue::kStop : Continue::kGoOn; });
  EXPECT_EQ(generated.results[0].ids.size(), 4U);
  EXPECT_EQ(generated.results[0].finish, Finish::kStopped);
}

TEST(Generator, GoesOnWithASequenceThatHoldsTheBeginning) {
  const Golden golden = read_golden("llama_tied");
  TinyModel model = small(64);
  const Ids prompt(golden.ids.begin(), golden.ids.begin() + 12);
  const Ids expected =
      generate(*model.decoder, {{.ids = prompt, .max_new_tokens = 6}}).results[0].ids;
  const auto sequence = model.decoder->add_sequence();
  model.decoder->step({.parts = {{sequence, std::span(golden.ids).first(7)}}, .head = Head::kNone});
  const Generated generated =
      generate(*model.decoder, {{.ids = prompt, .sequence = sequence, .max_new_tokens = 6}});
  EXPECT_EQ(generated.results[0].ids, expected);
  EXPECT_EQ(generated.times.prompt_tokens, 5);
  EXPECT_EQ(model.decoder->length(sequence), 17) << "the last token is not computed yet";
  model.decoder->truncate(sequence, 3);
  EXPECT_EQ(generate(*model.decoder, {{.ids = prompt, .sequence = sequence, .max_new_tokens = 6}})
                .results[0]
                .ids,
            expected);
}

TEST(Generator, SampledRepliesDependOnTheSeedAndNotOnTheBatch) {
  TinyModel model = small(64, 256);
  const auto request = [](std::uint64_t seed, Ids ids) {
    return GenerateRequest{.ids = std::move(ids),
                           .max_new_tokens = 12,
                           .sampling = {.temperature = 1.5F, .top_p = 0.95F, .seed = seed}};
  };
  const Ids alone = generate(*model.decoder, {request(1, {5, 6, 7})}).results[0].ids;
  const Generated batch =
      generate(*model.decoder, {request(2, {5, 6, 7}), request(9, {1}), request(1, {5, 6, 7})});
  EXPECT_EQ(batch.results[2].ids, alone);
  EXPECT_NE(batch.results[0].ids, alone) << "another seed";
}

TEST(Generator, ARepetitionPenaltyLooksAtPromptAndReply) {
  TinyModel model = small(64);
  GenerateRequest request{.ids = {5, 6, 7},
                          .max_new_tokens = 20,
                          .sampling = {.temperature = 0, .repetition_penalty = 1e6F}};
  const Ids ids = generate(*model.decoder, {request}).results[0].ids;
  std::set<std::int32_t> distinct(ids.begin(), ids.end());
  EXPECT_EQ(distinct.size(), ids.size());
  for (const std::int32_t id : request.ids) EXPECT_EQ(distinct.count(id), 0U);
}

}  // namespace
}  // namespace tileweave
