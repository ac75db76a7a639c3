// Planted hangs on a GPU: reported within the deadline, named, drained and recovered from.
#include <gtest/gtest.h>

#include <chrono>
#include <cstdio>

#include "tests/runtime/cuda/watchdog.h"
#include "tests/runtime/devices.h"
#include "tests/runtime/gpu_devices.h"
#include "tests/runtime/property.h"

namespace tileweave {
namespace {

constexpr std::uint64_t kDeadline = 500'000'000;

class HangOnGpu : public GpuTest {};

/// Runs until the planted hang is reported, in time.
Hang hang_of(Program& program) {
  const auto begin = std::chrono::steady_clock::now();
  program.run();
  EXPECT_THROW(program.synchronize(), Error);
  EXPECT_LT(seconds_since(begin), 1.5);
  EXPECT_TRUE(program.poisoned());
  EXPECT_THROW(program.run(), Error);
  if (!program.hang()) return {};
  std::printf("%s\n", program.hang()->sentence.c_str());
  return *program.hang();
}

testing::AssertionResult thousand_right_runs(Program& program, const MixPlan& mix) {
  MixOracle oracle(mix);
  oracle.run();
  const std::vector<std::uint32_t> junk(
      static_cast<std::size_t>(mix.plan.tensors()[observable(mix).front()].spec.shape.volume()),
      0xbadU);
  for (int run = 0; run < 1000; ++run) {
    if (run % 100 == 0) program.write(observable(mix).front(), junk);
    program.run();
    if (run % 100 != 99) continue;
    program.synchronize();
    if (auto same = same_bits(program, mix, oracle); !same) return same << " in run " << run;
  }
  return testing::AssertionSuccess();
}

TEST_F(HangOnGpu, AMissingSignalIsNamedAndAThousandRunsFollowRecovery) {
  for (const Submit submit : {Submit::kEager, Submit::kGraph}) {
    TwoNodes two;
    const TensorId broken =
        add_filled(two.mix, {.name = "broken", .shape = {1}, .kind = TensorKind::kConstant}, 9);
    two.first.fault = MixFault::kSkipSignal;
    two.first.fault_work = 2;
    two.first.fault_switch = broken;
    const MixPlan& mix = two.done();
    const auto device = open_mix_gpu();
    Program program(*device, mix.plan, {.submit = submit, .deadline_ns = kDeadline});
    upload(program, mix);
    for (int round = 0; round < 2; ++round) {
      const Hang hang = hang_of(program);
      EXPECT_EQ(hang.node, "second");
      EXPECT_EQ(hang.tensor, "y");
      EXPECT_EQ(hang.report.tile, 2U);
      EXPECT_EQ(hang.report.target, 1U);
      EXPECT_EQ(hang.report.seen - hang.report.base, 0U);
      EXPECT_GE(hang.report.waited_ns, kDeadline);
      ASSERT_EQ(hang.missing.size(), 1U);
      EXPECT_EQ(hang.missing[0], "kernel tile (2, 0) of node 0 `first` (4 of 4 blocks began)");
      program.recover();
      program.write(broken, std::vector<std::uint32_t>{0});
      ASSERT_TRUE(thousand_right_runs(program, mix));
      program.write(broken, std::vector<std::uint32_t>{1});
    }
  }
}

TEST_F(HangOnGpu, ATargetOneTooHighIsNamedAndTheContextStaysUsable) {
  TwoNodes two;
  two.second.inputs[0].target = TargetMap::constant(2);
  const MixPlan& mix = two.done();
  const auto device = open_mix_gpu();
  Program program(*device, mix.plan, {.contracts = ContractCheck::kOff, .deadline_ns = kDeadline});
  upload(program, mix);
  const Hang hang = hang_of(program);
  EXPECT_EQ(hang.node, "second");
  EXPECT_EQ(hang.tensor, "y");
  EXPECT_EQ(hang.report.target, 2U);
  EXPECT_EQ(hang.report.seen - hang.report.base, 1U);
  EXPECT_TRUE(hang.missing.empty());
  EXPECT_NE(hang.sentence.find("every kernel tile that was declared has arrived"),
            std::string::npos);
  program.recover();
  EXPECT_FALSE(program.poisoned());
  const Hang again = hang_of(program);
  EXPECT_EQ(again.tensor, "y");
  program.recover();

  // The same context, a right plan.
  TwoNodes right;
  const MixPlan& right_mix = right.done();
  Program other(*device, right_mix.plan);
  upload(other, right_mix);
  ASSERT_TRUE(thousand_right_runs(other, right_mix));
}

TEST_F(HangOnGpu, SerialModeReportsAtOnce) {
  TwoNodes two;
  two.second.inputs[0].target = TargetMap::constant(2);
  const MixPlan& mix = two.done();
  const auto device = open_mix_gpu();
  Program program(*device, mix.plan, {.mode = Mode::kSerial, .contracts = ContractCheck::kOff});
  upload(program, mix);
  const Hang hang = hang_of(program);  // the deadline is 10 s
  EXPECT_EQ(hang.report.waited_ns, 0U);
}

TEST_F(HangOnGpu, ABlockThatNeverEndsIsLeftBehindWhenItsWaiterGivesUp) {
  TwoNodes two;
  two.first.fault = MixFault::kNeverEnds;
  two.first.fault_work = 1;
  const MixPlan& mix = two.done();
  const auto device = open_mix_gpu();
  Program program(*device, mix.plan, {.deadline_ns = kDeadline});
  upload(program, mix);
  const Hang hang = hang_of(program);
  EXPECT_EQ(hang.node, "second");
  ASSERT_EQ(hang.missing.size(), 1U);
  EXPECT_EQ(hang.missing[0], "kernel tile (1, 0) of node 0 `first` (4 of 4 blocks began)");
}

}  // namespace
}  // namespace tileweave
