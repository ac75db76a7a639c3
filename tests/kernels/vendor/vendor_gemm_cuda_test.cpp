// The vendor GEMM on a GPU: right for any size and alignment, between tile kernels in every mode.
#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <thread>

#include "tests/kernels/vendor/vendor_case.h"
#include "tileweave/core/error.h"
#include "tileweave/runtime/async_stream.h"

namespace tileweave {
namespace {

/// Skips where there is no cuBLASLt: a GPU needs none.
class VendorGemmCuda : public testing::Test {
 protected:
  void SetUp() override {
    device = open_cuda_device();
    add_norm(*device);
    try {
      add_vendor_gemm(*device);
      const SkinnyCase c{.m = 8, .n = 8, .k = 8};
      run_vendor(*device, c, vendor_data(c));
    } catch (const Error& error) {
      const std::string said = error.what();
      if (said.find("load cuBLASLt") == std::string::npos) throw;  // no library, or no header
      GTEST_SKIP() << "skipped: vendor GEMM (" << said << ")";
    }
  }
  std::unique_ptr<Device> device;
};

TEST_F(VendorGemmCuda, AgreesWithPlainSums) {
  for (const SkinnyCase& c : vendor_cases()) {
    SCOPED_TRACE(c.text());
    const SkinnyData data = vendor_data(c);
    expect_right(c, data, run_vendor(*device, c, data));
  }
}

TEST_F(VendorGemmCuda, AgreesWithPlainSumsAtTheSizesOfAModel) {
  for (const SkinnyCase& c :
       {SkinnyCase{.m = 200, .n = 640, .k = 4096, .residual = true},
        SkinnyCase{.m = 512, .n = 256, .k = 8192},
        SkinnyCase{.m = 130, .n = 320, .k = 2048, .y_type = DType::kBF16},
        SkinnyCase{.m = 130, .n = 320, .k = 2048, .residual = true, .bias = true}}) {
    SCOPED_TRACE(c.text());
    const SkinnyData data = vendor_data(c);
    expect_right(c, data, run_vendor(*device, c, data));
  }
}

TEST_F(VendorGemmCuda, TakesAddressesOfAnyAlignment) {
  for (const std::size_t offset : {4, 8, 16, 32, 128}) {
    for (const DType type : {DType::kF32, DType::kBF16}) {
      const SkinnyCase c{.m = 70,
                         .n = 72,
                         .k = 128,
                         .residual = true,
                         .bias = type == DType::kF32,
                         .y_type = type};
      SCOPED_TRACE(c.text() + ", " + std::to_string(offset) + " bytes off");
      const SkinnyData data = vendor_data(c);
      expect_right(c, data, run_vendor(*device, c, data, {}, offset));
    }
  }
}

TEST_F(VendorGemmCuda, TakesABiasOfEitherType) {
  for (const bool residual : {false, true}) {
    const SkinnyCase c{.m = 70, .n = 33, .k = 128, .residual = residual, .bias = true};
    const SkinnyData data = vendor_data(c);
    const std::vector<float> with_bf16 = run_vendor(*device, c, data);
    EXPECT_TRUE((run_vendor_as<float, float>(*device, c, data, {}, 0) == with_bf16));
  }
}

TEST_F(VendorGemmCuda, AddedTwiceIsStillTheSameForPlansThatHaveIt) {
  Plan plan;
  const TensorId x = plan.tensor(
      {.name = "x", .shape = {4, 8}, .dtype = DType::kBF16, .kind = TensorKind::kConstant});
  const TensorId w = plan.tensor(
      {.name = "w", .shape = {8, 8}, .dtype = DType::kBF16, .kind = TensorKind::kConstant});
  const TensorId y = plan.tensor({.name = "y", .shape = {4, 8}, .output = true});
  plan.add(vendor_gemm(plan.tensors(), {}, {.x = x, .w = w, .y = y}));
  Program program(*device, plan, {.submit = Submit::kEager});
  add_vendor_gemm(*device);
  program.write(x, std::vector<BFloat16>(32, to_bfloat16(1)));
  program.write(w, std::vector<BFloat16>(64, to_bfloat16(0.5F)));
  program.run();
  program.synchronize();
  EXPECT_EQ(program.read<float>(y), std::vector<float>(32, 4.0F));
}

TEST_F(VendorGemmCuda, GivesTheSameBitsEveryTime) {
  const SkinnyCase c{.m = 100, .n = 300, .k = 6151, .residual = true};
  const SkinnyData data = vendor_data(c);
  const std::vector<float> expected = run_vendor(*device, c, data);
  for (int i = 0; i < 5; ++i) {
    for (const Submit submit : {Submit::kEager, Submit::kGraph}) {
      EXPECT_TRUE(run_vendor(*device, c, data, {.submit = submit}) == expected) << i;
    }
  }
}

TEST_F(VendorGemmCuda, BetweenTileKernelsGivesTheSameBitsInEveryMode) {
  const std::vector<float> serial = run_vendor_chain(*device, {.mode = Mode::kSerial}, 1, {});
  for (const EdgeKind kind : {EdgeKind::kFull, EdgeKind::kProgrammatic, EdgeKind::kTile}) {
    for (const std::int32_t streams : {1, 2, 3}) {
      for (const Submit submit : {Submit::kEager, Submit::kGraph}) {
        EXPECT_TRUE(run_vendor_chain(*device, {.submit = submit}, streams, {.kind = kind}, 50) ==
                    serial)
            << name_of(kind) << ", " << streams << " streams, "
            << (submit == Submit::kGraph ? "graph" : "eager");
      }
    }
  }
}

TEST_F(VendorGemmCuda, ThreadsWithProgramsOfTheirOwnShareADevice) {
  const SkinnyCase c{.m = 65, .n = 96, .k = 256, .bias = true};
  const SkinnyData data = vendor_data(c);
  const std::vector<float> expected = run_vendor(*device, c, data);
  std::vector<std::vector<float>> got(4);
  std::vector<std::thread> threads;
  for (std::vector<float>& result : got) {
    threads.emplace_back(
        [&] { result = run_vendor(*device, c, data, {.submit = Submit::kEager}); });
  }
  for (std::thread& thread : threads) thread.join();
  for (const std::vector<float>& result : got) EXPECT_TRUE(result == expected);
}

TEST_F(VendorGemmCuda, IsLaunchedOnAStream) {
  const SkinnyCase c{.m = 33, .n = 40, .k = 64};
  const SkinnyData data = vendor_data(c);
  AsyncStream stream(*device);
  const StreamTensor x = stream.tensor(
      {.name = "x", .shape = {c.m, c.k}, .dtype = DType::kBF16, .kind = TensorKind::kConstant});
  const StreamTensor w = stream.tensor(
      {.name = "w", .shape = {c.n, c.k}, .dtype = DType::kBF16, .kind = TensorKind::kConstant});
  const StreamTensor y = stream.tensor({.name = "y", .shape = {c.m, c.n}});
  stream.upload(x, as<BFloat16>(data.x).data());
  stream.upload(w, data.w.data());
  for (int run = 0; run < 3; ++run) {
    stream.begin_run();
    stream.launch(vendor_gemm(stream.tensors(), {}, {.x = x.id(), .w = w.id(), .y = y.id()}));
    stream.end_run();
  }
  stream.synchronize();
  std::vector<float> got(static_cast<std::size_t>(c.m * c.n));
  stream.download(y, got.data());
  expect_right(c, data, got);
}

}  // namespace
}  // namespace tileweave
