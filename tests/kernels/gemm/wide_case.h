// One wide GEMM, and a chain of them as a prompt's step has it; on either device.
#pragma once

#include <memory>
#include <vector>

#include "tests/kernels/gemm/skinny_case.h"
#include "tileweave/kernels/gemm/wide_gemm.h"

namespace tileweave {

inline std::vector<float> run_wide(Device& device, const SkinnyCase& c, const SkinnyData& data,
                                   const RunOptions& run = {}) {
  return run_product(device, c, data, run, [&](Plan& plan, const ProductTensors& t) {
    plan.add(wide_gemm(plan.tensors(), {.gated = c.options.gated, .split_k = c.options.split_k},
                       {.x = t.x, .w = t.w, .y = t.y, .residual = t.residual, .bias = t.bias}));
  });
}

/// Sizes that meet every edge: 1, primes, tiles ± 1, slices and parts of K ± 1, rows of x that are
/// not aligned, ragged strips, rings that go round more than twice.
inline std::vector<SkinnyCase> wide_cases() {
  std::vector<SkinnyCase> cases;
  for (const std::int64_t m : {1, 2, 31, 64, 65, 127, 128, 129, 251}) {
    cases.push_back({.m = m, .n = 131, .k = 200, .residual = true});
    cases.push_back({.m = m, .n = 48, .k = 77, .bias = true, .y_type = DType::kBF16});
  }
  for (const std::int64_t n : {1, 15, 16, 17, 63, 64, 65, 127, 128, 129, 257}) {
    cases.push_back({.m = 5, .n = n, .k = 64, .residual = true, .bias = true});
    cases.push_back({.m = 5, .n = n, .k = 72, .y_type = DType::kBF16});
  }
  for (const std::int64_t k :
       {1,   7,   8,   15,  16,  17,  63,  64,   65,   112,  113,  120,  127,  128,  129,  136,
        144, 383, 384, 392, 511, 512, 513, 1016, 1023, 1024, 1025, 1032, 2047, 2048, 2056, 4099}) {
    cases.push_back({.m = 3, .n = 35, .k = k});
  }
  for (const std::int64_t half : {1, 8, 15, 16, 17, 31, 32, 33, 63, 64, 65, 70}) {
    SkinnyCase gated{.m = 9, .n = 2 * half, .k = 160, .bias = true, .y_type = DType::kBF16};
    gated.options = {.gated = true, .strips_per_work = 2};
    cases.push_back(gated);
    gated.m = 130;
    gated.k = 95;
    gated.bias = false;
    gated.y_type = DType::kF32;
    gated.residual = true;
    cases.push_back(gated);
  }
  for (const std::int64_t split : {2, 3, 4}) {
    cases.push_back({.m = 130,
                     .n = 150,
                     .k = 3100,
                     .residual = true,
                     .bias = true,
                     .options = {.split_k = split}});
    cases.push_back({.m = 7,
                     .n = 2 * 70,
                     .k = 3591,
                     .y_type = DType::kBF16,
                     .options = {.gated = true, .strips_per_work = 2, .split_k = split}});
  }
  return cases;
}

struct WideChainOptions {
  std::int64_t m = 300, hidden = 272, inner = 416;
  int layers = 4;
  std::int64_t split_k = 1;         // of the products that read `inner`
  std::int64_t tile_rows = 128;     // data tiles of what lies between two products
  std::int64_t tile_columns = 208;  //
  EdgePolicy edge = {};
  std::int32_t num_streams = 2;
};

/// Hidden rows after all layers: up, gated, and down with a residual. Between them bf16, which the
/// next product reads; the residual is the f32 sum of the layer before.
inline std::vector<float> run_wide_chain(Device& device, const WideChainOptions& o,
                                         const RunOptions& run, int num_runs = 2) {
  Plan plan({.num_streams = o.num_streams, .edge = o.edge});
  std::vector<std::unique_ptr<PackedOnDevice>> weights;
  const auto weight = [&](std::int64_t n, std::int64_t k, bool gated, std::uint64_t seed) {
    return chain_weight(device, plan, weights, n, k, gated, seed);
  };
  const auto value = [&](const std::string& name, std::int64_t columns, DType dtype) {
    return plan.tensor({.name = name,
                        .shape = {o.m, columns},
                        .dtype = dtype,
                        .tiles = {std::min(o.m, o.tile_rows), std::min(columns, o.tile_columns)}});
  };
  const TensorId first = plan.tensor({.name = "x",
                                      .shape = {o.m, o.hidden},
                                      .dtype = DType::kBF16,
                                      .kind = TensorKind::kConstant});
  TensorId x = first;
  TensorId sum = kNoTensor;
  for (int layer = 0; layer < o.layers; ++layer) {
    const std::string at = "layer " + std::to_string(layer) + " ";
    const auto seed = static_cast<std::uint64_t>(10 * layer + 10);
    const TensorId act = value(at + "act", o.inner, DType::kBF16);
    plan.add(wide_gemm(plan.tensors(), {.name = at + "gate-up", .gated = true},
                       {.x = x, .w = weight(2 * o.inner, o.hidden, true, seed), .y = act}));
    const TensorId down = weight(o.hidden, o.inner, false, seed + 1);
    const bool last = layer + 1 == o.layers;
    const TensorId y = last ? plan.tensor({.name = at + "y",
                                           .shape = {o.m, o.hidden},
                                           .tiles = {std::min(o.m, o.tile_rows), o.hidden},
                                           .output = true})
                            : value(at + "y", o.hidden, DType::kF32);
    plan.add(wide_gemm(plan.tensors(), {.name = at + "down", .split_k = o.split_k},
                       {.x = act, .w = down, .y = y, .residual = sum}));
    sum = y;
    if (last) break;
    x = value(at + "next", o.hidden, DType::kBF16);
    plan.add(wide_gemm(plan.tensors(), {.name = at + "mix", .split_k = o.split_k},
                       {.x = act, .w = down, .y = x, .residual = y}));
  }
  Program program(device, plan, run);
  program.write(first, random_values<BFloat16>(o.m * o.hidden, 7));
  for (int i = 0; i < num_runs; ++i) program.run();
  program.synchronize();
  return program.read<float>(sum);
}

}  // namespace tileweave
