// GEMMs on the emulated device: every tiling, split and order, with checking views, in all ways of
// running blocks.
#include <gtest/gtest.h>

#include <memory>
#include <string>

#include "tests/kernels/gemm/gemm_chain.h"
#include "tileweave/kernels/gemm/gemm_args.h"

namespace tileweave {
namespace {

std::unique_ptr<Device> open(const CpuOptions& options) {
  auto device = open_cpu_device(options);
  add_gemm_cpu(device->kernels());
  return device;
}

TEST(GemmCpu, WholeKGivesTheSameBitsForEveryTilingAndMode) {
  const auto device = open({.num_sms = 3, .check_views = CheckViews::kOn});
  const ChainSizes sizes;
  const ChainResult expected =
      run_chain(*device, sizes, {.name = "untiled", .y_tiles = {}}, {.mode = Mode::kSerial});
  EXPECT_LE(worst_share_of_bound(sizes, expected, 1), 1);
  for (const ChainCase& c : whole_k_cases()) {
    for (const Mode mode : {Mode::kSerial, Mode::kOverlap}) {
      SCOPED_TRACE(c.name + (mode == Mode::kSerial ? ", serial" : ", overlap"));
      EXPECT_TRUE(run_chain(*device, sizes, c, {.mode = mode}) == expected);
    }
  }
}

TEST(GemmCpu, SplitKAndStreamKAreRightAndGiveTheSameBitsInBothModes) {
  const auto device = open({.num_sms = 3, .check_views = CheckViews::kOn});
  const ChainSizes sizes;
  for (const ChainCase& c : split_k_cases()) {
    SCOPED_TRACE(c.name);
    const ChainResult serial = run_chain(*device, sizes, c, {.mode = Mode::kSerial});
    EXPECT_LE(worst_share_of_bound(sizes, serial, 4), 1);
    for (const Submit submit : {Submit::kEager, Submit::kGraph}) {
      EXPECT_TRUE(run_chain(*device, sizes, c, {.submit = submit}) == serial);
    }
  }
}

TEST(GemmCpu, ExploredSchedulesGiveTheBitsOfSerial) {
  const ChainSizes sizes{.m = 37, .k = 20, .n = 41, .p = 23};
  std::vector<ChainCase> cases = split_k_cases();
  for (const ChainCase& c : whole_k_cases()) cases.push_back(c);
  for (ChainCase c : cases) {
    if (c.y_tiles == Coord{1, 1}) continue;
    c.y_tiles = {std::min(c.y_tiles[0], sizes.m), std::min(c.y_tiles[1], sizes.n)};
    // 41 columns of Y in steps of 8: up to 6 (tile, k step) pairs per C tile.
    if (c.first.split == GemmSplit::kStreamK) c.first.num_blocks = 7;
    if (c.second.split == GemmSplit::kStreamK) c.second.num_blocks = 7;
    ChainResult expected;
    for (std::uint64_t seed = 1; seed <= 6; ++seed) {
      SCOPED_TRACE(c.name + ", seed " + std::to_string(seed));
      const auto device = open({.way = CpuWay::kExplore,
                                .num_sms = static_cast<std::int32_t>(seed % 2 == 0 ? 2 : 7),
                                .seed = seed,
                                .delay_probability = 0.2,
                                .check_views = CheckViews::kOn});
      if (seed == 1) expected = run_chain(*device, sizes, c, {.mode = Mode::kSerial});
      ASSERT_TRUE(run_chain(*device, sizes, c, {}) == expected);
    }
    EXPECT_LE(worst_share_of_bound(sizes, expected, 4), 1) << c.name;
  }
}

TEST(GemmCpu, AProducedBIsWaitedForInBothLayouts) {
  for (const BLayout layout : {BLayout::kKxN, BLayout::kNxK}) {
    for (std::uint64_t seed = 1; seed <= 4; ++seed) {
      SCOPED_TRACE("seed " + std::to_string(seed));
      const auto device = open(
          {.way = CpuWay::kExplore, .num_sms = 3, .seed = seed, .check_views = CheckViews::kOn});
      // A = P Q and B = R S are both produced; C = A B.
      const bool k_first = layout == BLayout::kKxN;
      const std::int64_t m = 21, n = 34, k = 29, inner = 11;
      Plan plan({.num_streams = 3, .edge = {.start = StartRule::kWaitAll}});
      const auto constant = [&](const char* name, const Shape& shape) {
        return plan.tensor({.name = name, .shape = shape, .kind = TensorKind::kConstant});
      };
      const Shape b_shape = k_first ? Shape{k, n} : Shape{n, k};
      const TensorId p = constant("P", {m, inner});
      const TensorId q = constant("Q", {inner, k});
      const TensorId r = constant("R", {b_shape[0], inner});
      const TensorId s = constant("S", {inner, b_shape[1]});
      const TensorId a =
          plan.tensor({.name = "A", .shape = {m, k}, .tiles = {8, 16}, .output = true});
      const TensorId b =
          plan.tensor({.name = "B", .shape = b_shape, .tiles = {10, 10}, .output = true});
      const TensorId c = plan.tensor({.name = "C", .shape = {m, n}, .output = true});
      const GemmOptions small{.tile_m = 8, .tile_n = 8, .tile_k = 4};
      plan.add(gemm(plan.tensors(), small, p, q, a));
      plan.add(gemm(plan.tensors(), small, r, s, b));
      GemmOptions last = small;
      last.b_layout = layout;
      last.wait_k = 12;
      plan.add(gemm(plan.tensors(), last, a, b, c));
      Program program(*device, plan);
      program.write(p, random_values<float>(m * inner, 1));
      program.write(q, random_values<float>(inner * k, 2));
      program.write(r, random_values<float>(b_shape[0] * inner, 3));
      program.write(s, random_values<float>(inner * b_shape[1], 4));
      program.run();
      program.synchronize();
      EXPECT_LE(worst_share_of_bound({m, n, k, layout}, program.read<float>(a),
                                     program.read<float>(b), program.read<float>(c), 1),
                1);
    }
  }
}

TEST(GemmCpu, CheckingViewsSeeAKernelThatReadsBeyondItsDeclaredTiles) {
  const auto device = open({.num_sms = 2, .check_views = CheckViews::kOn});
  const ChainSizes sizes;
  Chain chain(sizes, {.name = "rows", .y_tiles = {32, 131}}, {});
  // The second GEMM claims to read the first row tile only, whatever it computes.
  chain.plan.nodes()[1].operands[GemmOperands::kA].tiles_of_work = [](std::int64_t) {
    return std::vector<std::int64_t>{0};
  };
  Program program(*device, chain.plan, {.mode = Mode::kSerial});
  try {
    program.run();
    program.synchronize();
    FAIL() << "the undeclared access was not seen";
  } catch (const Error& error) {
    EXPECT_NE(std::string(error.what()).find("`Y`"), std::string::npos) << error.what();
  }
}

}  // namespace
}  // namespace tileweave
