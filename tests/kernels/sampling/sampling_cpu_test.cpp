// Argmax and sample over logits that another kernel writes tile by tile, on the emulated device
// with checking views.
#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <vector>

#include "tests/kernels/attention/copy_kernel.h"
#include "tests/kernels/operand_values.h"
#include "tests/kernels/sampling/sampling_serial.h"
#include "tileweave/runtime/program.h"

namespace tileweave {
namespace {

constexpr std::int64_t kRows = 11, kCols = 150;

struct ChainCase {
  std::string name;
  Coord logits_tiles = {}, ids_tiles = {};
  Coord copy_tile = {4, 32};
  ArgmaxOptions argmax = {};
  SampleOptions sample = {};
};

std::vector<ChainCase> chain_cases() {
  return {{.name = "columns", .logits_tiles = {kRows, 32}, .argmax = {.tile_n = 32}},
          {.name = "rows", .logits_tiles = {4, kCols}, .ids_tiles = {4}, .argmax = {.tile_m = 4}},
          {.name = "2-D",
           .logits_tiles = {4, 32},
           .ids_tiles = {2},
           .argmax = {.tile_m = 4, .tile_n = 32},
           .sample = {.tile_m = 4, .tile_n = 32}},
          {.name = "2-D that divides nothing",
           .logits_tiles = {3, 40},
           .ids_tiles = {5},
           .copy_tile = {2, 77},
           .argmax = {.tile_m = 5, .tile_n = 49},
           .sample = {.tile_m = 3, .tile_n = 29}},
          {.name = "persistent blocks, rotated",
           .logits_tiles = {4, 32},
           .ids_tiles = {3},
           .argmax = {.tile_m = 3, .tile_n = 20, .num_blocks = 4, .order = TileOrder::rotation(3)},
           .sample = {.tile_m = 2, .num_blocks = 2, .order = TileOrder::rotation(1)}}};
}

SampleInputs batch_inputs() {
  SampleInputs inputs(kRows, 4);
  for (std::int64_t s = 0; s < kRows; ++s) {
    const SamplingParams params{.temperature = s == 0 ? 0.0F : 0.5F + 0.1F * static_cast<float>(s),
                                .top_k = s % 3 == 0 ? 0 : 30,
                                .top_p = s % 2 == 0 ? 1.0F : 0.9F,
                                .min_p = s % 5 == 0 ? 0.01F : 0.0F,
                                .repetition_penalty = 1.1F,
                                .seed = static_cast<std::uint64_t>(s)};
    inputs.set(s, params, 40 + s, std::vector<std::int32_t>{1, 2, static_cast<std::int32_t>(s)});
  }
  return inputs;
}

struct Ids {
  std::vector<std::int32_t> best, drawn;
  bool operator==(const Ids&) const = default;
};

Ids run_chain(Device& device, const ChainCase& c, const RunOptions& options) {
  const SampleInputs inputs = batch_inputs();
  Plan plan({.num_streams = 3, .edge = {.start = StartRule::kWaitAll}});
  const TensorId from =
      plan.tensor({.name = "from", .shape = {kRows, kCols}, .kind = TensorKind::kConstant});
  const auto add = [&](TensorSpec spec) {
    if (spec.name == "ids") spec.tiles = c.ids_tiles;
    return plan.tensor(spec);
  };
  const SampleTensors at = sample_tensors(add, inputs, kCols, c.logits_tiles);
  const TensorId best =
      add({.name = "ids", .shape = {kRows}, .dtype = DType::kI32, .output = true});
  plan.add(copy_node(plan.tensors(), "logits", from, at.logits, c.copy_tile));
  plan.add(argmax(plan.tensors(), c.argmax, at.logits, best));
  plan.add(sample(plan.tensors(), c.sample, at));
  Program program(device, plan, options);
  if (options.mode == Mode::kOverlap && c.logits_tiles.num_axes > 0) {
    EXPECT_EQ(program.verdict().num_downgrades(), 0) << program.verdict().table(plan);
  }
  program.write(from, random_values<float>(kRows * kCols, 3));
  program.write(at.temperature, inputs.temperature);
  program.write(at.top_p, inputs.top_p);
  program.write(at.min_p, inputs.min_p);
  program.write(at.repetition_penalty, inputs.repetition_penalty);
  program.write(at.top_k, inputs.top_k);
  program.write(at.seed, inputs.seed);
  program.write(at.position, inputs.position);
  program.write(at.history, inputs.history);
  program.write(at.history_length, inputs.history_length);
  for (int i = 0; i < 2; ++i) program.run();
  program.synchronize();
  return {program.read<std::int32_t>(best), program.read<std::int32_t>(at.ids)};
}

std::unique_ptr<Device> open(const CpuOptions& options) {
  auto device = open_cpu_device(options);
  add_sampling_cpu(device->kernels());
  add_copy_cpu(device->kernels());
  return device;
}

Ids expected_ids() {
  const auto logits = random_values<float>(kRows * kCols, 3);
  return {run_argmax(logits, kCols), run_sample(logits, batch_inputs())};
}

TEST(SamplingCpu, GivesTheSameIdsForEveryTilingAndMode) {
  const auto device = open({.num_sms = 3, .check_views = CheckViews::kOn});
  const Ids expected = expected_ids();
  EXPECT_TRUE(run_chain(*device, {.name = "untiled"}, {.mode = Mode::kSerial}) == expected);
  for (const ChainCase& c : chain_cases()) {
    for (const Mode mode : {Mode::kSerial, Mode::kOverlap}) {
      SCOPED_TRACE(c.name + (mode == Mode::kSerial ? ", serial" : ", overlap"));
      EXPECT_TRUE(run_chain(*device, c, {.mode = mode}) == expected);
    }
  }
}

TEST(SamplingCpu, ExploredSchedulesGiveTheIdsOfSerial) {
  const Ids expected = expected_ids();
  for (const ChainCase& c : chain_cases()) {
    for (std::uint64_t seed = 1; seed <= 12; ++seed) {
      SCOPED_TRACE(c.name + ", seed " + std::to_string(seed));
      const auto device = open({.way = CpuWay::kExplore,
                                .num_sms = seed % 2 == 0 ? 2 : 7,
                                .seed = seed,
                                .delay_probability = 0.2,
                                .check_views = CheckViews::kOn});
      ASSERT_TRUE(run_chain(*device, c, {}) == expected);
    }
  }
}

}  // namespace
}  // namespace tileweave
