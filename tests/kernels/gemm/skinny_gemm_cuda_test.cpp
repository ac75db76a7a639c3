// Skinny GEMM on a GPU: right, the same bits in every mode, cut and batch.
#include <gtest/gtest.h>

#include <vector>

#include "tests/kernels/gemm/skinny_case.h"
#include "tests/kernels/gemm/skinny_chain.h"
#include "tileweave/kernels/gemm/skinny_gemm_args.h"

namespace tileweave {
namespace {

const char* name_of(SkinnyKernel kernel) {
  return kernel == SkinnyKernel::kBulk ? "bulk" : "portable";
}

/// The families that the device has code for.
std::vector<SkinnyKernel> kernels_of(Device& device) {
  std::vector<SkinnyKernel> kernels;
  for (const SkinnyKernel kernel : {SkinnyKernel::kBulk, SkinnyKernel::kPortable}) {
    if (device.kernels().all().contains(skinny_gemm_kernel_name(kernel, 8, false, false))) {
      kernels.push_back(kernel);
    }
  }
  return kernels;
}

TEST(SkinnyGemmCuda, AgreesWithPlainSumsAndAllKernelsToTheBit) {
  const auto device = open_cuda_device();
  add_skinny_gemm(*device);
  for (SkinnyCase c : skinny_cases()) {
    const SkinnyData data(c);
    std::vector<float> first;
    for (const SkinnyKernel kernel : kernels_of(*device)) {
      c.options.kernel = kernel;
      SCOPED_TRACE(c.text() + ", " + name_of(kernel));
      const std::vector<float> y = run_skinny(*device, c, data);
      if (first.empty()) {
        expect_right(c, data, y);
        first = y;
      }
      EXPECT_EQ(y, first);
    }
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
  SkinnyCase c{.m = 5, .n = 200, .k = 6151, .residual = true};
  const SkinnyData data(c);
  std::vector<float> expected;
  for (const SkinnyKernel kernel : kernels_of(*device)) {
    for (const std::int64_t split : {1, 2, 3, 4}) {
      for (const std::int64_t stages : {1, 2, 3, 4}) {
        for (const std::int64_t strips : {1, 3}) {
          c.options = {
              .kernel = kernel, .strips_per_work = strips, .split_k = split, .stages = stages};
          const std::vector<float> y = run_skinny(*device, c, data);
          if (expected.empty()) expected = y;
          EXPECT_EQ(y, expected) << c.text() << ", " << name_of(kernel);
        }
      }
    }
  }
}

TEST(SkinnyGemmCuda, ChainsGiveTheSameBitsForEveryKernelEdgeKindAndStream) {
  const auto device = open_cuda_device();
  add_skinny_gemm(*device);
  const EdgePolicy edges[] = {{.kind = EdgeKind::kFull},
                              {.kind = EdgeKind::kProgrammatic},
                              {.kind = EdgeKind::kTile},
                              {.kind = EdgeKind::kTile, .start = StartRule::kWaitAll},
                              {.kind = EdgeKind::kTile, .start = StartRule::kLaunchCompletion}};
  for (const std::int64_t m : {1, 16}) {
    std::vector<float> expected;
    const auto expect_same = [&](const SkinnyChainOptions& o, Submit submit) {
      EXPECT_EQ(run_skinny_chain(*device, o,
                                 {.submit = submit, .launch_order = LaunchOrder::kTrusted}, 20),
                expected)
          << name_of(o.kernel) << ", " << name_of(o.edge.kind) << " " << name_of(o.edge.start)
          << ", " << o.num_streams << " streams, wait_k " << o.wait_k << ", " << m << " rows";
    };
    for (const SkinnyKernel kernel : kernels_of(*device)) {
      const std::vector<float> serial =
          run_skinny_chain(*device, {.m = m, .kernel = kernel}, {.mode = Mode::kSerial});
      if (expected.empty()) expected = serial;
      EXPECT_EQ(serial, expected) << name_of(kernel) << ", serial, " << m << " rows";
      for (const EdgePolicy& edge : edges) {
        for (const std::int32_t streams : {1, 2, 3}) {
          for (const std::int64_t wait_k : {0, 1024}) {
            for (const Submit submit : {Submit::kEager, Submit::kGraph}) {
              expect_same({.m = m,
                           .wait_k = wait_k,
                           .kernel = kernel,
                           .edge = edge,
                           .num_streams = streams},
                          submit);
            }
          }
        }
      }
    }
  }
}

TEST(SkinnyGemmCuda, ARowHasTheSameBitsAloneAndInABatch) {
  const auto device = open_cuda_device();
  add_skinny_gemm(*device);
  for (const SkinnyKernel kernel : kernels_of(*device)) {
    for (const std::int64_t split : {1, 2}) {
      SkinnyChainOptions o{.m = 16, .inner = 3100, .layers = 2, .split_k = split, .kernel = kernel};
      const std::vector<float> batch = run_skinny_chain(*device, o, {});
      for (const std::int64_t m : {1, 3, 9}) {
        o.m = m;
        const std::vector<float> some = run_skinny_chain(*device, o, {}, 2, 5);
        EXPECT_EQ(some, std::vector<float>(batch.begin() + 5 * o.hidden,
                                           batch.begin() + (5 + m) * o.hidden))
            << name_of(kernel) << ", " << m << " rows, split " << split;
      }
    }
  }
}

}  // namespace
}  // namespace tileweave
