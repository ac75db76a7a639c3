// Random plans: the contract check and a check element by element must agree on every one.
#include <gtest/gtest.h>

#include <chrono>

#include "tests/plan/element_check.h"
#include "tests/plan/random_plans.h"
#include "tests/plan/small_plans.h"

namespace tileweave::testing {
namespace {

std::set<FaultKind> kinds_of(const std::vector<Fault>& faults) {
  std::set<FaultKind> kinds;
  for (const Fault& fault : faults) kinds.insert(fault.kind);
  return kinds;
}

std::string text(const std::set<FaultKind>& kinds) {
  std::string list;
  for (const FaultKind kind : kinds) list += std::to_string(static_cast<int>(kind)) + " ";
  return list;
}

void expect_same_dependencies(const ContractReport& report, const ElementReport& elements) {
  std::map<std::tuple<NodeId, NodeId, TensorId>, Via> edges;
  for (const DataEdge& e : report.edges) {
    EXPECT_TRUE(edges.insert({{e.from, e.to, e.tensor}, e.via}).second) << "an edge twice";
  }
  EXPECT_EQ(edges, elements.edges);
  std::set<std::tuple<NodeId, NodeId, TensorId>> overwrites;
  for (const Overwrite& o : report.overwrites) overwrites.insert({o.reader, o.writer, o.tensor});
  EXPECT_EQ(overwrites, elements.overwrites);
}

void expect_same_arrivals(const Plan& plan, const ElementReport& elements) {
  ContractChecker checker(plan.tensors());
  for (std::size_t n = 0; n < plan.nodes().size(); ++n) {
    EXPECT_EQ(sentences(checker.add(static_cast<NodeId>(n), plan.nodes()[n])), "");
  }
  EXPECT_EQ(sentences(checker.finish()), "");
  for (TensorId t = 0; t < plan.tensors().size(); ++t) {
    EXPECT_EQ(checker.arrivals(t), elements.arrivals[static_cast<std::size_t>(t)]);
  }
}

TEST(RandomContract, RightPlansAreAcceptedWithTheDependenciesThatElementsShow) {
  constexpr unsigned kPlans = 2000;
  for (unsigned seed = 1; seed <= kPlans; ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    Random random(seed);
    const Plan plan = random_plan(random);
    const ContractReport report = check_contract(plan);
    const ElementReport elements = check_elements(plan);
    EXPECT_EQ(sentences(report.faults), "");
    EXPECT_EQ(text(elements.kinds), "");
    expect_same_dependencies(report, elements);
    expect_same_arrivals(plan, elements);
    if (::testing::Test::HasFailure()) break;
  }
}

TEST(RandomContract, MutatedPlansAreJudgedAsElementsJudgeThem) {
  constexpr unsigned kPlans = 2000;
  constexpr int kMutationsPerPlan = 5;
  std::map<FaultKind, int> found;
  int wrong = 0;
  int right = 0;
  for (unsigned seed = 1; seed <= kPlans && !::testing::Test::HasFailure(); ++seed) {
    Random random(seed);
    const Plan original = random_plan(random);
    for (int m = 0; m < kMutationsPerPlan; ++m) {
      Plan plan = original;
      const std::string what = mutate(plan, random);
      if (what.empty()) continue;
      SCOPED_TRACE("seed " + std::to_string(seed) + ", mutation " + std::to_string(m) + ": " +
                   what);
      const ContractReport report = check_contract(plan);
      const ElementReport elements = check_elements(plan);
      std::set<FaultKind> kinds = kinds_of(report.faults);
      std::set<FaultKind> expected = elements.kinds;
      if (expected.count(FaultKind::kBackwardWait) != 0) {
        // What follows from a backward wait is told or not as helps the reader; the wait itself is.
        for (const FaultKind kind : {FaultKind::kUncoveredRead, FaultKind::kTooManyArrivals}) {
          kinds.erase(kind);
          expected.erase(kind);
        }
      }
      EXPECT_EQ(text(kinds), text(expected)) << sentences(report.faults);
      if (expected.empty()) {
        expect_same_dependencies(report, elements);
        expect_same_arrivals(plan, elements);
      }
      ++(elements.kinds.empty() ? right : wrong);
      for (const FaultKind kind : elements.kinds) ++found[kind];
    }
  }
  // The mutations must reach every fault that tiles can show, and leave many plans right.
  for (const FaultKind kind :
       {FaultKind::kTooFewArrivals, FaultKind::kTooManyArrivals, FaultKind::kUncoveredRead,
        FaultKind::kUnsatisfiedWait, FaultKind::kDoubleWrite, FaultKind::kOrderNotPermutation,
        FaultKind::kBackwardWait, FaultKind::kStableReadOfWrittenBox, FaultKind::kIndexOverflow,
        FaultKind::kUndeclaredWrite}) {
    EXPECT_GE(found[kind], 50) << "fault kind " << static_cast<int>(kind);
  }
  EXPECT_GE(wrong, 1000);
  EXPECT_GE(right, 1000);
}

/// A chain of 300 nodes of 132 works each, in row and column kernel tiles, as large plans have.
TEST(RandomContract, ALongChainIsCheckedQuickly) {
  constexpr int kNodes = 300;
  const Shape shape = {12 * 64, 11 * 128};
  Plan plan;
  TensorId last = plan.tensor({.name = "T", .shape = shape, .tiles = {64, 11 * 128}});
  plan.add(node("first", 132, {write(last, grid(shape, {64, 128}), 0)}));
  for (int n = 1; n < kNodes; ++n) {
    const TensorId next = plan.tensor({.name = "T", .shape = shape, .tiles = {64, 11 * 128}});
    OperandSpec rows = read(last, grid(shape, {64, 11 * 128}), 0);
    rows.tiles_of_work = [](std::int64_t w) { return std::vector<std::int64_t>{w / 11}; };
    plan.add(node("next", 132, {rows, write(next, grid(shape, {64, 128}), 1)}));
    last = next;
  }
  const auto begin = std::chrono::steady_clock::now();
  const ContractReport report = check_contract(plan);
  const std::chrono::duration<double> took = std::chrono::steady_clock::now() - begin;
  EXPECT_EQ(sentences(report.faults), "");
  EXPECT_EQ(report.edges.size(), kNodes - 1U);
  RecordProperty("milliseconds", std::to_string(took.count() * 1e3));
  EXPECT_LT(took.count(), 10) << "seconds; about 0.05 without sanitizers on an idle core";
}

}  // namespace
}  // namespace tileweave::testing
