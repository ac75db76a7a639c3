// Kernels that are another library's call, on the emulated device, which runs their CPU form.
#include "tests/runtime/vendor_calls.h"

#include <algorithm>

#include "tests/runtime/counting_device.h"
#include "tileweave/runtime/cpu/tile_view.h"

namespace tileweave {
namespace {

KernelImpl copy_kernel(std::function<void(Device&, const std::byte*)> prepare) {
  return {.name = "copy",
          .cpu =
              [](CpuLane&, const std::byte* args, const std::byte*) {
                const CopyArgs& copy = copy_args(args);
                std::copy_n(copy.from, copy.count, copy.to);
              },
          .vendor_call = VendorCall{.prepare = std::move(prepare), .enqueue = nullptr}};
}

TEST(VendorCalls, BetweenTileKernelsGiveTheSameBitsInEveryModeAndSubmission) {
  for (const CpuWay way : {CpuWay::kThroughput, CpuWay::kExplore, CpuWay::kModel}) {
    int calls = 0;
    const auto device = open_mix_device({.way = way, .num_sms = 2});
    device->kernels().add(copy_kernel([&](Device& given, const std::byte* args) {
      ++calls;
      EXPECT_EQ(&given, device.get());
      EXPECT_EQ(copy_args(args).count, 32U);
      EXPECT_NE(copy_args(args).to, nullptr);
    }));
    expect_right_in_every_mode(*device, way == CpuWay::kThroughput ? 2'000 : 0, calls);
  }
}

TEST(VendorCalls, WithoutACpuFormAreCallsOfTheirLaunch) {
  int calls = 0;
  const auto device = open_mix_device({.num_sms = 2});
  KernelImpl kernel = copy_kernel([&](Device&, const std::byte*) { ++calls; });
  kernel.cpu = nullptr;
  kernel.vendor_call->enqueue = [](NativeStream, const std::byte* args) {
    const CopyArgs& copy = copy_args(args);
    std::copy_n(copy.from, copy.count, copy.to);
  };
  device->kernels().add(kernel);
  expect_right_in_every_mode(*device, 2'000, calls);

  kernel.vendor_call->enqueue = [](NativeStream, const std::byte*) {
    throw Error("copy", "a stream that copies", "none");
  };
  device->kernels().add(kernel);
  const CopiedNodes nodes;
  Program program(*device, nodes.two.mix.plan);
  upload(program, nodes.two.mix);
  try {
    program.run();
    program.synchronize();
    ADD_FAILURE() << "nothing was thrown";
  } catch (const Error& error) {
    const std::string said = error.what();
    EXPECT_NE(said.find("launch `copy`"), std::string::npos) << said;
    EXPECT_NE(said.find("a stream that copies"), std::string::npos) << said;
  }
}

TEST(VendorCalls, AreOrderedAgainstBothNeighboursInAnyAdmissionOrder) {
  const std::vector<std::uint32_t> expected = result_without_copy();
  for (std::uint64_t seed = 1; seed <= 30; ++seed) {
    const auto device = open_mix_device(
        {.way = CpuWay::kExplore, .num_sms = 7, .seed = seed, .delay_probability = 0.3});
    device->kernels().add(copy_kernel([](Device&, const std::byte*) {}));
    const CopiedNodes nodes;
    Program program(*device, nodes.two.mix.plan);
    upload(program, nodes.two.mix);
    for (int run = 0; run < 2; ++run) program.run();
    program.synchronize();
    EXPECT_EQ(program.read<std::uint32_t>(nodes.two.z), expected) << "seed " << seed;
  }
}

TEST(VendorCalls, HaveFullEdgesOnBothSides) {
  const CopiedNodes nodes;
  const Verdict verdict = verify(nodes.two.mix.plan, {.device = emulated(3)});
  ASSERT_TRUE(verdict.ok()) << verdict.faults[0].sentence;
  ASSERT_EQ(verdict.edges.size(), 2U);
  for (const EdgeReport& edge : verdict.edges) {
    EXPECT_EQ(edge.kind, EdgeKind::kFull) << edge.why;
    EXPECT_NE(edge.why.find("not integrated"), std::string::npos) << edge.why;
  }
}

TEST(VendorCalls, OnAStreamArePreparedBeforeTheyAreLaunched) {
  int calls = 0;
  const auto device = open_mix_device({.num_sms = 2});
  device->kernels().add(copy_kernel([&](Device&, const std::byte*) { ++calls; }));
  AsyncStream stream(*device);
  const StreamTensor from = stream.tensor(
      {.name = "from", .shape = {32}, .dtype = DType::kU32, .kind = TensorKind::kConstant});
  const StreamTensor to = stream.tensor({.name = "to", .shape = {32}, .dtype = DType::kU32});
  std::vector<std::uint32_t> values(32, 5), got(32);
  stream.upload(from, values.data());
  stream.begin_run();
  stream.launch(copy_node(from.id(), to.id(), 32));
  EXPECT_EQ(calls, 1);
  stream.end_run();
  stream.synchronize();
  stream.download(to, got.data());
  EXPECT_EQ(got, values);
}

TEST(VendorCalls, OnAStreamShareTheirScratch) {
  const auto device = open_mix_device({.num_sms = 2});
  device->kernels().add(copy_kernel(nullptr));
  AsyncStream stream(*device, {.run = {.max_in_flight = 8}});
  const TensorSpec spec{.name = "values", .shape = {32}, .dtype = DType::kU32};
  TensorSpec constant = spec;
  constant.kind = TensorKind::kConstant;
  std::vector<StreamTensor> values = {stream.tensor(constant)};
  for (int i = 0; i < 30; ++i) values.push_back(stream.tensor(spec));
  const std::vector<std::uint32_t> host(32, 9);
  stream.upload(values[0], host.data());
  const std::size_t before = stream.bytes_held();
  constexpr std::size_t kScratch = 1 << 16;
  for (int run = 0; run < 2; ++run) {
    stream.begin_run();
    for (std::size_t i = 0; i + 1 < values.size(); ++i) {
      NodeSpec node = copy_node(values[i].id(), values[i + 1].id(), 32);
      node.scratch_bytes = kScratch;
      stream.launch(node);
    }
    stream.end_run();
    EXPECT_EQ(stream.bytes_held(), before + kScratch);
  }
  stream.synchronize();
  std::vector<std::uint32_t> got(32);
  stream.download(values.back(), got.data());
  EXPECT_EQ(got, host);
}

TEST(VendorCalls, ThatCannotBePreparedRefuseThePlanAndLeaveNothingBehind) {
  CountingDevice device(open_mix_device({.num_sms = 2}));
  device.kernels().add(copy_kernel(
      [](Device&, const std::byte*) { throw Error("copy", "a library that copies", "none"); }));
  const CopiedNodes nodes;
  try {
    const Program program(device, nodes.two.mix.plan);
    ADD_FAILURE() << "was loaded";
  } catch (const Error& error) {
    const std::string said = error.what();
    EXPECT_NE(said.find("a library that copies"), std::string::npos) << said;
    EXPECT_NE(said.find("prepare `copy`"), std::string::npos) << said;
  }
  EXPECT_EQ(device.live(), 0);
}

TEST(VendorCalls, AreHeldToTheirOperandsWhereViewsAreChecked) {
  for (const int written : {1, 0}) {
    const auto device = open_mix_device({.num_sms = 2, .check_views = CheckViews::kOn});
    KernelImpl copy = copy_kernel([](Device&, const std::byte*) {});
    copy.cpu = [written](CpuLane& lane, const std::byte* bytes, const std::byte*) {
      const CopyArgs& args = copy_args(bytes);
      const MatrixView<const std::uint32_t> from(args.from, 4, 0, lane.checker());
      const MatrixView<std::uint32_t> to(args.to, 4, written, lane.checker());
      for (std::int64_t row = 0; row < 8; ++row) {
        std::copy_n(from.row(row, 0, 4), 4, to.row(row, 0, 4));
      }
    };
    device->kernels().add(copy);
    const CopiedNodes nodes;
    Program program(*device, nodes.two.mix.plan);
    upload(program, nodes.two.mix);
    std::string said;
    try {
      program.run();
      program.synchronize();
    } catch (const Error& error) {
      said = error.what();
    }
    if (written == 1) {
      EXPECT_EQ(said, "");
      EXPECT_EQ(program.read<std::uint32_t>(nodes.two.z), result_without_copy());
    } else {
      EXPECT_NE(said.find("`copy`"), std::string::npos) << said;
      EXPECT_NE(said.find("writes to outputs only"), std::string::npos) << said;
    }
  }
}

TEST(VendorCalls, AsIntegratedNodesAreRefusedByName) {
  const auto device = open_mix_device({.num_sms = 2});
  device->kernels().add(copy_kernel([](Device&, const std::byte*) {}));
  Plan plan;
  const TensorId from = plan.tensor(
      {.name = "from", .shape = {32}, .dtype = DType::kU32, .kind = TensorKind::kConstant});
  const TensorId to =
      plan.tensor({.name = "to", .shape = {32}, .dtype = DType::kU32, .output = true});
  NodeSpec node = copy_node(from, to, 32);
  node.integrated = true;
  plan.add(node);
  try {
    const Program program(*device, plan);
    ADD_FAILURE() << "was loaded";
  } catch (const Error& error) {
    const std::string said = error.what();
    EXPECT_NE(said.find("not integrated"), std::string::npos) << said;
    EXPECT_NE(said.find("`copy`"), std::string::npos) << said;
  }
}

}  // namespace
}  // namespace tileweave
