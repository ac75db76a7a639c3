// What parameters, inputs and the sample node refuse, each in its sentence.
#include "tileweave/kernels/sampling/sampling_params.h"

#include <gtest/gtest.h>

#include <cmath>
#include <functional>
#include <string>

#include "tests/kernels/sampling/sampling_serial.h"
#include "tileweave/core/error.h"
#include "tileweave/kernels/sampling/sample.h"

namespace tileweave {
namespace {

std::string sentence(const std::function<void()>& act) {
  try {
    act();
  } catch (const Error& error) {
    return error.what();
  }
  return "no error";
}

std::string verdict(const SamplingParams& params) {
  return sentence([&] { check_sampling_params(params); });
}

TEST(SamplingParams, RefusesWhatMeansNothing) {
  const std::string start = "check sampling parameters: ";
  EXPECT_EQ(verdict({}), "no error");
  EXPECT_EQ(verdict({.temperature = 0}), "no error");
  EXPECT_EQ(verdict({.min_p = 1, .repetition_penalty = 0.1F}), "no error");
  EXPECT_EQ(verdict({.temperature = -1}),
            start + "temperature must be 0 or between 1e-15 and 1e15, got -1");
  EXPECT_EQ(verdict({.temperature = INFINITY}),
            start + "temperature must be 0 or between 1e-15 and 1e15, got inf");
  EXPECT_EQ(verdict({.temperature = NAN}),
            start + "temperature must be 0 or between 1e-15 and 1e15, got nan");
  EXPECT_EQ(verdict({.top_k = -1}), start + "top_k must not be negative, got -1");
  EXPECT_EQ(verdict({.top_p = 0}), start + "top_p must be above 0 and at most 1, got 0");
  EXPECT_EQ(verdict({.top_p = 1.5F}), start + "top_p must be above 0 and at most 1, got 1.5");
  EXPECT_EQ(verdict({.top_p = NAN}), start + "top_p must be above 0 and at most 1, got nan");
  EXPECT_EQ(verdict({.min_p = -0.5F}), start + "min_p must be between 0 and 1, got -0.5");
  EXPECT_EQ(verdict({.min_p = 2}), start + "min_p must be between 0 and 1, got 2");
  EXPECT_EQ(verdict({.repetition_penalty = 0}),
            start + "repetition_penalty must be between 1e-15 and 1e15, got 0");
  // The logits would leave the range of float.
  EXPECT_EQ(verdict({.temperature = 1e-20F}),
            start + "temperature must be 0 or between 1e-15 and 1e15, got 1e-20");
  EXPECT_EQ(verdict({.repetition_penalty = 1e-20F}),
            start + "repetition_penalty must be between 1e-15 and 1e15, got 1e-20");
}

TEST(SampleInputs, HoldTheRowsOfABatch) {
  SampleInputs inputs(3, 4);
  EXPECT_EQ(inputs.temperature, (std::vector<float>{0, 0, 0}));
  inputs.set(1, {.temperature = 0.5F, .top_k = 3, .seed = 0xfffffffe00000001ULL}, 9,
             std::vector<std::int32_t>{7, 8});
  EXPECT_EQ(inputs.temperature, (std::vector<float>{0, 0.5F, 0}));
  EXPECT_EQ(inputs.top_k, (std::vector<std::int32_t>{0, 3, 0}));
  EXPECT_EQ(inputs.seed, (std::vector<std::int32_t>{0, 0, 1, -2, 0, 0}));
  EXPECT_EQ(inputs.position, (std::vector<std::int32_t>{0, 9, 0}));
  EXPECT_EQ(inputs.history_length, (std::vector<std::int32_t>{0, 2, 0}));
  EXPECT_EQ(inputs.history[4], 7);
  EXPECT_EQ(inputs.history[5], 8);
}

TEST(SampleInputs, RefuseWhatDoesNotFit) {
  SampleInputs inputs(2, 3);
  const std::vector<std::int32_t> ids{1, 2, 3, 4};
  const std::span<const std::int32_t> long_history(ids), history(ids.data(), 3);
  EXPECT_EQ(sentence([] { SampleInputs(0, 3); }),
            "make sampling inputs: at least one sequence, got 0");
  EXPECT_EQ(sentence([] { SampleInputs(1, 0); }),
            "make sampling inputs: room for at least one id of history, got 0");
  EXPECT_EQ(sentence([&] { inputs.set(0, {}, 0, history); }), "no error");
  EXPECT_EQ(sentence([&] { inputs.set(2, {}, 0, history); }),
            "set the sampling inputs of sequence 2: a sequence of the batch, got 2 sequences");
  EXPECT_EQ(sentence([&] { inputs.set(1, {}, -1, history); }),
            "set the sampling inputs of sequence 1: a position between 0 and 2^31 - 1, got -1");
  EXPECT_EQ(sentence([&] { inputs.set(1, {}, 0, long_history); }),
            "set the sampling inputs of sequence 1: a history that fits, got 4 ids for room of 3");
}

TEST(SampleNode, RefusesTensorsThatDoNotFit) {
  const SampleInputs inputs(3, 4);
  const auto with = [&](const std::function<void(TensorTable&, SampleTensors&)>& change,
                        const SampleOptions& options = {}) {
    TensorTable tensors;
    SampleTensors at =
        sample_tensors([&](const TensorSpec& spec) { return tensors.add(spec); }, inputs, 20);
    change(tensors, at);
    return sentence([&] { sample(tensors, options, at); });
  };
  const auto constant = [](TensorTable& tensors, const Shape& shape, DType type) {
    return tensors.add({.name = "x", .shape = shape, .dtype = type, .kind = TensorKind::kConstant});
  };
  const std::string start = "make sample node `sample`: ";
  EXPECT_EQ(with([](auto&, auto&) {}), "no error");
  EXPECT_EQ(with([](auto&, auto&) {}, {.tile_m = 0}), start + "tile_m must be at least 1, got 0");
  EXPECT_EQ(with([](auto&, auto&) {}, {.tile_n = 0}), start + "tile_n must be at least 1, got 0");
  EXPECT_EQ(with([](auto&, auto&) {}, {.num_blocks = -2}),
            start + "num_blocks must be at least 0, got -2");
  EXPECT_EQ(with([&](auto& t, auto& at) { at.top_p = constant(t, {2}, DType::kF32); }),
            start + "`x` must be (3), got (2)");
  EXPECT_EQ(with([&](auto& t, auto& at) { at.temperature = constant(t, {3}, DType::kI32); }),
            start + "`x` must be f32, got i32");
  EXPECT_EQ(with([&](auto& t, auto& at) { at.top_k = constant(t, {3}, DType::kF32); }),
            start + "`x` must be i32, got f32");
  EXPECT_EQ(with([&](auto& t, auto& at) { at.seed = constant(t, {3}, DType::kI32); }),
            start + "`x` must be (3, 2), got (3)");
  EXPECT_EQ(with([&](auto& t, auto& at) {
              at.history = constant(t, {2, 4}, DType::kI32);
            }),
            start + "`x` must be (3, 4), got (2, 4)");
  EXPECT_EQ(with([](auto& t, auto& at) {
              at.position = t.add({.name = "x", .shape = {3}, .dtype = DType::kI32});
            }),
            start + "`x` must be constant, got value");
  EXPECT_EQ(with([&](auto& t, auto& at) { at.ids = constant(t, {3}, DType::kI32); }),
            start + "the result `x` must not be constant");
  EXPECT_EQ(with([](auto& t, auto& at) { at.logits = t.add({.name = "x", .shape = {3}}); }),
            start + "`x` must be a matrix, got shape (3)");
}

}  // namespace
}  // namespace tileweave
