// Maps and targets compiled into the kernel, in random chains: each value's tensor, its producer
// and its consumer are cut by rows of sizes of their own, and the bits are those of the host.
#include <gtest/gtest.h>

#include <random>
#include <string>

#include "tests/runtime/devices.h"
#include "tests/runtime/property.h"
#include "tests/runtime/tile_mix_kernel.h"
#include "tileweave/plan/verify.h"

namespace tileweave {
namespace {

struct RowCut {
  std::int64_t kernel;
  std::int64_t data;
};

MixPlan random_chain(std::uint64_t seed) {
  std::mt19937_64 engine(seed);
  const auto between = [&](std::int64_t low, std::int64_t high) {
    return low + static_cast<std::int64_t>(engine() % static_cast<std::uint64_t>(high - low + 1));
  };
  MixPlan mix;
  mix.plan.options() = {.name = "rows", .num_streams = static_cast<std::int32_t>(between(1, 3))};
  const std::int64_t rows = between(1, 23);
  const Shape shape = {rows, between(1, 3)};
  const auto cut = [&](std::int64_t size) { return TileSet::plain({shape, {size, shape[1]}}); };
  TensorId from = add_filled(mix, {.name = "x", .shape = shape, .kind = TensorKind::kConstant}, 5);
  RowCut made{.kernel = 1, .data = 1};
  const std::int64_t length = between(2, 6);
  for (std::int64_t i = 0; i < length; ++i) {
    const RowCut out{.kernel = between(1, rows), .data = between(1, rows)};
    const std::int64_t in_kernel = between(1, rows);
    const TensorId to = add_value(mix, {.name = "v" + std::to_string(i),
                                        .shape = shape,
                                        .tiles = {out.data, shape[1]},
                                        .output = i + 1 == length});
    MixNode node{.name = "node " + std::to_string(i), .salt = static_cast<std::uint32_t>(i)};
    node.num_works = ceil_div(rows, out.kernel);
    node.row_maps = MixRowMaps::args(rows, in_kernel, made.data, out.kernel, out.data, made.kernel);
    const auto map = [&](int operand, std::int64_t kernel, std::int64_t data) {
      return TileMap::functor({ceil_div(rows, kernel), 1}, {shape, {data, shape[1]}},
                              [operand](const Coord& k, const LaunchArgs& args) {
                                return MixRowMaps::map(operand, k, args);
                              });
    };
    MixOperandSpec input{.tensor = from, .kernel_tiles = cut(in_kernel)};
    for (std::int64_t w = 0; w < node.num_works; ++w) {
      input.tiles_of_work.push_back({between(0, ceil_div(rows, in_kernel) - 1)});
    }
    if (i > 0) {
      input.map = map(0, in_kernel, made.data);
      input.target = TargetMap::functor([](const Coord& d, const LaunchArgs& args) {
        return std::int64_t{MixRowMaps::target(0, d, args)};
      });
    }
    node.inputs = {input};
    node.outputs = {
        {.tensor = to, .kernel_tiles = cut(out.kernel), .map = map(1, out.kernel, out.data)}};
    add_mix(mix, std::move(node));
    from = to;
    made = out;
  }
  return mix;
}

TEST(FunctorMaps, GiveTheBitsOfTheHostInRandomChains) {
  std::int64_t tile_edges = 0;
  for (std::uint64_t seed = 1; seed <= 100; ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    const MixPlan mix = random_chain(seed);
    for (const std::int32_t num_sms : {2, 7}) {
      const auto device = open_mix_device(
          {.way = CpuWay::kExplore, .num_sms = num_sms, .seed = seed, .delay_probability = 0.3});
      for (const Mode mode : {Mode::kOverlap, Mode::kSerial}) {
        ASSERT_TRUE(runs_like_the_oracle(*device, mix, {.mode = mode}));
      }
      for (const EdgeReport& edge : verify(mix.plan, {.device = device->limits()}).edges) {
        tile_edges += edge.kind == EdgeKind::kTile ? 1 : 0;
      }
    }
  }
  EXPECT_GT(tile_edges, 200);
}

TEST(FunctorMaps, ATargetOneTooHighIsFound) {
  MixPlan mix = random_chain(4);
  for (OperandSpec& operand : mix.plan.nodes()[1].operands) {
    if (!operand.target) continue;
    operand.target = TargetMap::functor([](const Coord& d, const LaunchArgs& args) {
      return std::int64_t{MixRowMaps::target(0, d, args)} + 1;
    });
  }
  EXPECT_FALSE(verify(mix.plan, {.device = emulated(7)}).ok());
}

}  // namespace
}  // namespace tileweave
