// Filters and draws against the reference and against transformers, without a device. A filter
// shows in what is drawn: for each of many random numbers, the token must be the reference's.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>
#include <string>
#include <vector>

#include "tests/kernels/operand_values.h"
#include "tests/kernels/sampling/sampling_serial.h"
#include "tests/kernels/sampling/warper_goldens.h"
#include "tileweave/core/error.h"
#include "tileweave/kernels/sampling/philox.h"
#include "tileweave/kernels/sampling/sample_ref.h"

namespace tileweave {
namespace {

constexpr double kSpread = 60;  // of scores, temperature included, in all of these tests

std::vector<float> scaled(std::vector<float> values, float factor) {
  for (float& value : values) value *= factor;
  return values;
}

double uniform_at(const SamplingParams& params, std::int64_t position) {
  return sampling_uniform(static_cast<std::uint32_t>(params.seed),
                          static_cast<std::uint32_t>(params.seed >> 32),
                          static_cast<std::uint32_t>(position));
}

/// Every id is the one that `probabilities` give, but where the random number is so close to a
/// boundary that fp32 weights may decide otherwise.
void expect_draws_of(const std::vector<double>& probabilities, const std::vector<std::int32_t>& ids,
                     const SamplingParams& params) {
  const double bound = sample_error_bound(kSpread);
  for (std::size_t i = 0; i < ids.size(); ++i) {
    const double uniform = uniform_at(params, static_cast<std::int64_t>(i));
    const std::int32_t low = draw_reference(probabilities, std::max(uniform - bound, 0.0));
    const std::int32_t high = draw_reference(probabilities, uniform + bound);
    ASSERT_GE(ids[i], low) << "draw " << i;
    ASSERT_LE(ids[i], high) << "draw " << i;
    ASSERT_GT(probabilities[static_cast<std::size_t>(ids[i])], 0) << "removed token " << ids[i];
  }
}

struct FilterCase {
  std::string name;
  SamplingParams params;
};

std::vector<FilterCase> filter_cases() {
  return {{"nothing", {}},
          {"temperature", {.temperature = 0.6F}},
          {"hot", {.temperature = 3}},
          {"top-k", {.top_k = 7}},
          {"top-1", {.top_k = 1}},
          {"top-k of everything", {.top_k = 1 << 30}},
          {"top-p", {.top_p = 0.8F}},
          {"small top-p", {.top_p = 1e-7F}},
          {"large top-p", {.top_p = 0.9999F}},
          {"min-p", {.min_p = 0.2F}},
          {"min-p of one", {.min_p = 1}},
          {"penalty", {.repetition_penalty = 1.4F}},
          {"reward", {.repetition_penalty = 0.5F}},
          {"all",
           {.temperature = 1.3F,
            .top_k = 40,
            .top_p = 0.9F,
            .min_p = 0.02F,
            .repetition_penalty = 1.1F}}};
}

TEST(Sample, EachFilterDrawsWhatTheReferenceDraws) {
  for (const std::int64_t cols : {1, 2, 17, 64, 65, 300, 2000}) {
    const std::vector<float> row =
        scaled(random_values<float>(cols, static_cast<std::uint64_t>(cols)), 6);
    std::vector<std::int32_t> history{0, 5, 5, 16, 40, 0, 299};
    if (cols < 300) std::erase_if(history, [&](std::int32_t id) { return id >= cols; });
    for (const FilterCase& c : filter_cases()) {
      SCOPED_TRACE(c.name + ", " + std::to_string(cols) + " columns");
      SamplingParams params = c.params;
      params.seed = 0x123456789abcdefULL;
      expect_draws_of(sample_reference(row, params, history), draw_many(row, params, 500, history),
                      params);
    }
  }
}

TEST(Sample, TiesAtTheBoundariesAreThoseOfTheReference) {
  for (std::uint64_t seed = 1; seed <= 20; ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    std::vector<float> row = random_values<float>(150, seed);
    for (float& value : row) value = std::round(2 * value);  // five values
    for (const SamplingParams& params :
         {SamplingParams{.top_k = 40}, SamplingParams{.top_p = 0.3F}, SamplingParams{.top_p = 0.9F},
          SamplingParams{.min_p = 0.05F}, SamplingParams{.top_k = 3, .top_p = 0.5F}}) {
      expect_draws_of(sample_reference(row, params, {}), draw_many(row, params, 300), params);
    }
  }
}

TEST(Sample, OfEqualTokensTheHighestIdStaysUnderATinyTopP) {
  for (std::int64_t cols = 1; cols <= 200; ++cols) {
    const std::vector<float> row(static_cast<std::size_t>(cols), 0.5F);
    const auto last = static_cast<std::int32_t>(cols - 1);
    ASSERT_EQ(draw_many(row, {.top_p = 1e-9F}, 2), (std::vector{last, last})) << cols << " columns";
  }
}

TEST(Sample, TheReferenceLeavesWhatTransformersLeaves) {
  for (const WarperGolden& golden : warper_goldens()) {
    SCOPED_TRACE(golden.name);
    std::vector<float> row;
    for (const std::int32_t eightfold : golden.eightfold_logits) {
      row.push_back(static_cast<float>(eightfold) / 8);
    }
    const SamplingParams params{.temperature = golden.temperature,
                                .top_k = golden.top_k,
                                .top_p = golden.top_p,
                                .min_p = golden.min_p,
                                .repetition_penalty = golden.repetition_penalty};
    const std::vector<double> exact = sample_reference(row, params, golden.history);
    for (std::size_t id = 0; id < exact.size(); ++id) {
      const double theirs = golden.probabilities[id];
      ASSERT_EQ(exact[id] == 0, theirs == 0) << "token " << id;
      ASSERT_NEAR(exact[id], theirs, theirs * sample_error_bound(kSpread)) << "token " << id;
    }
    const std::vector<double> theirs(golden.probabilities.begin(), golden.probabilities.end());
    expect_draws_of(theirs, draw_many(row, params, 2000, golden.history), params);
  }
}

/// 99.9 % of chi-square statistics with `degrees` degrees of freedom lie below this
/// (Wilson-Hilferty).
double chi_square_limit(double degrees) {
  const double spread = 2 / (9 * degrees);
  return degrees * std::pow(1 - spread + 3.09 * std::sqrt(spread), 3);
}

TEST(Sample, FrequenciesFollowTheProbabilities) {
  const std::vector<float> row{0.5F, -1, 2, 1.25F, -0.25F, 0, 1, 1.75F, -2, 0.75F};
  constexpr std::int64_t kDraws = 20000;
  for (const SamplingParams& params :
       {SamplingParams{.seed = 1}, SamplingParams{.temperature = 0.7F, .seed = 2},
        SamplingParams{.top_k = 6, .seed = 3}, SamplingParams{.top_p = 0.85F, .seed = 4},
        SamplingParams{.min_p = 0.2F, .seed = 0xffffffff00000005ULL}}) {
    const std::vector<double> expected = sample_reference(row, params, {});
    std::vector<double> counts(row.size());
    for (const std::int32_t id : draw_many(row, params, kDraws)) {
      counts[static_cast<std::size_t>(id)] += 1;
    }
    double statistic = 0, degrees = -1;
    for (std::size_t id = 0; id < row.size(); ++id) {
      const double mean = expected[id] * static_cast<double>(kDraws);
      if (mean == 0) {
        EXPECT_EQ(counts[id], 0);
        continue;
      }
      statistic += (counts[id] - mean) * (counts[id] - mean) / mean;
      degrees += 1;
    }
    EXPECT_LT(statistic, chi_square_limit(degrees)) << "seed " << params.seed;
  }
}

TEST(Sample, FrequenciesOverSeedsFollowTheProbabilitiesToo) {
  const std::vector<float> row{0, 1, 2, -1};
  constexpr std::int64_t kDraws = 8000;
  SampleInputs inputs(kDraws, 1);
  std::vector<float> logits;
  for (std::int64_t s = 0; s < kDraws; ++s) {
    inputs.set(s, {.seed = static_cast<std::uint64_t>(s)}, 77, {});
    logits.insert(logits.end(), row.begin(), row.end());
  }
  std::vector<double> counts(row.size());
  for (const std::int32_t id : run_sample(logits, inputs, {.tile_m = 64})) {
    counts[static_cast<std::size_t>(id)] += 1;
  }
  const std::vector<double> expected = sample_reference(row, {}, {});
  double statistic = 0;
  for (std::size_t id = 0; id < row.size(); ++id) {
    const double mean = expected[id] * static_cast<double>(kDraws);
    statistic += (counts[id] - mean) * (counts[id] - mean) / mean;
  }
  EXPECT_LT(statistic, chi_square_limit(3));
}

TEST(Sample, TemperatureZeroIsTheArgmaxOfPenalisedLogits) {
  const std::vector<float> row{1, 3, 2.9F, -1};
  const std::vector<std::int32_t> history{1, 1};
  EXPECT_EQ(draw_many(row, {.temperature = 0}, 3, history), (std::vector{1, 1, 1}));
  EXPECT_EQ(draw_many(row, {.temperature = 0, .repetition_penalty = 1.2F}, 3, history),
            (std::vector{2, 2, 2}));
  EXPECT_EQ(draw_many({2, 2, 1}, {.temperature = 0}, 1), std::vector{0});
}

TEST(Sample, IdsOfTheHistoryOutsideTheVocabularyAreSkipped) {
  const std::vector<std::int32_t> history{-1, 4, 1 << 30, -(1 << 30)};
  EXPECT_EQ(draw_many({1, 2, 3, 4}, {.temperature = 0, .repetition_penalty = 2}, 1, history),
            std::vector{3});
}

TEST(Sample, NaNIsNeverDrawnAndInfinityAlways) {
  const float nan = std::numeric_limits<float>::quiet_NaN();
  const float inf = std::numeric_limits<float>::infinity();
  for (const SamplingParams& params :
       {SamplingParams{}, SamplingParams{.top_k = 2}, SamplingParams{.top_p = 0.9F},
        SamplingParams{.min_p = 0.1F}, SamplingParams{.temperature = 0}}) {
    const auto drawn = [&](const std::vector<float>& row) {
      std::vector<std::int32_t> ids = draw_many(row, params, 50);
      std::sort(ids.begin(), ids.end());
      ids.erase(std::unique(ids.begin(), ids.end()), ids.end());
      return ids;
    };
    EXPECT_EQ(drawn({nan, -3, nan}), std::vector{1});
    EXPECT_EQ(drawn({5, inf, -inf, nan}), std::vector{1});
    EXPECT_EQ(drawn({nan, nan}), std::vector{0});
    EXPECT_EQ(drawn({-inf, -inf}), std::vector{0});
    EXPECT_EQ(drawn({-inf, 0, -inf}), std::vector{1});
  }
}

TEST(Sample, ADrawDoesNotDependOnItsBatchOrTiles) {
  constexpr std::int64_t kRows = 13, kCols = 211;
  const std::vector<float> logits = scaled(random_values<float>(kRows * kCols, 5), 4);
  SampleInputs inputs(kRows, 6);
  const std::vector<FilterCase> cases = filter_cases();
  const auto set = [&](SampleInputs& to, std::int64_t at, std::int64_t row) {
    SamplingParams params = cases[static_cast<std::size_t>(row) % cases.size()].params;
    params.seed = static_cast<std::uint64_t>(row * 1000);
    const auto id = static_cast<std::int32_t>(row);
    to.set(at, params, 100 + row, std::vector<std::int32_t>{id, 2 * id, 7});
  };
  for (std::int64_t s = 0; s < kRows; ++s) set(inputs, s, s);
  const std::vector<std::int32_t> expected = run_sample(logits, inputs);
  for (const SampleOptions& options :
       {SampleOptions{.tile_m = 5, .tile_n = 1}, SampleOptions{.tile_m = 13, .tile_n = 64},
        SampleOptions{.tile_m = 2, .tile_n = 50, .num_blocks = 3},
        SampleOptions{.order = TileOrder::rotation(4)}}) {
    EXPECT_EQ(run_sample(logits, inputs, options), expected);
  }
  for (std::int64_t s = 0; s < kRows; ++s) {
    SampleInputs alone(1, 3);
    set(alone, 0, s);
    const auto begin = logits.begin() + s * kCols;
    EXPECT_EQ(run_sample({begin, begin + kCols}, alone)[0], expected[static_cast<std::size_t>(s)]);
  }
}

}  // namespace
}  // namespace tileweave
