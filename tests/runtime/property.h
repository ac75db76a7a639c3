// The property that everything rests on: a plan gives the bits of its host evaluation, run after
// run, whatever the mode, the submission, the device and the admission order.
#pragma once

#include <gtest/gtest.h>

#include <string>

#include "tests/runtime/random_plan.h"

namespace tileweave {

/// Compares every observable tensor of the program with the oracle; says where they first differ.
inline testing::AssertionResult same_bits(Program& program, const MixPlan& mix,
                                          const MixOracle& oracle) {
  for (const TensorId id : observable(mix)) {
    const std::vector<std::uint32_t> got = program.read<std::uint32_t>(id);
    const std::vector<std::uint32_t>& expected = oracle.values(id);
    for (std::size_t e = 0; e < got.size(); ++e) {
      if (got[e] == expected[e]) continue;
      return testing::AssertionFailure()
             << "element " << e << " of `" << mix.plan.tensors()[id].spec.name << "`: expected "
             << expected[e] << ", got " << got[e];
    }
  }
  return testing::AssertionSuccess();
}

/// One run, then two back to back without the host in between; equal to the oracle after each.
inline testing::AssertionResult runs_like_the_oracle(Device& device, const MixPlan& mix,
                                                     const RunOptions& options) {
  try {
    Program program(device, mix.plan, options);
    upload(program, mix);
    MixOracle oracle(mix);
    program.run();
    program.synchronize();
    oracle.run();
    if (auto same = same_bits(program, mix, oracle); !same) return same << " after run 1";
    program.run();
    program.run();
    program.synchronize();
    oracle.run();
    oracle.run();
    if (auto same = same_bits(program, mix, oracle); !same) return same << " after run 3";
  } catch (const Error& error) {
    return testing::AssertionFailure() << error.what();
  }
  return testing::AssertionSuccess();
}

}  // namespace tileweave
