// Y = X W, Z = Y V with Y tiled: what the device tests of the GEMM run in many forms.
#pragma once

#include <cmath>
#include <cstdint>
#include <string>
#include <vector>

#include "tests/kernels/operand_values.h"
#include "tileweave/kernels/gemm/gemm.h"
#include "tileweave/kernels/gemm/gemm_ref.h"
#include "tileweave/runtime/program.h"

namespace tileweave {

struct ChainSizes {
  std::int64_t m = 97, k = 70, n = 131, p = 67;  // X (m, k), W (k, n), V (n, p)
};

/// One way to cut the chain: nothing of it may show in the bits of Z except splits of K.
struct ChainCase {
  std::string name;
  Coord y_tiles;
  GemmOptions first = {};
  GemmOptions second = {};
};

struct ChainResult {
  std::vector<float> y, z;
  bool operator==(const ChainResult&) const = default;
};

struct Chain {
  Plan plan;
  TensorId x, w, y, v, z;

  Chain(const ChainSizes& s, const ChainCase& c, const PlanOptions& options) : plan(options) {
    x = plan.tensor({.name = "X", .shape = {s.m, s.k}, .kind = TensorKind::kConstant});
    w = plan.tensor({.name = "W", .shape = {s.k, s.n}, .kind = TensorKind::kConstant});
    y = plan.tensor({.name = "Y", .shape = {s.m, s.n}, .tiles = c.y_tiles, .output = true});
    v = plan.tensor({.name = "V", .shape = {s.n, s.p}, .kind = TensorKind::kConstant});
    z = plan.tensor({.name = "Z", .shape = {s.m, s.p}, .tiles = {32, 32}, .output = true});
    plan.add(gemm(plan.tensors(), c.first, x, w, y));
    plan.add(gemm(plan.tensors(), c.second, y, v, z));
  }
};

inline ChainResult run_chain(Device& device, const ChainSizes& sizes, const ChainCase& c,
                             const RunOptions& options, StartRule start = StartRule::kWaitAll,
                             int num_runs = 2) {
  const Chain chain(sizes, c, {.edge = {.start = start}});
  Program program(device, chain.plan, options);
  if (options.mode == Mode::kOverlap && chain.plan.tensors()[chain.y].tiled()) {
    // A downgraded edge would prove nothing about overlap.
    require(program.verdict().num_downgrades() == 0, "run the chain", "a tile edge",
            program.verdict().table(chain.plan));
  }
  program.write(chain.x, random_values<float>(sizes.m * sizes.k, 1));
  program.write(chain.w, random_values<float>(sizes.k * sizes.n, 2));
  program.write(chain.v, random_values<float>(sizes.n * sizes.p, 3));
  for (int i = 0; i < num_runs; ++i) program.run();
  program.synchronize();
  return {program.read<float>(chain.y), program.read<float>(chain.z)};
}

/// Largest error of `c` as a share of what fp32 sums may be off by: at most 1 when right.
inline double worst_share_of_bound(const GemmShape& shape, const std::vector<float>& a,
                                   const std::vector<float>& b, const std::vector<float>& c,
                                   std::int64_t parts) {
  const GemmReference exact = gemm_reference<float>(shape, a, b);
  double worst = 0;
  for (std::size_t i = 0; i < c.size(); ++i) {
    const double bound =
        gemm_error_bound(exact.c[i], exact.magnitudes[i], shape.k, parts, DType::kF32);
    const double error = std::fabs(c[i] - exact.c[i]);
    worst = std::fmax(worst, std::isnan(error) ? INFINITY : error / std::fmax(bound, 1e-300));
  }
  return worst;
}

inline double worst_share_of_bound(const ChainSizes& s, const ChainResult& result,
                                   std::int64_t parts) {
  const double y = worst_share_of_bound({s.m, s.n, s.k}, random_values<float>(s.m * s.k, 1),
                                        random_values<float>(s.k * s.n, 2), result.y, parts);
  const double z = worst_share_of_bound({s.m, s.p, s.n}, result.y,
                                        random_values<float>(s.n * s.p, 3), result.z, parts);
  return std::fmax(y, z);
}

/// Forms that leave K whole: all give the same bits.
inline std::vector<ChainCase> whole_k_cases() {
  return {
      {"rows", {64, 131}},
      {"rows that divide nothing", {23, 131}, {.tile_m = 17, .tile_n = 29}, {.tile_m = 40}},
      {"columns", {97, 32}, {.tile_n = 24}, {.tile_m = 50, .tile_n = 20}},
      {"2-D, a whole row tile per wait", {20, 30}, {.tile_m = 32, .tile_n = 32}, {.tile_m = 16}},
      {"2-D, a slice of K per wait",
       {20, 30},
       {.tile_m = 32, .tile_n = 32},
       {.tile_m = 16, .tile_k = 10, .wait_k = 30}},
      {"single elements", {1, 1}, {}, {.tile_k = 8, .wait_k = 64}},
      {"one data tile", {97, 131}},
      {"coarse rows", {32, 131}, {.tile_m = 8}, {.tile_m = 8, .coarse_m = 4}},
      {"a whole row of C per work", {16, 131}, {.tile_m = 16, .tile_n = 131}, {.tile_n = 67}},
      {"persistent blocks, rotated",
       {16, 131},
       {.tile_m = 16, .tile_n = 32, .num_blocks = 3},
       {.tile_m = 16, .tile_n = 32, .num_blocks = 2, .order = TileOrder::rotation(4)}},
      {"prefetch", {64, 131}, {.prefetch_k = 16}, {.prefetch_k = 200}},
  };
}

/// Forms that split K in up to 4 parts.
inline std::vector<ChainCase> split_k_cases() {
  const GemmOptions split{
      .tile_m = 24, .tile_n = 40, .tile_k = 8, .split = GemmSplit::kSplitK, .splits = 3};
  const GemmOptions stream{
      .tile_m = 24, .tile_n = 40, .tile_k = 8, .split = GemmSplit::kStreamK, .num_blocks = 29};
  GemmOptions sliced = stream;
  sliced.wait_k = 16;
  GemmOptions backwards = split;
  backwards.order = TileOrder::rotation(5);
  return {{"split-K into rows", {32, 131}, split, {}},
          {"split-K from slices", {32, 16}, {}, sliced},
          {"Stream-K into 2-D tiles", {24, 40}, stream, split},
          {"both Stream-K", {50, 131}, stream, stream},
          {"rotated split-K", {50, 50}, backwards, backwards}};
}

}  // namespace tileweave
