// What one block leaves behind: when it began, waited, was let through, signalled and ended.
//
// Written by every device (emulated, virtual clock, GPU) into a buffer that the caller owns; read
// by trace/trace.h and everything above it. Plain integers only, so that CUDA code can store one
// with a few vector writes and the host can read the buffer back unchanged.
//
// Times are nanoseconds of one clock common to all records of a trace, or ticks of the virtual
// clock (Trace::time_unit says which).
#pragma once

#include <cstdint>

namespace tileweave {

/// One kernel tile (work item) executed by one block.
///
/// Waiting is the span [wait_ns, ready_ns]. `ready_ns == 0` with `wait_ns != 0` is a wait that was
/// given up (abort): it lasts until end_ns. `ready_ns != 0` with `wait_ns == 0` is a wait entered
/// at time 0 of a virtual clock. Both 0: the block never waited.
struct TileRecord {
  std::uint32_t node;       // position in the plan
  std::uint32_t rank;       //
  std::uint32_t work;       // logical kernel tile (after the order)
  std::uint32_t sm;         // SM that ran it
  std::uint64_t begin_ns;   // block (or work item) started
  std::uint64_t wait_ns;    // first wait entered
  std::uint64_t ready_ns;   // last wait satisfied
  std::uint64_t signal_ns;  // last signal sent (0: none)
  std::uint64_t end_ns;     // finished
};
static_assert(sizeof(TileRecord) == 56, "TileRecord is a wire format between device and host");

}  // namespace tileweave
