// verify(): proves on the host that a plan can run, or says in one sentence why not.
//
// Checks every tile of every operand by enumeration: arrivals equal targets, every read is covered
// by waits and producers, orders are permutations, nothing waits for a later or own position, no
// element is written twice, buffers are not reused too early, every block fits an SM, no waiting
// blocks can starve the block they wait for. docs/grounds_and_proofs.md has the proofs. Pure
// function of its arguments; cost grows with works x tiles they meet.
#pragma once

#include <cstdint>
#include <vector>

#include "tileweave/plan/memory_plan.h"
#include "tileweave/plan/plan.h"
#include "tileweave/plan/resources.h"
#include "tileweave/plan/verdict.h"

namespace tileweave {

/// Whether launch-completion events and first-block wait kernels count as a ground.
enum class LaunchOrder : std::uint8_t { kNotTrusted, kTrusted };

/// Off only to show what a plan does that verify() would refuse.
enum class StarvationCheck : std::uint8_t { kOn, kOff };

struct VerifyOptions {
  DeviceLimits device;
  LaunchOrder launch_order = LaunchOrder::kNotTrusted;
  StarvationCheck starvation = StarvationCheck::kOn;
  /// Which device each rank runs on (ranks on one device compete for its SMs, and all have
  /// `device`'s limits); empty: all on one.
  std::vector<std::int32_t> device_of_rank = {};
};

/// Throws Error for options that say nothing (a rank without a device, no SM).
Verdict verify(const Plan& plan, const VerifyOptions& options);

/// Serial mode: one stream per rank, every node after the one before it (position, rank) has
/// completed. No ground is needed.
Schedule serial_schedule(const Plan& plan);

}  // namespace tileweave
