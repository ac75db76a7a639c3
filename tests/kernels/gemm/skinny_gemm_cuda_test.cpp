// Skinny GEMM on a GPU: right, the same bits in every mode, cut and batch.
#include <gtest/gtest.h>

#include "tests/kernels/gemm/skinny_case.h"
#include "tests/kernels/gemm/skinny_chain.h"

namespace tileweave {
namespace {

TEST(SkinnyGemmCuda, AgreesWithPlainSums) {
  const auto device = open_cuda_device();
  add_skinny_gemm(*device);
  for (const SkinnyCase& c : skinny_cases()) {
    SCOPED_TRACE(c.text());
    const SkinnyData data(c);
    expect_right(c, data, run_skinny(*device, c, data));
  }
}

TEST(SkinnyGemmCuda, PackingOnTheDeviceIsPackingOnTheHost) {
  const auto device = open_cuda_device();
  for (const StripOrder order : {StripOrder::kRows, StripOrder::kPaired}) {
    for (const std::int64_t k : {1, 16, 131, 512}) {
      const PackedLayout layout{.n = 70, .k = k, .order = order};
      const auto w = random_values<BFloat16>(layout.n * k, 1);
      std::vector<BFloat16> expected(static_cast<std::size_t>(layout.bytes()) / 2);
      pack_weights(w.data(), layout, expected.data());
      const PackedOnDevice from(*device, w);
      const PackedOnDevice to(*device, std::vector<BFloat16>(expected.size()));
      pack_weights_on(*device, static_cast<const BFloat16*>(from.address()), layout,
                      static_cast<BFloat16*>(to.address()));
      std::vector<BFloat16> got(expected.size());
      device->download(got.data(), to.address(), got.size() * 2);
      for (std::size_t i = 0; i < got.size(); ++i) {
        ASSERT_EQ(got[i].bits, expected[i].bits) << "element " << i << ", k " << k;
      }
    }
  }
}

TEST(SkinnyGemmCuda, SplitsRingsAndWindowsDoNotChangeTheBits) {
  const auto device = open_cuda_device();
  add_skinny_gemm(*device);
  SkinnyCase c{.m = 5, .n = 200, .k = 6151, .residual = true, .options = {.stages = 2}};
  const SkinnyData data(c);
  const std::vector<float> expected = run_skinny(*device, c, data);
  for (const std::int64_t split : {1, 2, 3, 4}) {
    for (const std::int64_t stages : {1, 2, 3}) {
      for (const std::int64_t strips : {1, 3}) {
        c.options = {.strips_per_work = strips, .split_k = split, .stages = stages};
        EXPECT_EQ(run_skinny(*device, c, data), expected) << c.text();
      }
    }
  }
}

TEST(SkinnyGemmCuda, ChainsGiveTheSameBitsForEveryEdgeKindAndStream) {
  const auto device = open_cuda_device();
  add_skinny_gemm(*device);
  for (const std::int64_t m : {1, 16}) {
    const std::vector<float> expected =
        run_skinny_chain(*device, {.m = m}, {.mode = Mode::kSerial});
    const EdgePolicy edges[] = {{.kind = EdgeKind::kFull},
                                {.kind = EdgeKind::kProgrammatic},
                                {.kind = EdgeKind::kTile},
                                {.kind = EdgeKind::kTile, .start = StartRule::kWaitAll},
                                {.kind = EdgeKind::kTile, .start = StartRule::kLaunchCompletion}};
    for (const EdgePolicy& edge : edges) {
      for (const std::int32_t streams : {1, 2, 3}) {
        for (const std::int64_t wait_k : {0, 1024}) {
          for (const Submit submit : {Submit::kEager, Submit::kGraph}) {
            SkinnyChainOptions o{.m = m, .wait_k = wait_k, .edge = edge, .num_streams = streams};
            EXPECT_EQ(
                run_skinny_chain(*device, o,
                                 {.submit = submit, .launch_order = LaunchOrder::kTrusted}, 20),
                expected)
                << name_of(edge.kind) << " " << name_of(edge.start) << ", " << streams
                << " streams, wait_k " << wait_k << ", " << m << " rows";
          }
        }
      }
    }
  }
}

TEST(SkinnyGemmCuda, ARowHasTheSameBitsAloneAndInABatch) {
  const auto device = open_cuda_device();
  add_skinny_gemm(*device);
  for (const std::int64_t split : {1, 2}) {
    SkinnyChainOptions o{.m = 16, .inner = 3100, .layers = 2, .split_k = split};
    const std::vector<float> batch = run_skinny_chain(*device, o, {});
    for (const std::int64_t m : {1, 3, 9}) {
      o.m = m;
      const std::vector<float> some = run_skinny_chain(*device, o, {}, 2, 5);
      EXPECT_EQ(some, std::vector<float>(batch.begin() + 5 * o.hidden,
                                         batch.begin() + (5 + m) * o.hidden))
          << m << " rows, split " << split;
    }
  }
}

}  // namespace
}  // namespace tileweave
