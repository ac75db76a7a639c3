// Ten thousand graph replays of a long chain, with inputs that change, across both limits of a
// count.
#include <gtest/gtest.h>

#include <chrono>
#include <cstdio>

#include "tests/runtime/cuda/watchdog.h"
#include "tests/runtime/devices.h"
#include "tests/runtime/gpu_devices.h"
#include "tests/runtime/property.h"

namespace tileweave {
namespace {

constexpr int kNodes = 300;
constexpr int kReplays = 10'000;
constexpr int kReplaysPerInput = 500;
constexpr std::uint32_t kArrivals = 2;  // per data tile and run

struct LongChain {
  MixPlan mix;
  TensorId input = kNoTensor;
  TensorId first_value = kNoTensor;

  LongChain() {
    mix.plan.options() = {.name = "long chain", .num_streams = 3};
    const Shape shape{4, 2};
    const TileSet rows = TileSet::plain({shape, {1, 2}});
    const TileSet pairs = TileSet::plain({shape, {2, 2}});
    input = add_filled(mix, {.name = "input", .shape = {4}, .kind = TensorKind::kConstant}, 1);
    const TensorId tick =
        add_filled(mix, {.name = "tick", .shape = shape, .kind = TensorKind::kState}, 2);
    TensorId last = tick;
    for (std::uint32_t i = 0; i < kNodes; ++i) {
      const bool is_last = i + 1 == kNodes;
      const TensorId next = is_last ? tick
                                    : add_value(mix, {.name = "v" + std::to_string(i),
                                                      .shape = shape,
                                                      .tiles = {2, 2},
                                                      .output = i + 2 == kNodes});
      if (i == 0) first_value = next;
      MixNode node{.name = "n" + std::to_string(i),
                   .inputs = {{.tensor = last,
                               .kernel_tiles = pairs,
                               .tiles_of_work = {{0}, {0}, {1}, {1}}}},
                   .outputs = {{.tensor = next, .kernel_tiles = rows}},
                   .num_works = 4,
                   .salt = i,
                   .delay_seed = i,
                   .max_delay_ns = i % 5 == 0 ? 2'000U : 0U};
      if (i % 50 == 0) node.inputs.push_back({.tensor = input});
      add_mix(mix, std::move(node));
      last = next;
    }
  }
};

class ReplayOnGpu : public GpuTest, public testing::WithParamInterface<std::uint32_t> {};

TEST_P(ReplayOnGpu, TenThousandReplaysOfThreeHundredNodesStayRight) {
  LongChain chain;
  const auto device = open_mix_gpu();
  // The counts pass the limit half way.
  const std::uint32_t initial = GetParam() - kReplays / 2 * kArrivals;
  Program program(*device, chain.mix.plan, {.initial_count = initial});
  upload(program, chain.mix);
  MixOracle oracle(chain.mix);
  const auto begin = std::chrono::steady_clock::now();
  for (int replay = 1; replay <= kReplays; ++replay) {
    if (replay % kReplaysPerInput == 1) {
      const auto r = static_cast<std::uint32_t>(replay);
      program.write(chain.input, std::vector<std::uint32_t>{r, r + 1, r * 3, ~r});
      oracle.write(chain.input, {r, r + 1, r * 3, ~r});
    }
    program.run();
    oracle.run();
    if (replay % kReplaysPerInput != 0) continue;
    program.synchronize();
    ASSERT_TRUE(same_bits(program, chain.mix, oracle)) << "replay " << replay;
  }
  std::printf("%d replays of %d nodes in %.1f s, inputs and host evaluation included\n", kReplays,
              kNodes, seconds_since(begin));
  for (const SemaphoreView& view : program.semaphores(chain.first_value)) {
    EXPECT_EQ(view.target, kArrivals);
    EXPECT_EQ(view.count, view.base);
    EXPECT_EQ(view.count, initial + kReplays * kArrivals);
  }
}

INSTANTIATE_TEST_SUITE_P(AcrossBothLimits, ReplayOnGpu, testing::Values(0x80000000U, 0U));

}  // namespace
}  // namespace tileweave
