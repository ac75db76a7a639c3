// A wait that never ends: the report, the poisoned program, and what recover() brings back.
#include <gtest/gtest.h>

#include <chrono>

#include "tests/runtime/devices.h"
#include "tests/runtime/property.h"
#include "tileweave/core/target.h"

namespace tileweave {
namespace {

/// 50 ms; under ThreadSanitizer, where a run that goes well may take as long, ten times that.
constexpr std::uint64_t kShortDeadline = TW_TSAN ? 500'000'000 : 50'000'000;

/// `first` leaves out the signal of work 2 while `broken` is not 0.
struct SwitchedPlan {
  TwoNodes two;
  TensorId broken;

  SwitchedPlan() {
    broken =
        add_filled(two.mix, {.name = "broken", .shape = {1}, .kind = TensorKind::kConstant}, 9);
    two.first.fault = MixFault::kSkipSignal;
    two.first.fault_work = 2;
    two.first.fault_switch = broken;
    two.done();
  }
};

TEST(Hang, OnThreadsIsReportedPoisonsAndIsRecoveredFrom) {
  SwitchedPlan planted;
  const MixPlan& mix = planted.two.mix;
  const auto device = open_mix_device({.num_sms = 2});
  for (const Submit submit : {Submit::kEager, Submit::kGraph}) {
    Program program(*device, mix.plan, {.submit = submit, .deadline_ns = kShortDeadline});
    upload(program, mix);
    MixOracle oracle(mix);
    oracle.run();
    const auto begin = std::chrono::steady_clock::now();
    program.run();
    EXPECT_THROW(program.synchronize(), Error);
    EXPECT_LT(seconds_since(begin), 1e-9 * kShortDeadline + 1);
    ASSERT_TRUE(program.poisoned());
    ASSERT_TRUE(program.hang().has_value());
    const Hang hang = *program.hang();
    EXPECT_EQ(hang.node, "second");
    EXPECT_EQ(hang.tensor, "y");
    EXPECT_EQ(hang.report.state, HangReport::kComplete);
    EXPECT_EQ(hang.report.kind, static_cast<std::uint32_t>(WaitKind::kSemaphore));
    EXPECT_EQ(hang.report.node, 1U);
    EXPECT_EQ(hang.report.rank, 0U);
    EXPECT_EQ(hang.report.operand, 0U);
    EXPECT_EQ(hang.report.tile, 2U);
    EXPECT_EQ(hang.report.seen - hang.report.base, 0U);
    EXPECT_EQ(hang.report.target, 1U);
    EXPECT_EQ(hang.report.block, 2U);
    EXPECT_GE(hang.report.waited_ns, kShortDeadline);
    ASSERT_EQ(hang.missing.size(), 1U);
    EXPECT_EQ(hang.missing[0], "kernel tile (2, 0) of node 0 `first` (4 of 4 blocks began)");
    EXPECT_NE(hang.sentence.find("tile (2, 0) of `y`: 0 of 1 arrivals"), std::string::npos)
        << hang.sentence;

    try {
      program.run();
      ADD_FAILURE() << "a poisoned program ran";
    } catch (const Error& error) {
      EXPECT_NE(std::string(error.what()).find("call recover() first"), std::string::npos);
      EXPECT_NE(std::string(error.what()).find(hang.sentence), std::string::npos);
    }
    EXPECT_THROW(program.synchronize(), Error);

    program.recover();
    EXPECT_FALSE(program.poisoned());
    EXPECT_FALSE(program.hang().has_value());
    for (const SemaphoreView& view : program.semaphores(planted.two.y)) {
      EXPECT_EQ(view.count, 0U);
      EXPECT_EQ(view.base, 0U);
    }
    program.write(planted.broken, std::vector<std::uint32_t>{0});
    const std::vector<std::uint32_t> junk(32, 0xbadU);
    for (int run = 0; run < 1000; ++run) {
      if (run % 100 == 0) program.write(planted.two.z, junk);
      program.run();
      if (run % 50 != 49) continue;
      program.synchronize();
      ASSERT_TRUE(same_bits(program, mix, oracle)) << "run " << run;
    }

    // Broken again: the same news again, although counts have grown.
    program.write(planted.broken, std::vector<std::uint32_t>{1});
    program.run();
    EXPECT_THROW(program.synchronize(), Error);
    ASSERT_TRUE(program.hang().has_value());
    EXPECT_EQ(program.hang()->missing, hang.missing);
  }
}

TEST(Hang, RunsEnqueuedBehindABrokenOneDrain) {
  SwitchedPlan planted;
  const auto device = open_mix_device({.num_sms = 2});
  Program program(*device, planted.two.mix.plan, {.deadline_ns = kShortDeadline});
  upload(program, planted.two.mix);
  const auto begin = std::chrono::steady_clock::now();
  for (int run = 0; run < 20; ++run) {
    try {
      program.run();
    } catch (const Error&) {
      break;  // the news may come while runs are still being enqueued
    }
  }
  EXPECT_THROW(program.synchronize(), Error);
  EXPECT_LT(seconds_since(begin), 1e-9 * kShortDeadline + 1);
}

TEST(Hang, ATargetOneTooHighSaysThatEveryKernelTileHasArrived) {
  TwoNodes two;
  two.second.inputs[0].target = TargetMap::constant(2);
  const MixPlan& mix = two.done();
  const auto device = open_mix_device({.num_sms = 2});
  Program program(*device, mix.plan,
                  {.contracts = ContractCheck::kOff, .deadline_ns = kShortDeadline});
  upload(program, mix);
  program.run();
  try {
    program.synchronize();
    ADD_FAILURE() << "no hang";
  } catch (const Error& error) {
    EXPECT_NE(std::string(error.what())
                  .find("1 of 2 arrivals; every kernel tile that was declared "
                        "has arrived, so the target is too high"),
              std::string::npos)
        << error.what();
  }
}

TEST(Hang, SerialModeReportsAWaitThatIsNotSatisfiedAtOnce) {
  for (const CpuWay way : {CpuWay::kThroughput, CpuWay::kExplore}) {
    SwitchedPlan planted;
    const MixPlan& mix = planted.two.mix;
    const auto device = open_mix_device({.way = way, .num_sms = 2});
    Program program(*device, mix.plan, {.mode = Mode::kSerial});  // deadline: 10 s
    upload(program, mix);
    const auto begin = std::chrono::steady_clock::now();
    program.run();
    EXPECT_THROW(program.synchronize(), Error);
    EXPECT_LT(seconds_since(begin), 1.0);
    ASSERT_TRUE(program.hang().has_value());
    EXPECT_EQ(program.hang()->report.tile, 2U);
    EXPECT_EQ(program.hang()->report.waited_ns, 0U);
    EXPECT_EQ(program.hang()->missing.size(), 1U);
  }
}

TEST(Hang, AProducerThatNeverEndsIsToldApartByItsBlocks) {
  TwoNodes two;
  two.first.fault = MixFault::kNeverEnds;
  two.first.fault_work = 3;
  const MixPlan& mix = two.done();
  const auto device = open_mix_device({.num_sms = 3});
  Program program(*device, mix.plan, {.deadline_ns = kShortDeadline});
  upload(program, mix);
  program.run();
  EXPECT_THROW(program.synchronize(), Error);
  ASSERT_TRUE(program.hang().has_value());
  EXPECT_EQ(program.hang()->node, "second");
  EXPECT_EQ(program.hang()->report.tile, 3U);
}

}  // namespace
}  // namespace tileweave
