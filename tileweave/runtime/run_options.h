// How a plan is run: mode, submission, deadlines, what is recorded. Words as in the README.
#pragma once

#include <cstdint>
#include <optional>

#include "tileweave/plan/verify.h"

namespace tileweave {

enum class Mode : std::uint8_t { kSerial, kOverlap };
enum class Submit : std::uint8_t { kEager, kGraph };
/// Off only to show what a plan does at run time that verify() would refuse.
enum class ContractCheck : std::uint8_t { kOn, kOff };
enum class Tracing : std::uint8_t { kOff, kOn };

struct RunOptions {
  Mode mode = Mode::kOverlap;
  Submit submit = Submit::kGraph;
  Tracing tracing = Tracing::kOff;
  LaunchOrder launch_order = LaunchOrder::kNotTrusted;
  StarvationCheck starvation = StarvationCheck::kOn;
  ContractCheck contracts = ContractCheck::kOn;
  BufferReuse reuse = BufferReuse::kOn;
  std::uint64_t deadline_ns = 10'000'000'000;  // longest wait; 0: none
  std::uint32_t initial_count = 0;             // start of every count and base
  std::int32_t max_in_flight = 64;             // AsyncStream: kernels whose tensors are still held
};

}  // namespace tileweave
