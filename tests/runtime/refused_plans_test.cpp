// Every fault of verify(), planted into a plan that is right without it: a Program is not made,
// nothing stays allocated, and the device runs the right plan afterwards.
#include <gtest/gtest.h>

#include <algorithm>
#include <functional>

#include "tests/runtime/counting_device.h"
#include "tests/runtime/devices.h"
#include "tests/runtime/property.h"

namespace tileweave {
namespace {

struct Planted {
  FaultKind kind;
  std::function<MixPlan()> plan;
};

MixPlan with(const std::function<void(TwoNodes&)>& change) {
  TwoNodes two;
  change(two);
  return std::move(two.done());
}

const TileSet kRows = TileSet::plain({{8, 4}, {2, 4}});

std::vector<Planted> planted_faults() {
  return {
      {FaultKind::kTooFewArrivals,
       [] {
         return with([](TwoNodes& two) { two.second.inputs[0].target = TargetMap::constant(2); });
       }},
      {FaultKind::kTooManyArrivals,
       [] {
         return with([](TwoNodes& two) {
           // Two arrivals on every data tile, and a consumer that waits for one.
           two.first.outputs[0].kernel_tiles = TileSet::plain({{8, 4}, {1, 4}});
           two.first.outputs[0].tiles_of_work = {{0, 1}, {2, 3}, {4, 5}, {6, 7}};
           two.second.inputs[0].target = TargetMap::constant(1);
         });
       }},
      {FaultKind::kUncoveredRead,
       [] {
         return with([](TwoNodes& two) {
           two.second.inputs[0].map = TileMap::table({4, 1}, {0, 1, 2, 3, 4}, {0, 1, 2, 2});
         });
       }},
      {FaultKind::kUnsatisfiedWait,
       [] {
         return with([](TwoNodes& two) {
           const TensorId s = add_filled(
               two.mix, {.name = "s", .shape = {8}, .kind = TensorKind::kState, .tiles = {4}}, 3);
           two.second.inputs.push_back({.tensor = s, .target = TargetMap::constant(1)});
         });
       }},
      {FaultKind::kDoubleWrite,
       [] {
         return with([](TwoNodes& two) {
           two.first.outputs[0].tiles_of_work = {{0}, {1}, {2, 3}, {3}};
         });
       }},
      {FaultKind::kTilingsDisagree,
       [] {
         return with([](TwoNodes& two) {
           const TileSet other = TileSet::plain({{8, 4}, {4, 4}});
           two.second.inputs[0].map = TileMap::derive(kRows, other);
           two.second.inputs[0].assumed_tiles = other;
         });
       }},
      {FaultKind::kOrderNotPermutation,
       [] {
         return with([](TwoNodes& two) { two.first.order = TileOrder::table({0, 1, 1, 3}); });
       }},
      {FaultKind::kBackwardWait,
       [] {
         return with([](TwoNodes& two) {
           two.first.inputs[0] = {.tensor = two.y, .kernel_tiles = kRows};
           two.second.inputs[0] = {.tensor = two.x, .kernel_tiles = kRows};
           std::swap(two.first.outputs, two.second.outputs);
         });
       }},
      {FaultKind::kBufferReusedEarly,
       [] {
         TwoNodes two;
         MixPlan& mix = two.mix;
         add_mix(mix, two.first);
         const TensorId in_place =
             add_value(mix, {.name = "y in place", .shape = {8, 4}, .shares_buffer_with = two.y});
         add_mix(mix, {.name = "over y",
                       .inputs = {{.tensor = two.x, .kernel_tiles = kRows}},
                       .outputs = {{.tensor = in_place, .kernel_tiles = kRows}},
                       .num_works = 4});
         add_mix(mix, two.second);
         return std::move(mix);
       }},
      {FaultKind::kStarvation,
       [] {
         return with([](TwoNodes& two) {
           two.second.resources.shared_bytes = 120'000;
           two.second.edge = EdgePolicy{.if_ungrounded = IfUngrounded::kRefuse};
         });
       }},
      {FaultKind::kBlockFitsNoSm,
       [] { return with([](TwoNodes& two) { two.first.resources.shared_bytes = 300'000; }); }},
      {FaultKind::kStableReadOfWrittenBox,
       [] {
         return with([](TwoNodes& two) {
           const TensorId s =
               add_filled(two.mix, {.name = "s", .shape = {4}, .kind = TensorKind::kState}, 3);
           two.first.inputs.push_back({.tensor = s, .when = ReadTime::kPrologue});
           two.second.outputs.push_back({.tensor = s, .kernel_tiles = TileSet::plain({{4}, {1}})});
         });
       }},
      {FaultKind::kIndexOverflow,
       [] {
         MixPlan mix = with([](TwoNodes&) {});
         mix.plan.nodes()[0].num_works = mix.plan.nodes()[0].num_blocks = std::int64_t{1} << 33;
         return mix;
       }},
      {FaultKind::kSignalThroughView,
       [] {
         return with([](TwoNodes& two) {
           two.first.outputs[0].view = TileSet::plain({{8, 4}, {4, 4}});
         });
       }},
      {FaultKind::kUndeclaredWrite,
       [] {
         return with([](TwoNodes& two) {
           const TensorId c =
               add_filled(two.mix, {.name = "c", .shape = {4}, .kind = TensorKind::kConstant}, 3);
           two.second.outputs.push_back({.tensor = c, .kernel_tiles = TileSet::plain({{4}, {1}})});
         });
       }},
  };
}

TEST(RefusedPlans, HaveAPlantedPlanForEveryKindOfFault) {
  const std::vector<Planted> planted = planted_faults();
  for (int kind = 0; kind <= static_cast<int>(FaultKind::kUndeclaredWrite); ++kind) {
    EXPECT_TRUE(std::any_of(planted.begin(), planted.end(), [&](const Planted& p) {
      return static_cast<int>(p.kind) == kind;
    })) << name_of(static_cast<FaultKind>(kind));
  }
}

TEST(RefusedPlans, AreNotLoadedLeakNothingAndLeaveTheDeviceUsable) {
  CountingDevice device(open_mix_device({.way = CpuWay::kExplore, .num_sms = 2}));
  const MixPlan right = with([](TwoNodes&) {});
  for (const Planted& planted : planted_faults()) {
    SCOPED_TRACE(name_of(planted.kind));
    const MixPlan mix = planted.plan();
    const Verdict verdict = verify(mix.plan, {.device = device.limits()});
    const auto found = std::find_if(verdict.faults.begin(), verdict.faults.end(),
                                    [&](const Fault& fault) { return fault.kind == planted.kind; });
    ASSERT_NE(found, verdict.faults.end());
    for (const Mode mode : {Mode::kOverlap, Mode::kSerial}) {
      try {
        Program program(device, mix.plan, {.mode = mode});
        ADD_FAILURE() << "was loaded";
      } catch (const Error& error) {
        EXPECT_NE(std::string(error.what()).find(verdict.faults.front().sentence),
                  std::string::npos)
            << error.what();
      }
      EXPECT_EQ(device.live(), 0);
    }
    ASSERT_TRUE(runs_like_the_oracle(device, right, {}));
    EXPECT_EQ(device.live(), 0);
  }
}

TEST(RefusedPlans, KernelAndNodeMustHaveTheSameSlots) {
  const auto device = open_mix_device({.num_sms = 2});
  MixPlan mix = with([](TwoNodes&) {});
  mix.plan.nodes()[0].kernel = mix.plan.nodes()[0].kernel == "tile_mix.2" ? "tile_mix.3" : "";
  EXPECT_THROW(Program(*device, mix.plan), Error);
  mix.plan.nodes()[0].kernel = "no such kernel";
  EXPECT_THROW(Program(*device, mix.plan), Error);
}

}  // namespace
}  // namespace tileweave
