#include "tileweave/models/plan_cache.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "tests/models/tiny_models.h"
#include "tests/tune/tune_folder.h"
#include "tileweave/models/presets.h"

namespace tileweave {
namespace {

class PlanCache : public testing::Test {
 protected:
  PlanQuestion question(std::int64_t rows, std::int64_t tokens) const {
    return {.config = &config_, .rows = rows, .tokens = tokens};
  }
  std::string keep(std::int64_t rows, std::int64_t tokens, const StepKnobs& knobs) {
    TuneCache cache = folder_.cache();
    return keep_plan(
        *device_, question(rows, tokens),
        {.arm = "arm", .knobs = knobs, .seconds_per_step = 1, .default_seconds_per_step = 2},
        cache);
  }
  std::optional<PlanEntry> find(const PlanQuestion& what) {
    TuneCache cache = folder_.cache();
    return find_plan(*device_, what, cache);
  }

  TuneFolder folder_;
  std::unique_ptr<Device> device_ = open_cpu_device({.num_sms = 2});
  ModelConfig config_ = *preset_config("qwen3-0.6b");
};

TEST_F(PlanCache, FindsWhatWasKeptForTheseStepsAlone) {
  StepKnobs knobs = with_edges({.num_streams = 2}, {EdgeKind::kTile, StartRule::kWaitAll});
  knobs.at(StepOp::kDown).split_k = 2;
  EXPECT_FALSE(find(question(4, 200)));
  EXPECT_NE(keep(4, 200, knobs), "");
  const auto found = find(question(4, 256));
  ASSERT_TRUE(found);
  EXPECT_EQ(found->knobs, knobs);
  EXPECT_EQ(found->arm, "arm");
  EXPECT_EQ(found->tokens, 256);
  EXPECT_FALSE(find(question(8, 200)));
  PlanQuestion other = question(4, 200);
  other.granularity = Granularity::kStages;
  EXPECT_FALSE(find(other));
  other = question(4, 200);
  other.wide_products = WideProducts::kVendor;
  EXPECT_TRUE(find(other)) << "steps of few rows have none";
  ModelConfig larger = config_;
  larger.num_layers += 1;
  other = question(4, 200);
  other.config = &larger;
  EXPECT_FALSE(find(other));
  TuneCache cache = folder_.cache();
  EXPECT_FALSE(find_plan(*open_cpu_device({.num_sms = 3}), question(4, 200), cache));
  EXPECT_TRUE(folder_.notes.empty());
}

TEST_F(PlanCache, TellsWideProductsApart) {
  EXPECT_NE(keep(128, 200, {}), "");
  PlanQuestion vendor = question(128, 200);
  EXPECT_TRUE(find(vendor));
  vendor.wide_products = WideProducts::kVendor;
  EXPECT_FALSE(find(vendor));
}

TEST_F(PlanCache, TakesTheNearestContextWithoutWhatBelongsToItAlone) {
  StepKnobs knobs{.num_streams = 2};
  knobs.at(StepOp::kAttention).splits = 4;
  keep(1, 1024, knobs);
  knobs.num_streams = 3;
  keep(1, 128, knobs);
  EXPECT_EQ(find(question(1, 128))->knobs.at(StepOp::kAttention).splits, 4);
  const struct {
    std::int64_t tokens, bucket;
  } cases[] = {{1, 128}, {128, 128}, {200, 128}, {300, 1024}, {1024, 1024}, {1 << 30, 1024}};
  for (const auto& c : cases) {
    const auto found = find(question(1, c.tokens));
    ASSERT_TRUE(found) << c.tokens;
    EXPECT_EQ(found->tokens, c.bucket) << c.tokens;
    EXPECT_EQ(found->knobs.at(StepOp::kAttention).splits, bucket_of(c.tokens) == c.bucket ? 4 : 0)
        << c.tokens;
  }
}

TEST_F(PlanCache, PromptsAndShapesThatNobodyMeasuredTakeTheDefaults) {
  keep(1, 128, {.num_streams = 2});
  TuneCache cache = folder_.cache();
  const auto source = [&](const StepShape& shape, TuneCache* from) {
    return choose_knobs(*device_, question(shape.rows, 128), shape, from).source;
  };
  EXPECT_EQ(source(decode_shape(1), &cache), KnobsSource::kCached);
  EXPECT_EQ(source(decode_shape(1), nullptr), KnobsSource::kDefault);
  EXPECT_EQ(source(decode_shape(2), &cache), KnobsSource::kDefault);
  EXPECT_EQ(source({.decode = false}, &cache), KnobsSource::kDefault);
}

TEST_F(PlanCache, AnEntryThatIsNoPlansIsAMissAndSaidOnce) {
  const std::string path = keep(1, 128, {.num_streams = 2});
  const std::string good = TuneFolder::read(path);
  for (const auto& [from, to] : std::vector<std::pair<std::string, std::string>>{
           {"\"num_streams\": 2", "\"num_streams\": 99"},
           {"\"num_streams\": 2", "\"streams\": 2"},
           {"\"seconds_per_step\": 1.0", "\"seconds_per_step\": \"fast\""},
           {"\"arm\": \"arm\"", "\"arm\": 5"}}) {
    std::string text = good;
    ASSERT_NE(text.find(from), std::string::npos) << text;
    TuneFolder::write(path, text.replace(text.find(from), from.size(), to));
    folder_.notes.clear();
    TuneCache cache = folder_.cache();
    EXPECT_FALSE(find_plan(*device_, question(1, 128), cache)) << to;
    EXPECT_FALSE(find_plan(*device_, question(1, 128), cache)) << to;
    ASSERT_EQ(folder_.notes.size(), 1U) << to;
    EXPECT_NE(folder_.notes[0].find(path), std::string::npos) << folder_.notes[0];
  }
}

TEST(DecoderWithAPlanCache, TakesWhatIsKeptAndGivesTheSameTokens) {
  TuneFolder folder;
  TuneCache cache = folder.cache();
  const Golden golden = read_golden("qwen3");
  const auto run = [&](TuneCache* tuned, KnobsSource expected) {
    TinyModel model = open_tiny_model(
        "qwen3", {.device = {.num_sms = 2}, .decoder = {.max_tokens = 80, .tuned = tuned}});
    Decoder& decoder = *model.decoder;
    EXPECT_EQ(decoder.knobs_of(decode_shape(1)).source, expected);
    std::vector<float> logits = logits_of(decoder, golden.ids, 16);
    const std::vector<float> decoded = logits_of(decoder, golden.ids, 1);
    logits.insert(logits.end(), decoded.begin(), decoded.end());
    return logits;
  };
  const std::vector<float> expected = run(nullptr, KnobsSource::kDefault);
  const TinyModel model = open_tiny_model("qwen3", {.device = {.num_sms = 2}});
  const PlanQuestion question{.config = &model.config, .tokens = 80};
  StepKnobs knobs = with_edges({.num_streams = 2}, {.kind = EdgeKind::kProgrammatic});
  keep_plan(*model.device, question, {.arm = "a", .knobs = knobs}, cache);
  EXPECT_EQ(run(&cache, KnobsSource::kCached), expected);
  EXPECT_TRUE(folder.notes.empty());

  // Knobs that are knobs, but make no plan: f32 keys are never split.
  knobs.at(StepOp::kAttention).splits = 4;
  keep_plan(*model.device, question, {.arm = "a", .knobs = knobs}, cache);
  EXPECT_EQ(run(&cache, KnobsSource::kCached), expected);
  ASSERT_EQ(folder.notes.size(), 1U);
  EXPECT_NE(folder.notes[0].find("split"), std::string::npos) << folder.notes[0];
}

TEST(DecoderWithAPlanCache, KeepsWhatIsKeptWhereTheDefaultsFailToo) {
  TuneFolder folder;
  TuneCache cache = folder.cache();
  const TinyModel model = open_tiny_model(
      "qwen3", {.device = {.num_sms = 2}, .decoder = {.max_tokens = 80, .tuned = &cache}});
  keep_plan(*model.device, {.config = &model.config, .tokens = 80},
            {.arm = "a", .knobs = {.num_streams = 1}}, cache);
  const auto no_memory = [](Plan&) { throw Error("make a step", "memory", "none"); };
  EXPECT_THROW(model.decoder->make_step(decode_shape(1), {.rewrite = no_memory}), Error);
  EXPECT_EQ(model.decoder->knobs_of(decode_shape(1)).source, KnobsSource::kCached);
  EXPECT_TRUE(folder.notes.empty());
}

TEST(DecoderWithAPlanCache, StreamsThatAreAskedForWinOverWhatIsKept) {
  TuneFolder folder;
  TuneCache cache = folder.cache();
  TinyModel model = open_tiny_model(
      "qwen3",
      {.device = {.num_sms = 2}, .decoder = {.num_streams = 3, .max_tokens = 64, .tuned = &cache}});
  keep_plan(*model.device, {.config = &model.config, .tokens = 64},
            {.arm = "a", .knobs = {.num_streams = 1}}, cache);
  EXPECT_EQ(model.decoder->knobs_of(decode_shape(1)).knobs.num_streams, 3);
}

}  // namespace
}  // namespace tileweave
