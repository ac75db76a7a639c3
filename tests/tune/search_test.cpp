#include "tileweave/tune/search.h"

#include <gtest/gtest.h>

#include <cmath>
#include <map>
#include <string>
#include <vector>

#include "tileweave/core/error.h"

namespace tileweave {
namespace {

/// A measurer that reads times from a function and counts what it is asked for.
class Fake {
 public:
  explicit Fake(std::function<double(const TuneCandidate&)> seconds)
      : seconds_(std::move(seconds)) {}

  TunePrepare prepare() {
    return [this](const TuneCandidate& candidate) -> TuneSample {
      prepared.push_back(candidate);
      const double seconds = seconds_(candidate);  // may throw
      return [this, seconds] {
        clock += seconds;
        ++samples;
        return seconds;
      };
    };
  }
  SearchOptions options(double budget = 1e9) {
    return {.budget_seconds = budget, .clock = [this] { return clock; }};
  }

  std::vector<TuneCandidate> prepared;
  double clock = 0;
  int samples = 0;

 private:
  std::function<double(const TuneCandidate&)> seconds_;
};

const std::vector<TuneKnob> kKnobs = {{"a", {0, 1, 2, 3}}, {"b", {0, 10, 20}}};

TEST(Search, FindsTheFastestCandidateAndMeasuresTheDefaultFirst) {
  Fake fake([](const TuneCandidate& c) {
    return 1 + std::abs(static_cast<double>(c[0]) - 2) + std::abs(static_cast<double>(c[1]) - 20);
  });
  const SearchResult result = search(kKnobs, fake.prepare(), fake.options());
  EXPECT_EQ(result.best, (TuneCandidate{2, 20}));
  EXPECT_EQ(result.seconds, 1);
  EXPECT_EQ(result.default_seconds, 23);
  EXPECT_TRUE(result.finished);
  EXPECT_EQ(fake.prepared[0], (TuneCandidate{0, 0}));
  EXPECT_EQ(result.measured, static_cast<std::int64_t>(fake.prepared.size()) - 2)
      << "each once, but for the last comparison";
}

TEST(Search, TheDefaultWinsTies) {
  for (const double gain : {0.0, 0.005, 0.0099, 0.02}) {
    Fake fake([&](const TuneCandidate& c) { return c[0] == 3 ? 1 - gain : 1.0; });
    const SearchResult result = search(kKnobs, fake.prepare(), fake.options());
    EXPECT_EQ(result.best, (gain > 0.01 ? TuneCandidate{3, 0} : TuneCandidate{0, 0})) << gain;
  }
}

TEST(Search, DependsOnTheMeasurementsAlone) {
  const auto seconds = [](const TuneCandidate& c) {
    return 2 + std::sin(static_cast<double>(c[0] * 31 + c[1] * 17));
  };
  Fake first(seconds), second(seconds);
  EXPECT_EQ(search(kKnobs, first.prepare(), first.options()).best,
            search(kKnobs, second.prepare(), second.options()).best);
  EXPECT_EQ(first.prepared, second.prepared);
}

TEST(Search, PassesOverWhatCannotBe) {
  Fake fake([](const TuneCandidate& c) {
    if (c[0] == 1) throw Error("make", "another number of strips", "1");
    return c[0] == 2 ? 0.5 : 1.0;
  });
  const SearchResult result = search(kKnobs, fake.prepare(), fake.options());
  EXPECT_EQ(result.best, (TuneCandidate{2, 0}));
  ASSERT_EQ(result.refused.size(), 1U);
  EXPECT_EQ(result.refused[0].candidate, (TuneCandidate{1, 0}));
  EXPECT_NE(result.refused[0].why.find("strips"), std::string::npos);
}

TEST(Search, ADefaultThatCannotBeIsAnError) {
  Fake fake([](const TuneCandidate&) -> double { throw Error("make", "a kernel"); });
  EXPECT_THROW(search(kKnobs, fake.prepare(), fake.options()), Error);
  EXPECT_THROW(search({{"a", {}}}, fake.prepare(), fake.options()), Error);
}

TEST(Search, StopsWhenTheBudgetIsSpent) {
  Fake fake([](const TuneCandidate& c) { return c == TuneCandidate{1, 0} ? 1.0 : 2.0; });
  // Five samples of the default take ten seconds, five of the next candidate five more.
  const SearchResult result = search(kKnobs, fake.prepare(), fake.options(12));
  EXPECT_FALSE(result.finished);
  EXPECT_EQ(result.measured, 2);
  EXPECT_EQ(result.best, (TuneCandidate{1, 0}));
}

TEST(Search, TakesMediansAndReportsProgress) {
  int calls = 0;
  // Every third measurement is disturbed.
  const TunePrepare prepare = [&](const TuneCandidate& c) -> TuneSample {
    return [&calls, c] { return (++calls % 3 == 0 ? 100.0 : 1.0) * (c[0] == 1 ? 0.9 : 1.0); };
  };
  std::vector<std::int64_t> told;
  SearchOptions options;
  options.progress = [&](const TuneProgress& p) {
    told.push_back(p.measured);
    EXPECT_LE(p.best_seconds, 1.0);
    EXPECT_GT(p.best_seconds, 0.8);
  };
  const SearchResult result = search({{"a", {0, 1}}}, prepare, options);
  EXPECT_EQ(result.best, TuneCandidate{1});
  EXPECT_EQ(told, (std::vector<std::int64_t>{1, 2}));
}

TEST(Search, ABestThatFailsTheLastComparisonGivesWayToTheDefault) {
  int made = 0;
  const TunePrepare prepare = [&](const TuneCandidate& c) -> TuneSample {
    if (c[0] == 1 && ++made == 2) throw Error("allocate", "enough memory");
    return [c] { return c[0] == 1 ? 0.5 : 1.0; };
  };
  const SearchResult result = search({{"a", {0, 1}}}, prepare, {});
  EXPECT_EQ(result.best, TuneCandidate{0});
  EXPECT_EQ(result.refused.size(), 1U);
}

}  // namespace
}  // namespace tileweave
