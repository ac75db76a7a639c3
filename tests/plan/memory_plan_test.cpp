#include "tileweave/plan/memory_plan.h"

#include <gtest/gtest.h>

#include <cstdio>
#include <random>

#include "tests/plan/chain_plans.h"
#include "tests/plan/event_graph.h"
#include "tests/plan/random_graphs.h"
#include "tileweave/plan/verify.h"

namespace tileweave::testing {
namespace {

/// A place in the arena and who touches it.
struct Region {
  std::string name;
  std::size_t begin = 0;
  std::size_t end = 0;
  bool host = false;  // the host reads or writes it, too
  std::vector<NodeId> users;
  std::vector<NodeId> writers;
};

std::vector<Region> regions_of(const Plan& plan, const MemoryPlan& memory) {
  std::vector<Region> regions;
  for (TensorId t = 0; t < plan.tensors().size(); ++t) {
    const Tensor& tensor = plan.tensors()[t];
    if (tensor.spec.address != nullptr) continue;
    Region region;
    region.name = tensor.spec.name;
    region.begin = memory.tensor_offset[static_cast<std::size_t>(t)];
    region.end = region.begin + tensor.bytes();
    region.host = tensor.spec.output || tensor.spec.kind != TensorKind::kValue;
    for (std::size_t n = 0; n < plan.nodes().size(); ++n) {
      for (const OperandSpec& operand : plan.nodes()[n].operands) {
        if (operand.tensor != t) continue;
        region.users.push_back(static_cast<NodeId>(n));
        if (operand.access == Access::kWrite) region.writers.push_back(static_cast<NodeId>(n));
      }
    }
    region.host |= region.writers.empty();
    regions.push_back(region);
  }
  for (std::size_t n = 0; n < plan.nodes().size(); ++n) {
    const std::size_t bytes = plan.nodes()[n].scratch_bytes;
    const auto id = static_cast<NodeId>(n);
    if (bytes == 0) continue;
    Region region;
    region.name = "scratch of " + plan.nodes()[n].name;
    region.begin = memory.scratch_offset[n];
    region.end = region.begin + bytes;
    region.users = region.writers = {id};
    regions.push_back(region);
  }
  return regions;
}

bool precedes(const EventGraph& events, const Region& a, const Region& b) {
  for (const NodeId user : a.users) {
    for (const NodeId writer : b.writers) {
      if (user >= writer || !events.ordered(user, writer)) return false;
    }
  }
  return true;
}

/// Every two regions that overlap belong to different times, event by event.
int check(const Plan& plan, const Schedule& schedule, const MemoryPlan& memory) {
  const EventGraph events(plan, schedule);
  const std::vector<Region> regions = regions_of(plan, memory);
  int num_shared = 0;
  for (std::size_t a = 0; a < regions.size(); ++a) {
    EXPECT_EQ(regions[a].begin % MemoryPlan::kAlignment, 0U) << regions[a].name;
    EXPECT_LE(regions[a].end, memory.arena_bytes) << regions[a].name;
    for (std::size_t b = a + 1; b < regions.size(); ++b) {
      if (regions[a].end <= regions[b].begin || regions[b].end <= regions[a].begin) continue;
      ++num_shared;
      EXPECT_FALSE(regions[a].host || regions[b].host)
          << regions[a].name << " and " << regions[b].name;
      EXPECT_TRUE(precedes(events, regions[a], regions[b]) ||
                  precedes(events, regions[b], regions[a]))
          << regions[a].name << " and " << regions[b].name;
    }
  }
  return num_shared;
}

TEST(MemoryPlan, AChainLivesInAFewBuffers) {
  Plan plan({.num_streams = 2});
  for (int n = 0; n < 20; ++n) add_link(plan, {.blocks = 8, .resources = kHalfSm});
  const Verdict verdict = verify(plan, {.device = h200_limits()});
  ASSERT_TRUE(verdict.ok());
  const HappensBefore order(plan, verdict.schedule);
  const MemoryPlan memory = plan_memory(plan, order);
  const std::size_t one = 8 * 8 * 4;
  EXPECT_EQ(memory.bytes_without_reuse, 20 * one);
  EXPECT_EQ(memory.arena_bytes, 2 * one) << "who writes X2 waits for all that read X0";
  EXPECT_GT(check(plan, verdict.schedule, memory), 0);

  const MemoryPlan apart = plan_memory(plan, order, BufferReuse::kOff);
  EXPECT_EQ(apart.arena_bytes, 20 * one);
  EXPECT_EQ(check(plan, verdict.schedule, apart), 0);
}

TEST(MemoryPlan, RowByRowChainsReuseOnceTheNextButOneHasBegun) {
  // Nobody waits for all rows, but node k + 2 begins after node k is complete.
  Plan plan({.num_streams = 2});
  const Shape shape = {8, 8};
  for (int n = 0; n < 12; ++n) {
    const TensorId own =
        plan.tensor({.name = "X" + std::to_string(n), .shape = shape, .tiles = {1, 8}});
    std::vector<OperandSpec> operands = {write(own, grid(shape, {1, 8}), 0)};
    if (n > 0) operands.push_back(read(own - 1, grid(shape, {1, 8}), 1));
    plan.add(node("n" + std::to_string(n), 8, operands));
  }
  const Verdict verdict = verify(plan, {.device = h200_limits()});
  ASSERT_TRUE(verdict.ok()) << sentences(verdict.faults);
  const MemoryPlan memory = plan_memory(plan, HappensBefore(plan, verdict.schedule));
  EXPECT_EQ(memory.arena_bytes, 3 * 8 * 8 * 4U) << "X3 takes the place of X0";
  EXPECT_GT(check(plan, verdict.schedule, memory), 0);
}

TEST(MemoryPlan, WhatTheHostSeesIsKept) {
  Plan plan({.num_streams = 1});
  const TensorId input = plan.tensor({.name = "in", .shape = {64}, .kind = TensorKind::kConstant});
  const TensorId a = plan.tensor({.name = "a", .shape = {64}});
  const TensorId b = plan.tensor({.name = "b", .shape = {64}, .output = true});
  const TensorId c = plan.tensor({.name = "c", .shape = {64}});
  const TensorId d = plan.tensor({.name = "d", .shape = {64}});
  static float mine[64];
  const TensorId e = plan.tensor({.name = "e", .shape = {64}, .address = mine});
  plan.add(node("1", 1, {read(input), write(a)}));
  plan.add(node("2", 1, {read(a), write(b)}));
  plan.add(node("3", 1, {read(b), write(c)}));
  plan.add(node("4", 1, {read(c), write(d)}));
  plan.add(node("5", 1, {read(d), write(e)}));
  const Verdict verdict = verify(plan, {.device = h200_limits()});
  ASSERT_TRUE(verdict.ok()) << sentences(verdict.faults);
  const MemoryPlan memory = plan_memory(plan, HappensBefore(plan, verdict.schedule));
  EXPECT_EQ(memory.bytes_without_reuse, 5 * 256U) << "e takes nothing of the arena";
  EXPECT_EQ(memory.arena_bytes, 4 * 256U) << "in and b for ever, a and d may share with c between";
  check(plan, verdict.schedule, memory);
}

TEST(MemoryPlan, RandomPlansNeverShareWhatIsStillInUse) {
  int num_shared = 0;
  for (std::uint32_t seed = 1; seed <= 500; ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    std::mt19937 random(seed);
    const auto pick = [&](int low, int high) {
      return std::uniform_int_distribution<int>(low, high)(random);
    };
    const Plan plan = random_graph(random, {.num_streams = pick(1, 3),
                                            .max_nodes = 10,
                                            .max_columns = 200,
                                            .percent_outputs = 20,
                                            .percent_scratch = 40});
    const DeviceLimits device{.name = "tiny", .num_sms = pick(1, 6)};
    const Verdict verdict = verify(plan, {.device = device});
    ASSERT_TRUE(verdict.ok()) << sentences(verdict.faults);
    const HappensBefore order(plan, verdict.schedule);
    const MemoryPlan memory = plan_memory(plan, order);
    EXPECT_LE(memory.arena_bytes, memory.bytes_without_reuse);
    num_shared += check(plan, verdict.schedule, memory);
    const MemoryPlan again = plan_memory(plan, order);
    EXPECT_EQ(again.tensor_offset, memory.tensor_offset);
    EXPECT_EQ(again.scratch_offset, memory.scratch_offset);
    if (HasFailure()) return;
  }
  std::printf("%d pairs of buffers shared memory\n", num_shared);
  EXPECT_GT(num_shared, 500);
}

}  // namespace
}  // namespace tileweave::testing
