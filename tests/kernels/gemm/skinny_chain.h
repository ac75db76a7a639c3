// A chain of skinny GEMMs as a decode step has them: norm and gate, then down with a residual.
#pragma once

#include <memory>
#include <vector>

#include "tests/kernels/gemm/skinny_case.h"

namespace tileweave {

struct SkinnyChainOptions {
  std::int64_t m = 1, hidden = 272, inner = 2064;
  int layers = 4;
  std::int64_t wait_k = 0;   // of the second product, whose input is tiled to match
  std::int64_t split_k = 1;  //
  SkinnyKernel kernel = SkinnyKernel::kBulk;
  EdgePolicy edge = {};
  std::int32_t num_streams = 2;
};

/// Hidden rows after all layers; rows of x are taken from `first_row` of a fixed batch on.
inline std::vector<float> run_skinny_chain(Device& device, const SkinnyChainOptions& o,
                                           const RunOptions& run, int num_runs = 2,
                                           std::int64_t first_row = 0) {
  Plan plan({.num_streams = o.num_streams, .edge = o.edge});
  std::vector<std::unique_ptr<PackedOnDevice>> weights;
  const auto weight = [&](std::int64_t n, std::int64_t k, bool gated, std::uint64_t seed) {
    return chain_weight(device, plan, weights, n, k, gated, seed);
  };
  const TensorId first =
      plan.tensor({.name = "x", .shape = {o.m, o.hidden}, .kind = TensorKind::kConstant});
  const TensorId norm = plan.tensor(
      {.name = "norm", .shape = {o.hidden}, .dtype = DType::kF32, .kind = TensorKind::kConstant});
  TensorId x = first;
  for (int layer = 0; layer < o.layers; ++layer) {
    const std::string at = "layer " + std::to_string(layer) + " ";
    const TensorId act = plan.tensor({.name = at + "act",
                                      .shape = {o.m, o.inner},
                                      .dtype = DType::kBF16,
                                      .tiles = {o.m, o.wait_k == 0 ? o.inner : o.wait_k}});
    const TensorId y = plan.tensor({.name = at + "y",
                                    .shape = {o.m, o.hidden},
                                    .tiles = {o.m, o.hidden},
                                    .output = layer + 1 == o.layers});
    const auto seed = static_cast<std::uint64_t>(10 * layer + 10);
    plan.add(skinny_gemm(
        plan.tensors(),
        {.name = at + "gate-up",
         .gated = true,
         .kernel = o.kernel,
         .strips_per_work = 4,
         .stages = 2},
        {.x = x, .w = weight(2 * o.inner, o.hidden, true, seed), .y = act, .norm_weight = norm}));
    plan.add(skinny_gemm(
        plan.tensors(),
        {.name = at + "down",
         .kernel = o.kernel,
         .strips_per_work = 1,
         .split_k = o.split_k,
         .stages = 2,
         .wait_k = o.wait_k},
        {.x = act, .w = weight(o.hidden, o.inner, false, seed + 1), .y = y, .residual = x}));
    x = y;
  }
  Program program(device, plan, run);
  const std::vector<float> rows = random_values<float>(64 * o.hidden, 7);
  const auto begin = rows.begin() + first_row * o.hidden;
  program.write(first, std::vector<float>(begin, begin + o.m * o.hidden));
  std::vector<float> ones(static_cast<std::size_t>(o.hidden), 1.0F);
  program.write(norm, ones);
  for (int i = 0; i < num_runs; ++i) program.run();
  program.synchronize();
  return program.read<float>(x);
}

}  // namespace tileweave
