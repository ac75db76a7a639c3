// Sampling on a GPU: the reference's tokens, the same bits in every mode and batch, and a decode
// loop that samples without the host.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <random>
#include <span>
#include <string>
#include <vector>

#include "tests/kernels/operand_values.h"
#include "tests/kernels/sampling/advance_chain.h"
#include "tests/kernels/sampling/sampling_serial.h"
#include "tileweave/kernels/gemm/gemm.h"
#include "tileweave/kernels/sampling/philox.h"
#include "tileweave/runtime/program.h"

namespace tileweave {
namespace {

constexpr double kSpread = 60;  // of scores, temperature included, in all of these tests

/// A row of logits with what is asked of it.
struct Ask {
  std::vector<float> logits;
  SamplingParams params;
  std::int64_t position = 0;
  std::vector<std::int32_t> history = {};
};

std::string to_string(const Ask& ask) {
  const SamplingParams& p = ask.params;
  return std::to_string(ask.logits.size()) + " columns, temperature " +
         std::to_string(p.temperature) + ", top_k " + std::to_string(p.top_k) + ", top_p " +
         std::to_string(p.top_p) + ", min_p " + std::to_string(p.min_p) + ", penalty " +
         std::to_string(p.repetition_penalty) + ", seed " + std::to_string(p.seed);
}

SampleInputs inputs_of(const std::vector<Ask>& asks) {
  std::int64_t most = 1;
  for (const Ask& ask : asks) most = std::max(most, std::ssize(ask.history));
  SampleInputs inputs(std::ssize(asks), most);
  for (std::size_t s = 0; s < asks.size(); ++s) {
    inputs.set(static_cast<std::int64_t>(s), asks[s].params, asks[s].position, asks[s].history);
  }
  return inputs;
}

void write(Program& program, const SampleTensors& at, const SampleInputs& inputs) {
  program.write(at.temperature, inputs.temperature);
  program.write(at.top_p, inputs.top_p);
  program.write(at.min_p, inputs.min_p);
  program.write(at.repetition_penalty, inputs.repetition_penalty);
  program.write(at.top_k, inputs.top_k);
  program.write(at.seed, inputs.seed);
  program.write(at.position, inputs.position);
  program.write(at.history, inputs.history);
  program.write(at.history_length, inputs.history_length);
}

/// All rows in one run; they have equally many columns.
std::vector<std::int32_t> run_asks(Device& device, const std::vector<Ask>& asks,
                                   const SampleOptions& options = {}) {
  const std::int64_t cols = std::ssize(asks[0].logits);
  const SampleInputs inputs = inputs_of(asks);
  Plan plan;
  const SampleTensors at = sample_tensors(
      [&](TensorSpec spec) {
        if (spec.name == "logits") spec.kind = TensorKind::kConstant;
        return plan.tensor(spec);
      },
      inputs, cols);
  plan.add(sample(plan.tensors(), options, at));
  Program program(device, plan);
  std::vector<float> logits;
  for (const Ask& ask : asks) {
    logits.insert(logits.end(), ask.logits.begin(), ask.logits.end());
  }
  program.write(at.logits, logits);
  write(program, at, inputs);
  program.write(at.ids, std::vector<std::int32_t>(asks.size(), -7));
  program.run();
  program.synchronize();
  return program.read<std::int32_t>(at.ids);
}

/// The token that the reference draws, but where the random number is so close to a boundary that
/// fp32 weights may decide otherwise, or the boundary of top-p so close to a cumulative
/// probability.
void expect_drawn(const Ask& ask, std::int32_t id) {
  const double bound = sample_error_bound(kSpread);
  const double uniform = sampling_uniform(static_cast<std::uint32_t>(ask.params.seed),
                                          static_cast<std::uint32_t>(ask.params.seed >> 32),
                                          static_cast<std::uint32_t>(ask.position));
  const auto agrees = [&](const SamplingParams& params) {
    const std::vector<double> left = sample_reference(ask.logits, params, ask.history);
    return id >= draw_reference(left, std::max(uniform - bound, 0.0)) &&
           id <= draw_reference(left, uniform + bound) && left[static_cast<std::size_t>(id)] > 0;
  };
  ASSERT_GE(id, 0) << to_string(ask);
  ASSERT_LT(id, std::ssize(ask.logits)) << to_string(ask);
  if (agrees(ask.params)) return;
  SamplingParams less = ask.params, more = ask.params;
  if (ask.params.top_p < 1) {
    less.top_p -= static_cast<float>(bound);
    more.top_p = std::min(1.0F, more.top_p + static_cast<float>(bound));
  }
  const std::vector<double> exact = sample_reference(ask.logits, ask.params, ask.history);
  EXPECT_TRUE(ask.params.top_p < 1 && (agrees(less) || agrees(more)))
      << "drew " << id << ", the reference " << draw_reference(exact, uniform) << "; "
      << to_string(ask);
}

/// Random parameters: every filter on and off, peaked and flat rows, ties, -inf.
Ask random_ask(std::int64_t cols, std::uint64_t seed) {
  std::mt19937_64 bits(seed);
  const auto one_of = [&](const auto& choices) { return choices[bits() % std::size(choices)]; };
  const float scale = one_of(std::vector{0.0F, 0.5F, 3.0F, 8.0F});
  Ask ask;
  std::normal_distribution<float> normal;
  for (std::int64_t i = 0; i < cols; ++i) ask.logits.push_back(scale * normal(bits));
  if (bits() % 4 == 0) {
    for (float& logit : ask.logits) logit = std::round(2 * logit) / 2;
  }
  if (bits() % 5 == 0) {
    for (std::size_t i = 1; i < ask.logits.size(); i += 1 + bits() % 4) {
      ask.logits[i] = -std::numeric_limits<float>::infinity();
    }
  }
  const auto all = static_cast<std::int32_t>(cols);
  ask.params = {.temperature = one_of(std::vector{1.0F, 0.7F, 1.7F}),
                .top_k = one_of(std::vector{0, 0, 1, 7, 50, all, std::max(all - 1, 1), 1 << 30}),
                .top_p = one_of(std::vector{1.0F, 0.95F, 0.3F, 1e-7F, 0.9999F}),
                .min_p = one_of(std::vector{0.0F, 0.0F, 0.02F, 0.5F, 1.0F}),
                .repetition_penalty = one_of(std::vector{1.0F, 1.3F, 0.6F}),
                .seed = bits()};
  ask.position = static_cast<std::int64_t>(bits() % 1000);
  for (int i = 0; i < 20; ++i) {
    ask.history.push_back(
        static_cast<std::int32_t>(bits() % (2 * static_cast<std::uint64_t>(cols))) - 3);
  }
  return ask;
}

TEST(SampleCuda, RandomParametersDrawWhatTheReferenceDraws) {
  const auto device = open_cuda_device();
  add_sampling(*device);
  std::uint64_t seed = 1;
  for (const std::int64_t cols : {1, 2, 5, 31, 64, 300, 1000, 2047, 2049, 5000, 9001}) {
    std::vector<Ask> asks;
    for (int i = 0; i < 24; ++i) asks.push_back(random_ask(cols, seed++));
    const std::vector<std::int32_t> ids = run_asks(*device, asks);
    for (std::size_t s = 0; s < asks.size(); ++s) expect_drawn(asks[s], ids[s]);
  }
}

TEST(SampleCuda, RandomParametersOverAWholeVocabulary) {
  const auto device = open_cuda_device();
  add_sampling(*device);
  std::vector<Ask> asks;
  for (std::uint64_t seed = 1000; seed < 1024; ++seed) asks.push_back(random_ask(151936, seed));
  const std::vector<std::int32_t> ids = run_asks(*device, asks, {.tile_n = 151936});
  for (std::size_t s = 0; s < asks.size(); ++s) expect_drawn(asks[s], ids[s]);
}

TEST(SampleCuda, TemperatureZeroIsTheArgmaxOfPenalisedLogits) {
  const auto device = open_cuda_device();
  add_sampling(*device);
  const SamplingParams greedy{.temperature = 0};
  const SamplingParams penalised{.temperature = 0, .repetition_penalty = 1.2F};
  const std::vector<float> row{1, 3, 2.9F, -1};
  EXPECT_EQ(run_asks(*device, {{row, greedy, 0, {1, 1}},
                               {row, penalised, 0, {1, 1}},
                               {row, penalised, 0, {-1, 4, 1 << 30, -(1 << 30)}},
                               {{2, 2, 1, 2}, greedy},
                               {{-0.0F, 0, -1, 0}, greedy}}),
            (std::vector{1, 2, 1, 0, 0}));
}

TEST(SampleCuda, NaNIsNeverDrawnAndInfinityAlways) {
  const auto device = open_cuda_device();
  add_sampling(*device);
  const float nan = std::numeric_limits<float>::quiet_NaN();
  const float inf = std::numeric_limits<float>::infinity();
  for (const SamplingParams& params :
       {SamplingParams{}, SamplingParams{.top_k = 2}, SamplingParams{.top_p = 0.9F},
        SamplingParams{.min_p = 0.1F}, SamplingParams{.temperature = 0}}) {
    EXPECT_EQ(run_asks(*device, {{{nan, -3, nan, nan, nan}, params},
                                 {{5, inf, -inf, nan, 7}, params},
                                 {{nan, nan, nan, nan, nan}, params},
                                 {{-inf, -inf, -inf, -inf, -inf}, params},
                                 {{-inf, 0, -inf, -inf, -inf}, params}}),
              (std::vector{1, 1, 0, 0, 1}))
        << "top_k " << params.top_k << ", top_p " << params.top_p << ", min_p " << params.min_p
        << ", temperature " << params.temperature;
  }
}

TEST(SampleCuda, OfEqualTokensTheHighestIdStaysUnderATinyTopP) {
  const auto device = open_cuda_device();
  add_sampling(*device);
  for (const std::int32_t cols : {1, 2, 33, 2048, 2049, 40000}) {
    const Ask ask{std::vector<float>(static_cast<std::size_t>(cols), 0.5F), {.top_p = 1e-9F}};
    EXPECT_EQ(run_asks(*device, {ask}), std::vector{cols - 1}) << cols << " columns";
  }
}

TEST(SampleCuda, ADrawDoesNotDependOnItsBatchOrTiles) {
  const auto device = open_cuda_device();
  add_sampling(*device);
  std::vector<Ask> asks;
  for (std::uint64_t seed = 1; seed <= 13; ++seed) asks.push_back(random_ask(3001, seed));
  const std::vector<std::int32_t> expected = run_asks(*device, asks);
  for (const SampleOptions& options :
       {SampleOptions{.tile_m = 5, .tile_n = 100}, SampleOptions{.tile_m = 13, .tile_n = 64},
        SampleOptions{.tile_m = 2, .tile_n = 50, .num_blocks = 3},
        SampleOptions{.order = TileOrder::rotation(4)}}) {
    EXPECT_EQ(run_asks(*device, asks, options), expected)
        << "tiles of " << options.tile_m << " x " << options.tile_n;
  }
  for (std::size_t s = 0; s < asks.size(); ++s) {
    EXPECT_EQ(run_asks(*device, {asks[s]})[0], expected[s]) << "row " << s << " alone";
  }
}

/// Ids drawn from the logits that a GEMM writes tile by tile.
std::vector<std::int32_t> run_after_gemm(Device& device, const Coord& tiles,
                                         const SampleOptions& options, const RunOptions& run) {
  constexpr std::int64_t kRows = 11, kDepth = 40, kCols = 500;
  SampleInputs inputs(kRows, 3);
  for (std::int64_t s = 0; s < kRows; ++s) {
    inputs.set(s,
               {.temperature = s == 0 ? 0.0F : 0.5F + 0.1F * static_cast<float>(s),
                .top_k = s % 3 == 0 ? 0 : 90,
                .top_p = s % 2 == 0 ? 1.0F : 0.9F,
                .repetition_penalty = 1.1F,
                .seed = static_cast<std::uint64_t>(s)},
               40 + s, std::vector<std::int32_t>{1, 2, static_cast<std::int32_t>(s)});
  }
  Plan plan({.num_streams = 3, .edge = {.start = StartRule::kWaitAll}});
  const TensorId x =
      plan.tensor({.name = "x", .shape = {kRows, kDepth}, .kind = TensorKind::kConstant});
  const TensorId w =
      plan.tensor({.name = "w", .shape = {kDepth, kCols}, .kind = TensorKind::kConstant});
  const SampleTensors at = sample_tensors([&](const TensorSpec& spec) { return plan.tensor(spec); },
                                          inputs, kCols, tiles);
  plan.add(gemm(plan.tensors(), {.tile_m = 8, .tile_n = 32}, x, w, at.logits));
  plan.add(sample(plan.tensors(), options, at));
  Program program(device, plan, run);
  program.write(x, random_values<float>(kRows * kDepth, 1));
  program.write(w, random_values<float>(kDepth * kCols, 2));
  write(program, at, inputs);
  for (int i = 0; i < 3; ++i) program.run();
  program.synchronize();
  return program.read<std::int32_t>(at.ids);
}

TEST(SampleCuda, BehindAGemmOverlapGivesTheIdsOfSerial) {
  const auto device = open_cuda_device();
  add_gemm(*device);
  add_sampling(*device);
  const std::vector<std::int32_t> expected =
      run_after_gemm(*device, {}, {}, {.mode = Mode::kSerial});
  struct Case {
    Coord tiles;
    SampleOptions sample;
  };
  for (const Case& c : {Case{{11, 64}, {.tile_n = 500}}, Case{{8, 32}, {.tile_n = 100}},
                        Case{{3, 40}, {.tile_m = 5, .tile_n = 49}},
                        Case{{8, 32}, {.tile_m = 3, .tile_n = 500, .num_blocks = 2}}}) {
    for (const Mode mode : {Mode::kSerial, Mode::kOverlap}) {
      for (const Submit submit : {Submit::kEager, Submit::kGraph}) {
        EXPECT_EQ(run_after_gemm(*device, c.tiles, c.sample, {.mode = mode, .submit = submit}),
                  expected)
            << "tiles of " << c.sample.tile_m << " x " << c.sample.tile_n
            << (mode == Mode::kSerial ? ", serial" : ", overlap")
            << (submit == Submit::kEager ? ", eager" : ", graph");
      }
    }
  }
}

/// Tokens of `steps` runs whose position and history the device itself moves on, row by row.
std::vector<std::int32_t> sample_in_a_loop(Device& device, const std::vector<Ask>& asks,
                                           std::int32_t steps) {
  const std::int64_t rows = std::ssize(asks), cols = std::ssize(asks[0].logits);
  const auto count = static_cast<std::size_t>(rows);
  SampleInputs inputs(rows, 64);
  for (std::size_t s = 0; s < count; ++s) {
    inputs.set(static_cast<std::int64_t>(s), asks[s].params, asks[s].position, asks[s].history);
  }
  Plan plan;
  const SampleTensors at = sample_tensors(
      [&](TensorSpec spec) {
        if (spec.name == "logits") spec.kind = TensorKind::kConstant;
        return plan.tensor(spec);
      },
      inputs, cols);
  plan.add(sample(plan.tensors(), {}, at));
  Program program(device, plan);
  std::vector<float> logits;
  for (const Ask& ask : asks) {
    logits.insert(logits.end(), ask.logits.begin(), ask.logits.end());
  }
  program.write(at.logits, logits);
  write(program, at, inputs);
  const std::vector<std::int32_t> zeroes(count, 0);
  DeviceArray ids(device, zeroes), positions(device, zeroes), past(device, zeroes),
      slots(device, zeroes), pages(device, zeroes);
  DeviceArray step(device, std::vector<std::uint32_t>{0});
  SharedArray<std::int32_t> tokens(device, static_cast<std::size_t>(steps) * count);
  const auto i32 = [&](TensorId id) { return static_cast<std::int32_t*>(program.address(id)); };
  program.set_between_runs(make_advance(device, {.rows = rows,
                                                 .next = i32(at.ids),
                                                 .ids = ids.data(),
                                                 .positions = positions.data(),
                                                 .past = past.data(),
                                                 .slots = slots.data(),
                                                 .page_table = pages.data(),
                                                 .max_pages = 1,
                                                 .page_size = 1000,
                                                 .draw_positions = i32(at.position),
                                                 .history = i32(at.history),
                                                 .history_length = i32(at.history_length),
                                                 .max_history = 64,
                                                 .tokens = tokens.values().data(),
                                                 .step = step.data(),
                                                 .ring_length = steps}));
  for (std::int32_t i = 0; i < steps; ++i) program.run();
  program.synchronize();
  return {tokens.values().begin(), tokens.values().end()};
}

TEST(SampleCuda, ALoopWithoutTheHostDrawsWhatTheHostWouldAskFor) {
  const auto device = open_cuda_device();
  add_sampling(*device);
  constexpr std::int32_t kSteps = 20;
  std::vector<Ask> asks;
  for (std::uint64_t seed = 50; seed < 55; ++seed) asks.push_back(random_ask(700, seed));
  const std::vector<std::int32_t> tokens = sample_in_a_loop(*device, asks, kSteps);
  for (std::size_t i = 0; i < kSteps; ++i) {
    SCOPED_TRACE("step " + std::to_string(i));
    EXPECT_EQ(run_asks(*device, asks),
              std::vector(tokens.begin() + static_cast<std::ptrdiff_t>(i * asks.size()),
                          tokens.begin() + static_cast<std::ptrdiff_t>((i + 1) * asks.size())));
    for (std::size_t s = 0; s < asks.size(); ++s) {
      asks[s].history.push_back(tokens[i * asks.size() + s]);
      ++asks[s].position;
    }
  }
}

}  // namespace
}  // namespace tileweave
