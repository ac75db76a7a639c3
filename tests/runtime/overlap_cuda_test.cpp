// The property of overlap_property_test.cpp on a GPU, whole and in parts.
#include <gtest/gtest.h>

#include <cstdio>
#include <map>
#include <string>

#include "tests/runtime/cuda/watchdog.h"
#include "tests/runtime/gpu_devices.h"
#include "tests/runtime/property.h"

namespace tileweave {
namespace {

class OverlapOnGpu : public GpuTest {};
class LongOverlapOnGpu : public GpuTest {};

std::string text_of(const RunOptions& options) {
  return std::string(options.mode == Mode::kSerial ? "serial" : "overlap") +
         (options.submit == Submit::kGraph ? " graph" : " eager");
}

void run_seeds(std::uint64_t first, std::uint64_t last) {
  const auto device = open_mix_gpu();
  std::map<std::string, int> edges;
  for (std::uint64_t seed = first; seed <= last; ++seed) {
    const LaunchOrder launch_order =
        seed % 2 == 0 ? LaunchOrder::kTrusted : LaunchOrder::kNotTrusted;
    const MixPlan mix = random_plan({.seed = seed,
                                     .num_streams = static_cast<std::int32_t>(1 + seed % 3),
                                     .max_delay_ns = seed % 4 == 0 ? 0U : 20'000U});
    for (const Mode mode : {Mode::kSerial, Mode::kOverlap}) {
      for (const Submit submit : {Submit::kEager, Submit::kGraph}) {
        const RunOptions options{.mode = mode,
                                 .submit = submit,
                                 .launch_order = launch_order,
                                 .deadline_ns = 2'000'000'000};
        ASSERT_TRUE(runs_like_the_oracle(*device, mix, options))
            << "seed " << seed << " " << text_of(options)
            << (launch_order == LaunchOrder::kTrusted ? ", launch order trusted" : "");
      }
    }
    for (const EdgeReport& edge :
         verify(mix.plan, {.device = device->limits(), .launch_order = launch_order}).edges) {
      ++edges[std::string(name_of(edge.kind)) + " " +
              (edge.kind == EdgeKind::kTile ? name_of(edge.start) : "-") + ", ground " +
              name_of(edge.ground)];
    }
  }
  for (const auto& [what, count] : edges) std::printf("%5d data edges: %s\n", count, what.c_str());
}

TEST_F(OverlapOnGpu, SixtyRandomPlansGiveTheBitsOfTheHostInEveryModeAndSubmission) {
  run_seeds(1, 60);
}

TEST_F(LongOverlapOnGpu, AThousandRandomPlansGiveTheBitsOfTheHost) {
  run_seeds(1'001, 2'000);
}

/// Eight nodes of 40 works that depend row by row; two blocks fill an SM.
MixPlan wide_chain() {
  MixPlan mix;
  mix.plan.options() = {.name = "wide chain", .num_streams = 2};
  const Shape shape{40, 8};
  const TileSet rows = TileSet::plain({shape, {1, 8}});
  const TensorId tick =
      add_filled(mix, {.name = "tick", .shape = shape, .kind = TensorKind::kState}, 11);
  TensorId last = tick;
  for (std::uint32_t i = 0; i < 8; ++i) {
    const TensorId next = i == 7 ? tick
                                 : add_value(mix, {.name = "v" + std::to_string(i),
                                                   .shape = shape,
                                                   .tiles = {3, 8},
                                                   .output = true});
    add_mix(mix, {.name = "n" + std::to_string(i),
                  .inputs = {{.tensor = last, .kernel_tiles = rows}},
                  .outputs = {{.tensor = next, .kernel_tiles = rows}},
                  .num_works = 40,
                  .resources = {.threads = 64, .shared_bytes = 100'000},
                  .salt = i,
                  .delay_seed = i,
                  .max_delay_ns = 5'000});
    last = next;
  }
  return mix;
}

TEST_F(OverlapOnGpu, PartsOfTheGpuVerifyAgainDowngradeAndGiveTheSameBits) {
  std::map<std::int32_t, std::int32_t> downgrades;
  for (const std::int32_t num_sms : {8, 16, 64, 132}) {
    SCOPED_TRACE(std::to_string(num_sms) + " SMs");
    const auto device = open_mix_gpu(num_sms);
    ASSERT_GE(device->limits().num_sms, num_sms);
    const MixPlan mix = wide_chain();
    {
      const Program program(*device, mix.plan);
      downgrades[num_sms] = program.verdict().num_downgrades();
      std::printf("%d SMs (asked for %d): %d of %zu edges downgraded\n", device->limits().num_sms,
                  num_sms, downgrades[num_sms], program.verdict().edges.size());
      if (num_sms == 8 || num_sms == 132) {
        std::printf("%s\n", program.verdict().table(program.plan()).c_str());
      }
    }
    for (const Submit submit : {Submit::kEager, Submit::kGraph}) {
      ASSERT_TRUE(runs_like_the_oracle(*device, mix, {.submit = submit}));
    }
    for (std::uint64_t seed = 101; seed <= 108; ++seed) {
      ASSERT_TRUE(runs_like_the_oracle(*device, random_plan({.seed = seed}), {}))
          << "seed " << seed;
    }
  }
  EXPECT_GT(downgrades[8], 0);
  EXPECT_EQ(downgrades[132], 0);
}

}  // namespace
}  // namespace tileweave
