// DescribedDevice: the constants of the model's virtual clock, read from one text file.
//
// Lines are `key = value  # where the number comes from`; unknown keys, missing keys and values
// that are no numbers are refused with the line (throws Error). One tick is one nanosecond on a
// described GPU. The model ranks schedules; nothing computed from it is a measurement.
#pragma once

#include <string>

#include "tileweave/plan/resources.h"

namespace tileweave::cpu {

struct DescribedDevice {
  DeviceLimits limits;

  // Ticks from an event to the first instruction of the blocks it lets begin.
  double start_after_completion = 0;
  double start_after_trigger = 0;  // programmatic
  double start_after_begun = 0;    // launch-completion events, wait kernels
  double block_start = 0;          // every block: from its SM having room to its first instruction
  // The two halves of a hop: before the arrival is made, and after it until the waiter goes on.
  double signal = 0;
  double wait = 0;  // every wait on a semaphore, satisfied or not
  // Whether the blocks computing on one SM at a time share its speed (1) or not (0).
  double shared_sm = 0;

  /// No overheads, one block per SM, four SMs: the device of hand-counted schedules.
  static DescribedDevice unit();
  /// Limits of one SM of a large GPU for the ways that need no constants; four SMs.
  static DescribedDevice host();
  static DescribedDevice load(const std::string& path);
};

}  // namespace tileweave::cpu
