// Wait kernel: one warp that returns when enough blocks of an earlier node have begun.
//
// Put before a launch on its stream by the queue (start rules wait_all and wait_first). A bounded
// wait like every other: deadline, abort word, report.
#pragma once

#include <cstdint>

#include "tileweave/sync/context.h"

namespace tileweave {

struct WaitBegunArgs {
  SyncHeader header;                // abort word, report, deadline, waiting node and rank
  const std::uint32_t* begun;       // of the earlier node
  const std::uint32_t* begun_base;  // its value at the start of the run
  std::uint32_t wanted;             // blocks
  std::uint32_t producer;           // the earlier node
};

inline constexpr int kWaitKernelThreads = 32;

/// Its __global__ function, which takes WaitBegunArgs.
const void* wait_kernel_function();

}  // namespace tileweave
