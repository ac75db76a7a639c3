// Sm: what is left of one emulated SM while blocks are resident on it.
//
// A block takes its footprint when it is admitted and gives it back when it ends, whether it runs
// or waits in between, as on a GPU.
#pragma once

#include <cstdint>

#include "tileweave/plan/resources.h"

namespace tileweave::cpu {

class Sm {
 public:
  explicit Sm(const DeviceLimits& limits)
      : threads_(limits.threads_per_sm),
        registers_(limits.registers_per_sm),
        shared_bytes_(limits.shared_bytes_per_sm),
        slots_(limits.blocks_per_sm) {}

  bool fits(const BlockFootprint& block) const {
    return block.threads <= threads_ && block.registers <= registers_ &&
           block.shared_bytes <= shared_bytes_ && block.slots <= slots_;
  }
  void take(const BlockFootprint& block) {
    threads_ -= block.threads;
    registers_ -= block.registers;
    shared_bytes_ -= block.shared_bytes;
    slots_ -= block.slots;
  }
  void give(const BlockFootprint& block) {
    threads_ += block.threads;
    registers_ += block.registers;
    shared_bytes_ += block.shared_bytes;
    slots_ += block.slots;
  }

 private:
  std::int64_t threads_;
  std::int64_t registers_;
  std::int64_t shared_bytes_;
  std::int64_t slots_;
};

}  // namespace tileweave::cpu
