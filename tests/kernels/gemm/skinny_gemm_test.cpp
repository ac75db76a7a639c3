// Skinny GEMM: packing, the cut, and the contract on the emulated device with checking views.
#include "tileweave/kernels/gemm/skinny_gemm.h"

#include <gtest/gtest.h>

#include <set>
#include <string>
#include <vector>

#include "tests/kernels/gemm/skinny_case.h"
#include "tests/kernels/gemm/skinny_chain.h"
#include "tileweave/core/error.h"
#include "tileweave/kernels/gemm/skinny_gemm_args.h"

namespace tileweave {
namespace {

TEST(PackedWeights, EveryElementHasAPlaceOfItsOwn) {
  for (const StripOrder order : {StripOrder::kRows, StripOrder::kPaired}) {
    for (const std::int64_t n : {2, 16, 34, 62}) {
      for (const std::int64_t k : {1, 15, 16, 17, 70}) {
        const PackedLayout layout{.n = n, .k = k, .order = order};
        std::set<std::int64_t> places;
        for (std::int64_t row = 0; row < n; ++row) {
          for (std::int64_t column = 0; column < k; ++column) {
            const std::int64_t at = layout.index_of(row, column);
            ASSERT_GE(at, 0);
            ASSERT_LT(at * 2, layout.bytes());
            ASSERT_TRUE(places.insert(at).second) << row << ", " << column;
          }
        }
      }
    }
  }
}

TEST(PackedWeights, ALaneHoldsItsFragmentOfTheTensorCoreOperand) {
  // PTX ISA, mma.m16n8k16, fragments of A: lane 4 g + t has rows g, g + 8 and columns 2 t, 2 t + 8.
  const PackedLayout layout{.n = 16, .k = 16};
  for (std::int64_t lane = 0; lane < 32; ++lane) {
    const std::int64_t g = lane / 4;
    const std::int64_t t = lane % 4;
    const std::int64_t rows[4] = {g, g + 8, g, g + 8};
    const std::int64_t columns[4] = {2 * t, 2 * t, 2 * t + 8, 2 * t + 8};
    for (int r = 0; r < 4; ++r) {
      for (std::int64_t half = 0; half < 2; ++half) {
        EXPECT_EQ(layout.index_of(rows[r], columns[r] + half), lane * 8 + r * 2 + half);
      }
    }
  }
}

TEST(SkinnyGemm, AgreesWithPlainSumsUnderCheckingViews) {
  const auto device = open_cpu_device({.check_views = CheckViews::kOn});
  add_skinny_gemm_cpu(device->kernels());
  for (const SkinnyCase& c : skinny_cases()) {
    SCOPED_TRACE(c.text());
    const SkinnyData data(c);
    expect_right(c, data, run_skinny(*device, c, data));
  }
}

TEST(SkinnyGemm, ChainsGiveTheSameBitsInEveryModeAndCut) {
  const auto device = open_cpu_device(
      {.way = CpuWay::kExplore, .num_sms = 7, .seed = 3, .check_views = CheckViews::kOn});
  add_skinny_gemm_cpu(device->kernels());
  const std::vector<float> expected = run_skinny_chain(*device, {.m = 3}, {.mode = Mode::kSerial});
  for (const std::int64_t wait_k : {0, 1024}) {
    for (const std::int32_t streams : {1, 2, 3}) {
      SkinnyChainOptions o{.m = 3, .wait_k = wait_k, .num_streams = streams};
      o.edge.start = StartRule::kWaitAll;
      EXPECT_EQ(run_skinny_chain(*device, o, {}), expected) << wait_k << ", " << streams;
    }
  }
}

TEST(SkinnyGemm, CutsFitTheDeviceAndGiveEverySmItsShare) {
  const struct {
    std::int64_t m, n, k;
    bool gated;
  } shapes[] = {{1, 3072, 2048, false},   {1, 2048, 2048, false},  {1, 16384, 2048, true},
                {1, 2048, 8192, false},   {16, 2048, 8192, false}, {16, 4096, 12288, false},
                {64, 4096, 12288, false}, {1, 1024, 3072, false},  {8, 24576, 4096, true},
                {16, 151936, 4096, false}};
  for (const auto& shape : shapes) {
    for (const std::int32_t per_sm : {1, 2}) {
      SkinnyGemmOptions base{.gated = shape.gated};
      const SkinnyGemmOptions cut =
          skinny_gemm_cut(shape.m, shape.n, shape.k, 132, base, per_sm, false);
      Plan plan;
      SkinnyGemmTensors t;
      t.x = plan.tensor({.name = "x",
                         .shape = {shape.m, shape.k},
                         .dtype = DType::kBF16,
                         .kind = TensorKind::kConstant});
      t.w = plan.tensor({.name = "w",
                         .shape = {shape.n, shape.k},
                         .dtype = DType::kBF16,
                         .kind = TensorKind::kConstant});
      t.y = plan.tensor(
          {.name = "y", .shape = {shape.m, shape.gated ? shape.n / 2 : shape.n}, .output = true});
      const NodeSpec node = skinny_gemm(plan.tensors(), cut, t);
      EXPECT_LE(node.num_works, 132) << shape.n << " x " << shape.k;
      EXPECT_GE(node.num_works, 60) << shape.n << " x " << shape.k;
      if (shape.m <= 8) {
        EXPECT_GE(blocks_per_sm(node.resources, h200_limits()), per_sm);
      }
    }
  }
}

TEST(SkinnyGemm, TheSmallestCutDecidesWhatFitsASmallerBlock) {
  constexpr std::int64_t kSmall = 99 << 10;
  const auto node = [](std::int64_t m, std::int64_t k, const SkinnyGemmOptions& options) {
    Plan plan;
    SkinnyGemmTensors t;
    t.x = plan.tensor(
        {.name = "x", .shape = {m, k}, .dtype = DType::kBF16, .kind = TensorKind::kConstant});
    t.w = plan.tensor(
        {.name = "w", .shape = {4096, k}, .dtype = DType::kBF16, .kind = TensorKind::kConstant});
    t.y = plan.tensor({.name = "y", .shape = {m, 4096}, .output = true});
    return skinny_gemm(plan.tensors(), options, t);
  };
  for (const SkinnyKernel kernel : {SkinnyKernel::kBulk, SkinnyKernel::kPortable}) {
    for (const std::int64_t m : {1, 2, 5, 8, 16, 32, 64}) {
      for (const std::int64_t k : {1, 1024, 2048, 4096, 8192, 12288, 14336}) {
        SCOPED_TRACE(testing::Message() << m << " rows, K " << k);
        const SkinnyGemmOptions base{.kernel = kernel, .shared_limit = kSmall};
        const SkinnyGemmOptions cut = skinny_gemm_cut(m, 4096, k, 82, base);
        if (skinny_gemm_least_shared(m, k, kernel, 0) <= kSmall) {
          EXPECT_LE(node(m, k, cut).resources.shared_bytes, kSmall);
          continue;
        }
        try {
          node(m, k, cut);
          ADD_FAILURE() << "a block that does not fit was not refused";
        } catch (const Error& error) {
          EXPECT_NE(std::string(error.what()).find("fewer rows"), std::string::npos)
              << error.what();
        }
      }
    }
  }
}

TEST(SkinnyGemm, ADeviceWithLittleSharedMemoryGivesTheSameBits) {
  DeviceLimits limits = h200_limits();
  limits.num_sms = 3;
  limits.shared_bytes_per_sm = 100 << 10;
  limits.shared_bytes_per_block = 99 << 10;
  limits.compute_capability = 86;
  const auto run = [](Device& device) {
    add_skinny_gemm_cpu(device.kernels());
    SkinnyCase c{.m = 8, .n = 80, .k = 5000};
    c.options.shared_limit = device.limits().shared_bytes_per_block;
    c.options = skinny_gemm_cut(c.m, c.n, c.k, device.limits().num_sms, c.options);
    return run_skinny(device, c, SkinnyData(c));
  };
  const auto small = open_cpu_device({.limits = limits});
  const auto large = open_cpu_device({.num_sms = 3});
  EXPECT_EQ(run(*small), run(*large));
}

TEST(SkinnyGemm, NamesSayKernelRowsAndNorm) {
  EXPECT_EQ(skinny_gemm_kernel_name(SkinnyKernel::kBulk, 8, false, false), "skinny_gemm.bulk.m8");
  EXPECT_EQ(skinny_gemm_kernel_name(SkinnyKernel::kPortable, skinny_tokens(9), true, true),
            "skinny_gemm.portable.m16.norm.split");
  const auto device = open_cpu_device();
  add_skinny_gemm_cpu(device->kernels());
  for (const std::string kernel : {"bulk", "portable"}) {
    for (const std::string rows : {"m1", "m8", "m16", "m32", "m64"}) {
      for (const std::string norm : {"", ".norm"}) {
        const std::string name = "skinny_gemm." + kernel + "." + rows + norm;
        EXPECT_TRUE(device->kernels().all().contains(name)) << name;
        EXPECT_TRUE(device->kernels().all().contains(name + ".split")) << name;
      }
    }
  }
}

TEST(SkinnyGemm, KernelsGiveTheSameBitsAndThePortableOneNeedsNoLoader) {
  const auto device = open_cpu_device();
  add_skinny_gemm_cpu(device->kernels());
  SkinnyChainOptions o{.m = 3, .layers = 2};
  const std::vector<float> bulk = run_skinny_chain(*device, o, {});
  o.kernel = SkinnyKernel::kPortable;
  EXPECT_EQ(run_skinny_chain(*device, o, {}), bulk);

  Plan plan;
  SkinnyGemmTensors t;
  t.x = plan.tensor({.name = "x", .shape = {2, 64}, .dtype = DType::kBF16});
  t.w = plan.tensor(
      {.name = "w", .shape = {32, 64}, .dtype = DType::kBF16, .kind = TensorKind::kConstant});
  t.y = plan.tensor({.name = "y", .shape = {2, 32}});
  const NodeSpec node =
      skinny_gemm(plan.tensors(), {.kernel = SkinnyKernel::kPortable, .stages = 2}, t);
  EXPECT_EQ(node.kernel, "skinny_gemm.portable.m8");
  EXPECT_EQ(node.resources.threads, kSkinnyConsumers);
}

std::string refusal(const SkinnyCase& c) {
  try {
    const auto device = open_cpu_device();
    add_skinny_gemm_cpu(device->kernels());
    run_skinny(*device, c, SkinnyData(c));
  } catch (const Error& error) {
    return error.what();
  }
  return "";
}

TEST(SkinnyGemm, RefusesWhatItCannotDoByName) {
  EXPECT_NE(refusal({.m = 65}).find("`x` must have 1 to 64 rows"), std::string::npos);
  EXPECT_NE(refusal({.options = {.split_k = 2}}).find("split_k"), std::string::npos);
  EXPECT_NE(refusal({.options = {.stages = 14}}).find("stages"), std::string::npos);
  EXPECT_NE(refusal({.norm = true, .options = {.wait_k = 1024}}).find("split_k"), 0U);
  EXPECT_NE(refusal({.n = 31, .options = {.gated = true, .strips_per_work = 2}}).find("even"),
            std::string::npos);
  EXPECT_NE(refusal({.options = {.gated = true, .strips_per_work = 1}}).find("strips_per_work"),
            std::string::npos);
  EXPECT_NE(refusal({.m = 64, .k = 2048, .options = {.stages = 6}}).find("shared memory"),
            std::string::npos);
}

}  // namespace
}  // namespace tileweave
