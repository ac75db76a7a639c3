// Y = X W, R = rms_norm(Y), Z = R V: a norm between two GEMMs, as the device tests run it.
#pragma once

#include <cmath>
#include <cstdint>
#include <string>
#include <vector>

#include "tests/kernels/operand_values.h"
#include "tileweave/kernels/gemm/gemm.h"
#include "tileweave/kernels/norm/rms_norm.h"
#include "tileweave/kernels/norm/rms_norm_ref.h"
#include "tileweave/runtime/program.h"

namespace tileweave {

/// How the tensors around the norm are tiled, and the norm itself.
struct NormCase {
  std::string name;
  Coord y_tiles = {}, r_tiles = {};
  RmsNormOptions norm = {};
  bool in_place = false;
};

inline std::vector<NormCase> norm_cases() {
  return {{"rows", {16, 72}, {16, 72}},
          {"rows of their own", {1, 72}, {1, 72}, {.tile_m = 1}},
          {"rows that divide nothing", {7, 72}, {5, 72}, {.tile_m = 3}},
          {"columns", {45, 10}, {45, 16}, {.tile_m = 4}},
          {"2-D", {6, 20}, {9, 31}, {.tile_m = 5}},
          {"persistent blocks", {8, 72}, {8, 72}, {.tile_m = 2, .num_blocks = 3}},
          {"in place", {16, 72}, {16, 72}, {}, true}};
}

struct NormResult {
  std::vector<float> y, r, z;
  bool operator==(const NormResult& other) const { return r == other.r && z == other.z; }
};

inline NormResult run_norm_chain(Device& device, const NormCase& c, const RunOptions& options) {
  const std::int64_t m = 45, k = 33, n = 72, p = 40;
  Plan plan({.num_streams = 3, .edge = {.start = StartRule::kWaitAll}});
  const auto constant = [&](const char* name, const Shape& shape) {
    return plan.tensor({.name = name, .shape = shape, .kind = TensorKind::kConstant});
  };
  const TensorId x = constant("X", {m, k});
  const TensorId w = constant("W", {k, n});
  const TensorId weight = constant("weight", {n});
  const TensorId v = constant("V", {n, p});
  const TensorId y =
      plan.tensor({.name = "Y", .shape = {m, n}, .tiles = c.y_tiles, .output = !c.in_place});
  const TensorId r = plan.tensor({.name = "R",
                                  .shape = {m, n},
                                  .tiles = c.r_tiles,
                                  .shares_buffer_with = c.in_place ? y : kNoTensor,
                                  .output = true});
  const TensorId z = plan.tensor({.name = "Z", .shape = {m, p}, .output = true});
  plan.add(gemm(plan.tensors(), {.tile_m = 16, .tile_n = 24}, x, w, y));
  plan.add(rms_norm(plan.tensors(), c.norm, y, weight, r));
  plan.add(gemm(plan.tensors(), {.tile_m = 12, .tile_n = 20}, r, v, z));
  Program program(device, plan, options);
  program.write(x, random_values<float>(m * k, 1));
  program.write(w, random_values<float>(k * n, 2));
  program.write(weight, random_values<float>(n, 3));
  program.write(v, random_values<float>(n * p, 4));
  for (int i = 0; i < 2; ++i) program.run();
  program.synchronize();
  return {c.in_place ? std::vector<float>{} : program.read<float>(y), program.read<float>(r),
          program.read<float>(z)};
}

/// Largest error of R as a share of its bound: at most 1 when right.
inline double worst_share_of_bound(const NormResult& result) {
  const std::vector<float> weight = random_values<float>(72, 3);
  const std::vector<double> exact = rms_norm_reference<float, float>(result.y, weight, 1e-5F);
  double worst = 0;
  for (std::size_t i = 0; i < exact.size(); ++i) {
    const double bound = rms_norm_error_bound(exact[i], 72, DType::kF32);
    const double error = std::fabs(result.r[i] - exact[i]);
    worst = std::fmax(worst, std::isnan(error) ? INFINITY : error / std::fmax(bound, 1e-300));
  }
  return worst;
}

}  // namespace tileweave
