// Runs argmax and sample nodes over host memory, without a device.
#pragma once

#include <gtest/gtest.h>

#include <cstdint>
#include <vector>

#include "tests/kernels/serial_lane.h"
#include "tileweave/kernels/sampling/add_sampling.h"
#include "tileweave/kernels/sampling/argmax.h"
#include "tileweave/kernels/sampling/argmax_args.h"
#include "tileweave/kernels/sampling/sample.h"
#include "tileweave/kernels/sampling/sample_args.h"
#include "tileweave/kernels/sampling/sampling_params.h"
#include "tileweave/plan/tensor.h"

namespace tileweave {

inline std::vector<std::int32_t> run_argmax(std::vector<float> logits, std::int64_t cols,
                                            const ArgmaxOptions& options = {}) {
  const std::int64_t rows = static_cast<std::int64_t>(logits.size()) / cols;
  TensorTable tensors;
  const TensorId in = tensors.add({.name = "logits", .shape = {rows, cols}});
  const TensorId out = tensors.add({.name = "ids", .shape = {rows}, .dtype = DType::kI32});
  const NodeSpec node = argmax(tensors, options, in, out);
  KernelLibrary kernels;
  add_sampling_cpu(kernels);
  std::vector<std::int32_t> ids(static_cast<std::size_t>(rows), -7);
  const SerialLane lane = run_serially<ArgmaxOperands::kSlots>(
      node, tensors, kernels, {.operands = {logits.data(), ids.data()}});
  EXPECT_EQ(lane.signals(), ceil_div(rows, std::min(options.tile_m, rows)));
  return ids;
}

/// Tensors of a sample node, in a plan or on their own.
template <class Tensors>
SampleTensors sample_tensors(Tensors add, const SampleInputs& inputs, std::int64_t cols,
                             const Coord& logits_tiles = {}) {
  const std::int64_t rows = inputs.num_sequences;
  const auto constant = [&](const char* name, const Shape& shape, DType type) {
    return add(
        TensorSpec{.name = name, .shape = shape, .dtype = type, .kind = TensorKind::kConstant});
  };
  return {
      .logits = add(TensorSpec{
          .name = "logits", .shape = {rows, cols}, .dtype = DType::kF32, .tiles = logits_tiles}),
      .temperature = constant("temperature", {rows}, DType::kF32),
      .top_p = constant("top_p", {rows}, DType::kF32),
      .min_p = constant("min_p", {rows}, DType::kF32),
      .repetition_penalty = constant("repetition_penalty", {rows}, DType::kF32),
      .top_k = constant("top_k", {rows}, DType::kI32),
      .seed = constant("seed", {rows, 2}, DType::kI32),
      .position = constant("position", {rows}, DType::kI32),
      .history = constant("history", {rows, inputs.max_history}, DType::kI32),
      .history_length = constant("history_length", {rows}, DType::kI32),
      .ids = add(TensorSpec{.name = "ids", .shape = {rows}, .dtype = DType::kI32, .output = true})};
}

inline std::vector<std::int32_t> run_sample(std::vector<float> logits, SampleInputs inputs,
                                            const SampleOptions& options = {}) {
  const std::int64_t rows = inputs.num_sequences;
  const std::int64_t cols = static_cast<std::int64_t>(logits.size()) / rows;
  TensorTable tensors;
  const SampleTensors at =
      sample_tensors([&](const TensorSpec& spec) { return tensors.add(spec); }, inputs, cols);
  const NodeSpec node = sample(tensors, options, at);
  KernelLibrary kernels;
  add_sampling_cpu(kernels);
  std::vector<std::int32_t> ids(static_cast<std::size_t>(rows), -7);
  const SerialLane lane = run_serially<SampleOperands::kSlots>(
      node, tensors, kernels,
      {.operands = {logits.data(), inputs.temperature.data(), inputs.top_p.data(),
                    inputs.min_p.data(), inputs.repetition_penalty.data(), inputs.top_k.data(),
                    inputs.seed.data(), inputs.position.data(), inputs.history.data(),
                    inputs.history_length.data(), ids.data()}});
  EXPECT_EQ(lane.signals(), node.num_works);
  return ids;
}

/// Draws from one row at positions 0 .. count - 1.
inline std::vector<std::int32_t> draw_many(const std::vector<float>& row,
                                           const SamplingParams& params, std::int64_t count,
                                           std::span<const std::int32_t> history = {}) {
  SampleInputs inputs(count, std::max<std::int64_t>(1, std::ssize(history)));
  std::vector<float> logits;
  for (std::int64_t s = 0; s < count; ++s) {
    inputs.set(s, params, s, history);
    logits.insert(logits.end(), row.begin(), row.end());
  }
  return run_sample(logits, inputs, {.tile_m = 64, .tile_n = 13});
}

}  // namespace tileweave
