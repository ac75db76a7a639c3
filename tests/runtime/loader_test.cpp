// What is worked out when a plan is loaded: targets in closed form, and where events are recorded.
#include "tileweave/runtime/loader.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "tests/plan/chain_plans.h"
#include "tests/plan/small_plans.h"
#include "tests/runtime/devices.h"
#include "tileweave/plan/contract_check.h"

namespace tileweave {
namespace {

using testing::grid;
using testing::node;
using testing::write;

const Shape kShape = {8, 4};

/// The closed form of the target of `Y` (data tiles of two rows) that one node makes.
std::optional<Tiling> closed_form(const NodeSpec& spec, Plan& plan) {
  const NodeId id = plan.add(spec);
  ContractChecker contract(plan.tensors(), Report::kAtFinish);
  contract.add(id, plan.nodes().back());
  return closed_form_producer(0, plan.nodes(), plan.tensors(), contract.arrivals(0));
}

TEST(ClosedFormTarget, IsTheProducersGridWhereEveryKernelTileIsNamed) {
  Plan plan;
  const TensorId y = plan.tensor({.name = "Y", .shape = kShape, .tiles = {2, 4}});
  const auto producer = closed_form(node("make", 16, {write(y, grid(kShape, {1, 2}), 0)}), plan);
  ASSERT_TRUE(producer.has_value());
  EXPECT_EQ(producer->tile, (Coord{1, 2}));
}

TEST(ClosedFormTarget, IsNoneWhereAKernelTileThatNoWorkNamesWouldBeWaitedFor) {
  Plan plan;
  const TensorId y = plan.tensor({.name = "Y", .shape = kShape, .tiles = {2, 4}});
  NodeSpec spec = node("make", 4, {write(y, grid(kShape, {1, 2}), 0)});
  // Four of the sixteen kernel tiles: one arrival per data tile, where the grids say four.
  spec.operands[0].tiles_of_work = [](std::int64_t w) { return std::vector<std::int64_t>{4 * w}; };
  EXPECT_FALSE(closed_form(spec, plan).has_value());
}

TEST(ClosedFormTarget, RunsEndWhereKernelTilesAreLeftOut) {
  // Waiting for arrivals that the grids promise and nobody makes would be a deadlock.
  TwoNodes two;
  two.mix.plan.tile(two.y, {4, 4});
  two.first.outputs[0].kernel_tiles = TileSet::plain({{8, 4}, {2, 2}});  // 8 tiles, 4 of them named
  two.first.outputs[0].tiles_of_work = {{0}, {2}, {4}, {5, 6}};
  two.second.num_works = 1;
  two.second.inputs[0].kernel_tiles = TileSet::plain({{8, 4}, {2, 2}});
  two.second.inputs[0].tiles_of_work = {{0, 2, 5}};
  two.second.outputs[0].kernel_tiles = {};
  MixPlan& mix = two.done();
  for (const Mode mode : {Mode::kSerial, Mode::kOverlap}) {
    const auto device = open_mix_device({.way = CpuWay::kExplore, .num_sms = 3});
    Program program(*device, mix.plan, {.mode = mode});
    upload(program, mix);
    MixOracle oracle(mix);
    for (int run = 0; run < 3; ++run) {
      program.run();
      oracle.run();
    }
    program.synchronize();
    EXPECT_EQ(program.read<std::uint32_t>(two.z), oracle.values(two.z));
  }
}

/// Nodes on streams by number, each with what it waits for.
Schedule schedule(std::vector<ScheduledNode> nodes) {
  return {.num_streams = 2, .nodes = std::move(nodes)};
}

TEST(EndEvents, StandBehindALaunchThatIsWaitedForAfterMoreWasPutOnItsStream) {
  const std::vector<Dependency> on_0 = {{0, Release::kCompleted}};
  const Schedule late = schedule({{.stream = 0}, {.stream = 0}, {.stream = 1, .after = on_0}});
  EXPECT_EQ(end_event_of(0, late), EndEvent::kRecorded);
  EXPECT_EQ(end_event_of(1, late), EndEvent::kNone);
  EXPECT_EQ(end_event_of(2, late), EndEvent::kNone);
}

TEST(EndEvents, AreLeftOutWhereTheStreamHoldsNothingElseOrOrdersByItself) {
  const std::vector<Dependency> on_0 = {{0, Release::kCompleted}};
  const Schedule at_once = schedule({{.stream = 0}, {.stream = 1, .after = on_0}, {.stream = 0}});
  EXPECT_EQ(end_event_of(0, at_once), EndEvent::kNone);
  const Schedule same = schedule({{.stream = 0}, {.stream = 0}, {.stream = 0, .after = on_0}});
  EXPECT_EQ(end_event_of(0, same), EndEvent::kNone);
  const Schedule begun =
      schedule({{.stream = 0}, {.stream = 0}, {.stream = 1, .after = {{0, Release::kAllBegun}}}});
  EXPECT_EQ(end_event_of(0, begun), EndEvent::kNone);
}

TEST(EndEvents, DoNotPartAProgrammaticPair) {
  const Schedule pair = schedule({{.stream = 0},
                                  {.stream = 0, .after = {{0, Release::kProgrammatic}}},
                                  {.stream = 1, .after = {{0, Release::kCompleted}}}});
  EXPECT_EQ(end_event_of(0, pair), EndEvent::kNone);
}

}  // namespace
}  // namespace tileweave
