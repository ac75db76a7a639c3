// Router projection and routing on the emulated device, with checking views.
#include <gtest/gtest.h>

#include <cmath>
#include <cstdint>
#include <string>
#include <vector>

#include "tests/kernels/operand_values.h"
#include "tileweave/kernels/gemm/gemm.h"
#include "tileweave/kernels/routing/routing.h"
#include "tileweave/runtime/program.h"

namespace tileweave {
namespace {

struct Case {
  std::string name;
  Coord logit_tiles = {};
  RoutingOptions routing = {};
};

constexpr std::int64_t kRows = 37, kHidden = 24, kExperts = 48;

std::vector<Case> cases() {
  const RoutingRule v3 = {
      .score = RoutingScore::kSigmoid, .top_k = 6, .num_groups = 8, .top_groups = 3, .scale = 2.5F};
  return {{"rows", {16, kExperts}, {.rule = v3}},
          {"rows that divide nothing", {5, kExperts}, {.rule = v3, .tile_m = 6}},
          {"both axes", {7, 10}, {.rule = v3, .tile_m = 4}},
          {"one row each", {3, 48}, {.rule = v3, .tile_m = 1}},
          {"persistent blocks", {8, 16}, {.rule = v3, .tile_m = 4, .num_blocks = 3}}};
}

struct Result {
  std::vector<std::int32_t> ids;
  std::vector<float> weights;
  bool operator==(const Result&) const = default;
};

/// `spoilt`: an element of x that is made NaN; -1: none.
Result run(Device& device, const Case& c, const RunOptions& options, std::int64_t spoilt = -1) {
  Plan plan({.num_streams = 2, .edge = {.start = StartRule::kWaitAll}});
  const auto constant = [&](const char* name, const Shape& shape, DType type = DType::kF32) {
    return plan.tensor(
        {.name = name, .shape = shape, .dtype = type, .kind = TensorKind::kConstant});
  };
  const TensorId x = constant("x", {kRows, kHidden}), gate = constant("gate", {kExperts, kHidden});
  const std::int64_t k = c.routing.rule.top_k;
  RoutingTensors at;
  at.bias = constant("bias", {kExperts});
  at.sequences = constant("sequences", {kRows}, DType::kI32);
  at.logits = plan.tensor({.name = "logits", .shape = {kRows, kExperts}, .tiles = c.logit_tiles});
  at.ids = plan.tensor({.name = "ids", .shape = {kRows, k}, .dtype = DType::kI32, .output = true});
  at.weights = plan.tensor({.name = "weights", .shape = {kRows, k}, .output = true});
  plan.add(gemm(plan.tensors(),
                {.name = "router", .tile_m = 8, .tile_n = 12, .b_layout = BLayout::kNxK}, x, gate,
                at.logits));
  plan.add(routing(plan.tensors(), c.routing, at));
  Program program(device, plan, options);
  std::vector<float> values = random_values<float>(kRows * kHidden, 1);
  if (spoilt >= 0) values[static_cast<std::size_t>(spoilt)] = std::nanf("");
  program.write(x, values);
  program.write(gate, random_values<float>(kExperts * kHidden, 2));
  program.write(at.bias, random_values<float>(kExperts, 3));
  std::vector<std::int32_t> sequences(kRows, 0);
  sequences[4] = sequences[36] = -1;
  program.write(at.sequences, sequences);
  for (int i = 0; i < 2; ++i) program.run();
  program.synchronize();
  return {program.read<std::int32_t>(at.ids), program.read<float>(at.weights)};
}

void add_all(Device& device) {
  add_gemm_cpu(device.kernels());
  add_routing(device);
}

TEST(RoutingCpu, AfterItsProjectionEveryTilingAndModeGivesTheSameBits) {
  const auto device = open_cpu_device({.num_sms = 3, .check_views = CheckViews::kOn});
  add_all(*device);
  Case untiled = cases()[0];
  untiled.logit_tiles = {};
  const Result expected = run(*device, untiled, {.mode = Mode::kSerial});
  EXPECT_EQ(expected.ids[4 * 6], -1) << "a padding row";
  EXPECT_GE(expected.ids[5 * 6], 0);
  for (const Case& c : cases()) {
    for (const Mode mode : {Mode::kSerial, Mode::kOverlap}) {
      SCOPED_TRACE(c.name + (mode == Mode::kSerial ? ", serial" : ", overlap"));
      EXPECT_TRUE(run(*device, c, {.mode = mode}) == expected);
    }
  }
}

TEST(RoutingCpu, ExploredSchedulesGiveTheBitsOfSerial) {
  for (const Case& c : cases()) {
    Result expected;
    for (std::uint64_t seed = 1; seed <= 8; ++seed) {
      SCOPED_TRACE(c.name + ", seed " + std::to_string(seed));
      const auto device = open_cpu_device({.way = CpuWay::kExplore,
                                           .num_sms = seed % 2 == 0 ? 2 : 7,
                                           .seed = seed,
                                           .delay_probability = 0.2,
                                           .check_views = CheckViews::kOn});
      add_all(*device);
      if (seed == 1) expected = run(*device, c, {.mode = Mode::kSerial});
      ASSERT_TRUE(run(*device, c, {}) == expected);
    }
  }
}

TEST(RoutingCpu, ARunWithAScoreThatIsNoNumberEndsWithASentence) {
  for (const Mode mode : {Mode::kSerial, Mode::kOverlap}) {
    const auto device = open_cpu_device({.num_sms = 3, .check_views = CheckViews::kOn});
    add_all(*device);
    try {
      run(*device, cases()[1], {.mode = mode}, /*spoilt=*/20 * kHidden);
      FAIL() << "nothing was thrown";
    } catch (const std::exception& error) {
      EXPECT_NE(std::string(error.what())
                    .find("route token 20: scores that are numbers, got NaN for expert 0"),
                std::string::npos)
          << error.what();
    }
    // Padding rows may hold anything.
    EXPECT_NO_THROW(run(*device, cases()[1], {.mode = mode}, /*spoilt=*/4 * kHidden));
  }
}

}  // namespace
}  // namespace tileweave
