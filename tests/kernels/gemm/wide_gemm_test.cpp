// Wide GEMM: the contract on the emulated device with checking views.
#include "tileweave/kernels/gemm/wide_gemm.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "tests/kernels/gemm/wide_case.h"
#include "tileweave/core/error.h"
#include "tileweave/kernels/gemm/wide_gemm_args.h"

namespace tileweave {
namespace {

TEST(WideGemm, AgreesWithPlainSumsUnderCheckingViews) {
  const auto device = open_cpu_device({.check_views = CheckViews::kOn});
  add_wide_gemm_cpu(device->kernels());
  for (const SkinnyCase& c : wide_cases()) {
    SCOPED_TRACE(c.text());
    const SkinnyData data(c);
    expect_right(c, data, run_wide(*device, c, data));
  }
}

TEST(WideGemm, ARowHasTheBitsThatSkinnyGemmGivesItBeyond16Rows) {
  const auto device = open_cpu_device();
  add_wide_gemm_cpu(device->kernels());
  add_skinny_gemm_cpu(device->kernels());
  for (const std::int64_t k : {300, 1024, 5000}) {
    for (const bool gated : {false, true}) {
      SkinnyCase c{.m = 20, .n = 70, .k = k, .residual = true, .bias = true};
      c.options = {.gated = gated, .strips_per_work = 2, .split_k = k > 2048 ? 3 : 1, .stages = 1};
      const SkinnyData data(c);
      const std::vector<float> skinny = run_skinny(*device, c, data);
      EXPECT_EQ(run_wide(*device, c, data), skinny) << c.text();
      c.options.split_k = 1;
      EXPECT_EQ(run_wide(*device, c, data), skinny) << c.text();
    }
  }
}

TEST(WideGemm, ChainsGiveTheSameBitsInEveryModeAndTiling) {
  const auto device = open_cpu_device(
      {.way = CpuWay::kExplore, .num_sms = 7, .seed = 3, .check_views = CheckViews::kOn});
  add_wide_gemm_cpu(device->kernels());
  WideChainOptions o{.m = 150, .hidden = 48, .inner = 1040, .layers = 2};
  const std::vector<float> expected = run_wide_chain(*device, o, {.mode = Mode::kSerial});
  for (const std::int64_t tile_rows : {128, 50}) {
    for (const std::int64_t split : {1, 2}) {
      for (const std::int32_t streams : {1, 3}) {
        o.tile_rows = tile_rows;
        o.split_k = split;
        o.num_streams = streams;
        o.edge.start = StartRule::kWaitAll;
        EXPECT_EQ(run_wide_chain(*device, o, {}), expected)
            << tile_rows << " rows, split " << split << ", " << streams << " streams";
      }
    }
  }
}

/// The node of a product with operands of these shapes.
NodeSpec node_of(std::int64_t m, std::int64_t n, std::int64_t k,
                 const WideGemmOptions& options = {}, DType x_type = DType::kBF16,
                 std::int64_t y_rows = 0) {
  Plan plan;
  WideGemmTensors t;
  t.x = plan.tensor({.name = "x", .shape = {m, k}, .dtype = x_type});
  t.w = plan.tensor(
      {.name = "w", .shape = {n, k}, .dtype = DType::kBF16, .kind = TensorKind::kConstant});
  t.y = plan.tensor({.name = "y", .shape = {y_rows > 0 ? y_rows : m, options.gated ? n / 2 : n}});
  return wide_gemm(plan.tensors(), options, t);
}

TEST(WideGemm, WorksThatShareStripsAreNeighbours) {
  const NodeSpec node = node_of(300, 260, 2000, {.split_k = 2});
  EXPECT_EQ(node.num_works, 3 * 3 * 2);
  EXPECT_EQ(node.counter.arrivals, std::vector<std::uint32_t>(9, 2));
  for (std::int64_t work = 0; work < node.num_works; ++work) {
    const std::int64_t result = work / 2;
    const OperandSpec& x = node.operands[WideGemmOperands::kX];
    const OperandSpec& y = node.operands[WideGemmOperands::kY];
    EXPECT_EQ(x.tiles_of_work(work), std::vector<std::int64_t>{result % 3});
    EXPECT_EQ(y.tiles_of_work(work), std::vector<std::int64_t>{result % 3 * 3 + result / 3});
  }
}

TEST(WideGemm, SplitsFillTheSmsAndLeaveEveryWorkAPart) {
  EXPECT_EQ(wide_gemm_split(512, 4096, 4096, 132), 1);  // 128 tiles
  EXPECT_EQ(wide_gemm_split(128, 4096, 4096, 132), 4);  // 32
  EXPECT_EQ(wide_gemm_split(128, 6144, 4096, 132), 2);  // 48
  EXPECT_EQ(wide_gemm_split(128, 2048, 2048, 132), 2);  // 16, two parts
  EXPECT_EQ(wide_gemm_split(2048, 28672, 4096, 132), 1);
  EXPECT_EQ(wide_gemm_split(1, 1, 1, 132), 1);
  for (const std::int64_t k : {1025, 5000, 14336}) {
    for (std::int64_t split = 1; split <= ceil_div(k, kPartColumns); ++split) {
      const WideGemmSchedule s{.k = static_cast<std::int32_t>(k),
                               .split_k = static_cast<std::int32_t>(split)};
      EXPECT_EQ(s.first_part(0), 0);
      EXPECT_EQ(s.end_part(static_cast<int>(split) - 1), s.parts());
      for (int work = 0; work < split; ++work) {
        EXPECT_LT(s.first_part(work), s.end_part(work)) << k << ", " << split;
      }
    }
  }
}

TEST(WideGemm, OneBlockFitsAnSmOfAnH200) {
  EXPECT_EQ(blocks_per_sm(node_of(512, 4096, 4096).resources, h200_limits()), 1);
}

std::string refusal(std::int64_t n, const WideGemmOptions& options, DType x_type,
                    std::int64_t y_rows) {
  try {
    node_of(10, n, 16, options, x_type, y_rows);
  } catch (const Error& error) {
    return error.what();
  }
  return "";
}

TEST(WideGemm, RefusesWhatItCannotDoByName) {
  EXPECT_EQ(refusal(16, {}, DType::kBF16, 10), "");
  EXPECT_NE(refusal(15, {.gated = true}, DType::kBF16, 10).find("even number of rows"),
            std::string::npos);
  EXPECT_NE(refusal(16, {}, DType::kF32, 10).find("`x` must be bf16"), std::string::npos);
  EXPECT_NE(refusal(16, {}, DType::kBF16, 11).find("`y` must be"), std::string::npos);
  EXPECT_NE(
      refusal(16, {.split_k = 2}, DType::kBF16, 10).find("split_k must be between 1 and the 1"),
      std::string::npos);
}

}  // namespace
}  // namespace tileweave
