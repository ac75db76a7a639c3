// Wide GEMM on a GPU: right, the same bits in every mode, tiling and number of rows, and those of
// skinny_gemm; leaves when what it waits for never comes.
#include <gtest/gtest.h>

#include <bit>
#include <chrono>
#include <cmath>
#include <memory>
#include <random>
#include <string>
#include <vector>

#include "tests/kernels/gemm/wide_case.h"
#include "tileweave/core/error.h"
#include "tileweave/kernels/gemm/wide_gemm_args.h"

namespace tileweave {
namespace {

class WideGemmCuda : public testing::Test {
 protected:
  void SetUp() override {
    device = open_cuda_device();
    add_wide_gemm(*device);
    add_skinny_gemm(*device);
    if (!has_wide_gemm(*device)) GTEST_SKIP() << "skipped: wide GEMM (needs a GPU of sm_90)";
  }
  std::unique_ptr<Device> device;
};

TEST_F(WideGemmCuda, AgreesWithPlainSums) {
  for (const SkinnyCase& c : wide_cases()) {
    SCOPED_TRACE(c.text());
    const SkinnyData data(c);
    expect_right(c, data, run_wide(*device, c, data));
  }
}

TEST_F(WideGemmCuda, AgreesWithPlainSumsAtTheSizesOfAModel) {
  for (SkinnyCase c : {SkinnyCase{.m = 200, .n = 640, .k = 4096, .residual = true},
                       SkinnyCase{.m = 130, .n = 2 * 320, .k = 2048, .y_type = DType::kBF16}}) {
    c.options = {.gated = !c.residual, .strips_per_work = 2};
    SCOPED_TRACE(c.text());
    const SkinnyData data(c);
    expect_right(c, data, run_wide(*device, c, data));
  }
}

/// Elements that are not the same number, and the first of them.
std::string differences(const std::vector<float>& a, const std::vector<float>& b) {
  std::size_t count = 0;
  std::string first;
  for (std::size_t i = 0; i < a.size(); ++i) {
    if (a[i] == b[i]) continue;
    if (count++ == 0) {
      first = ", the first at " + std::to_string(i) + ": " + testing::PrintToString(a[i]) +
              " and " + testing::PrintToString(b[i]) + ", " +
              std::to_string(std::abs(std::int64_t{std::bit_cast<std::int32_t>(a[i])} -
                                      std::bit_cast<std::int32_t>(b[i]))) +
              " units in the last place apart";
    }
  }
  return std::to_string(count) + " of " + std::to_string(a.size()) + " elements differ" + first;
}

/// Terms of a sum spread over 2^-24 to 2^24, so that every way of aligning and rounding them shows.
void spread_exponents(SkinnyData& data) {
  std::mt19937 bits(17);
  std::uniform_int_distribution<int> exponent(-12, 12);
  for (float& value : data.x) value = to_float(to_bfloat16(std::ldexp(value, exponent(bits))));
  for (BFloat16& value : data.w) {
    value = to_bfloat16(std::ldexp(to_float(value), exponent(bits)));
  }
}

TEST_F(WideGemmCuda, ARowHasTheBitsThatSkinnyGemmGivesItBeyond16Rows) {
  for (const std::int64_t k : {16, 32, 100, 128, 131, 1000, 1024, 2500, 4096, 5000}) {
    for (const std::int64_t m : {17, 40, 64}) {
      for (const bool wide_range : {false, true}) {
        SkinnyCase c{.m = m, .n = 96, .k = k};
        c.options = {.split_k = k > 1024 ? ceil_div(k, 1024) : 1, .stages = 1};
        SkinnyData data(c);
        if (wide_range) spread_exponents(data);
        const std::vector<float> skinny = run_skinny(*device, c, data);
        c.options.split_k = 1;
        const std::vector<float> wide = run_wide(*device, c, data);
        EXPECT_TRUE(wide == skinny)
            << c.text() << (wide_range ? ", terms of 2^-24 to 2^24: " : ": ")
            << differences(wide, skinny)
            << ". If wgmma does not round as mma.sync does, say so in wide_gemm.h and hold the "
               "models to a bound.";
      }
    }
  }
}

TEST_F(WideGemmCuda, SplitsDoNotChangeTheBits) {
  SkinnyCase c{.m = 200, .n = 300, .k = 6151, .residual = true};
  SkinnyData data(c);
  spread_exponents(data);
  const std::vector<float> expected = run_wide(*device, c, data);
  for (const std::int64_t split : {2, 3, 4, 5, 6, 7}) {
    c.options.split_k = split;
    const std::vector<float> got = run_wide(*device, c, data);
    EXPECT_TRUE(got == expected) << "split " << split << ": " << differences(got, expected);
  }
}

TEST_F(WideGemmCuda, EpiloguesHaveTheBitsOfSkinnyGemm) {
  for (const DType type : {DType::kF32, DType::kBF16}) {
    for (const bool gated : {false, true}) {
      SkinnyCase c{
          .m = 50, .n = 2 * 70, .k = 272, .residual = !gated, .bias = true, .y_type = type};
      c.options = {.gated = gated, .strips_per_work = 2, .stages = 1};
      const SkinnyData data(c);
      const std::vector<float> wide = run_wide(*device, c, data);
      const std::vector<float> skinny = run_skinny(*device, c, data);
      EXPECT_TRUE(wide == skinny) << c.text() << ": " << differences(wide, skinny);
    }
  }
}

TEST_F(WideGemmCuda, ARowHasTheSameBitsAmongAnyOthers) {
  SkinnyCase c{.m = 251, .n = 150, .k = 1304, .residual = true};
  const SkinnyData all(c);
  const std::vector<float> expected = run_wide(*device, c, all);
  for (const std::int64_t first : {0, 3, 100}) {
    for (const std::int64_t m : {1, 64, 129}) {
      SkinnyCase some = c;
      some.m = m;
      SkinnyData data(some);
      data.w = all.w;
      data.x.assign(all.x.begin() + first * c.k, all.x.begin() + (first + m) * c.k);
      data.residual.assign(all.residual.begin() + first * c.n,
                           all.residual.begin() + (first + m) * c.n);
      const std::vector<float> got = run_wide(*device, some, data);
      EXPECT_TRUE(got == std::vector<float>(expected.begin() + first * c.n,
                                            expected.begin() + (first + m) * c.n))
          << m << " rows from " << first;
    }
  }
}

TEST_F(WideGemmCuda, ChainsGiveTheSameBitsForEveryEdgeKindAndStream) {
  const EdgePolicy edges[] = {{.kind = EdgeKind::kFull},
                              {.kind = EdgeKind::kProgrammatic},
                              {.kind = EdgeKind::kTile},
                              {.kind = EdgeKind::kTile, .start = StartRule::kWaitAll},
                              {.kind = EdgeKind::kTile, .start = StartRule::kLaunchCompletion}};
  for (const std::int64_t m :
       {70, 300, 2100}) {  // of 2100 rows the blocks of a node do not all fit
    const std::vector<float> serial =
        run_wide_chain(*device, {.m = m, .inner = 1072}, {.mode = Mode::kSerial}, 1);
    for (const EdgePolicy& edge : edges) {
      for (const std::int32_t streams : {1, 2, 3}) {
        for (const std::int64_t tile_rows : {100, 128, 4096}) {
          const std::int64_t split = tile_rows == 128 ? 2 : 1;
          for (const Submit submit : {Submit::kEager, Submit::kGraph}) {
            const std::vector<float> got =
                run_wide_chain(*device,
                               {.m = m,
                                .inner = 1072,
                                .split_k = split,
                                .tile_rows = tile_rows,
                                .edge = edge,
                                .num_streams = streams},
                               {.submit = submit, .launch_order = LaunchOrder::kTrusted}, 10);
            EXPECT_TRUE(got == serial)
                << name_of(edge.kind) << " " << name_of(edge.start) << ", " << streams
                << " streams, data tiles of " << tile_rows << " rows, " << m << " rows, "
                << (submit == Submit::kGraph ? "graph" : "eager") << ": "
                << differences(got, serial);
          }
        }
      }
    }
  }
}

TEST_F(WideGemmCuda, ABlockWhoseInputNeverComesLeavesAndTheDeviceStaysUsable) {
  constexpr std::uint64_t kDeadline = 500'000'000;
  const std::int64_t m = 300, k = 1000;
  const auto w = random_values<BFloat16>(k * k, 2);
  SkinnyCase c{.m = m, .n = k, .k = k};
  const PackedOnDevice weights(*device, packed(w, c));
  Plan plan({.num_streams = 2, .edge = {.kind = EdgeKind::kTile, .start = StartRule::kWaitAll}});
  const TensorId x = plan.tensor(
      {.name = "x", .shape = {m, k}, .dtype = DType::kBF16, .kind = TensorKind::kConstant});
  const TensorId weight = plan.tensor({.name = "w",
                                       .shape = {k, k},
                                       .dtype = DType::kBF16,
                                       .kind = TensorKind::kConstant,
                                       .address = weights.address()});
  const TensorId h =
      plan.tensor({.name = "h", .shape = {m, k}, .dtype = DType::kBF16, .tiles = {128, k}});
  const TensorId y = plan.tensor({.name = "y", .shape = {m, k}, .output = true});
  plan.add(wide_gemm(plan.tensors(), {.name = "first"}, {.x = x, .w = weight, .y = h}));
  NodeSpec second = wide_gemm(plan.tensors(), {.name = "second"}, {.x = h, .w = weight, .y = y});
  second.operands[WideGemmOperands::kX].target = TargetMap::constant(1 << 20);
  plan.add(second);
  {
    Program program(*device, plan, {.contracts = ContractCheck::kOff, .deadline_ns = kDeadline});
    program.write(x, random_values<BFloat16>(m * k, 1));
    const auto begin = std::chrono::steady_clock::now();
    program.run();
    EXPECT_THROW(program.synchronize(), Error);
    EXPECT_LT(std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count(), 2.0);
    EXPECT_TRUE(program.poisoned());
    ASSERT_TRUE(program.hang().has_value());
    EXPECT_EQ(program.hang()->node, "second");
    EXPECT_EQ(program.hang()->tensor, "h");
    program.recover();
  }
  SkinnyCase right{.m = 130, .n = 131, .k = 200};
  const SkinnyData data(right);
  expect_right(right, data, run_wide(*device, right, data));
}

}  // namespace
}  // namespace tileweave
