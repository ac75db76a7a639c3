// A chain of runs whose call between runs changes a constant that the next run reads.
#pragma once

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "tests/runtime/devices.h"

namespace tileweave {

inline constexpr int kChainedRuns = 40;
inline constexpr std::uint32_t kAdded = 3;  // to every element of x, between runs

/// Runs two nodes over x kChainedRuns times without a look at the device, in every mode and
/// submission, with works that take up to `max_delay_ns` longer. `make_call` gets x's address and
/// number of elements and returns the call, which adds kAdded to each. The result must be the last
/// run's, and x must have changed once per run.
template <class MakeCall>
void expect_chained_runs(Device& device, std::uint32_t max_delay_ns, const MakeCall& make_call) {
  for (const Mode mode : {Mode::kSerial, Mode::kOverlap}) {
    for (const Submit submit : {Submit::kEager, Submit::kGraph}) {
      SCOPED_TRACE(std::string(mode == Mode::kSerial ? "serial" : "overlap") +
                   (submit == Submit::kEager ? ", eager" : ", graph"));
      TwoNodes two;
      two.first.max_delay_ns = two.second.max_delay_ns = max_delay_ns;
      const MixPlan& mix = two.done();
      Program program(device, mix.plan, {.mode = mode, .submit = submit});
      upload(program, mix);
      MixOracle oracle(mix);
      std::vector<std::uint32_t> x = oracle.values(two.x);
      program.set_between_runs(
          make_call(static_cast<std::uint32_t*>(program.address(two.x)), x.size()));
      for (int run = 0; run < kChainedRuns; ++run) {
        program.run();
        oracle.write(two.x, x);
        oracle.run();
        for (std::uint32_t& value : x) value += kAdded;
      }
      program.synchronize();
      EXPECT_EQ(program.read<std::uint32_t>(two.x), x);
      EXPECT_EQ(program.read<std::uint32_t>(two.z), oracle.values(two.z));

      // Without a call the constant stands still.
      program.set_between_runs(nullptr);
      for (int run = 0; run < 2; ++run) program.run();
      program.synchronize();
      oracle.write(two.x, x);
      oracle.run();
      EXPECT_EQ(program.read<std::uint32_t>(two.x), x);
      EXPECT_EQ(program.read<std::uint32_t>(two.z), oracle.values(two.z));
    }
  }
}

}  // namespace tileweave
