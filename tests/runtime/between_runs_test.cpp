// Calls between runs on the emulated device.
#include "tests/runtime/between_runs.h"

#include <stdexcept>

namespace tileweave {
namespace {

std::function<void(NativeStream)> add_to_all(std::uint32_t* x, std::size_t count) {
  return [=](NativeStream) {
    for (std::size_t i = 0; i < count; ++i) x[i] += kAdded;
  };
}

TEST(BetweenRuns, AChainOfRunsAdvancesAConstantInEveryModeAndSubmission) {
  expect_chained_runs(*open_mix_device({.num_sms = 2}), 2'000, add_to_all);
}

TEST(BetweenRuns, AChainOfRunsAdvancesAConstantInAnyAdmissionOrder) {
  for (std::uint64_t seed = 1; seed <= 10; ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    expect_chained_runs(
        *open_mix_device(
            {.way = CpuWay::kExplore, .num_sms = 2, .seed = seed, .delay_probability = 0.3}),
        0, add_to_all);
  }
}

TEST(BetweenRuns, AChainOfRunsAdvancesAConstantUnderTheVirtualClock) {
  expect_chained_runs(*open_mix_device({.way = CpuWay::kModel, .num_sms = 2}), 0, add_to_all);
}

TEST(BetweenRuns, ACallThatThrowsFailsTheRunByName) {
  for (const Submit submit : {Submit::kEager, Submit::kGraph}) {
    TwoNodes two;
    const auto device = open_mix_device({.num_sms = 2});
    Program program(*device, two.done().plan, {.submit = submit});
    upload(program, two.mix);
    program.set_between_runs([](NativeStream) { throw std::runtime_error("no more tokens"); });
    program.run();
    try {
      program.synchronize();
      ADD_FAILURE() << "nothing was thrown";
    } catch (const Error& error) {
      EXPECT_NE(std::string(error.what()).find("`between_runs`"), std::string::npos)
          << error.what();
      EXPECT_NE(std::string(error.what()).find("no more tokens"), std::string::npos)
          << error.what();
    }
  }
}

}  // namespace
}  // namespace tileweave
