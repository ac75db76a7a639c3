// SyncState: the device memory behind the semaphores of a set of tensors, and the run's end.
//
// Holds, per tiled tensor, its words, bases and (where targets differ) target table; per node its
// begun counter, shared counters and arrival stamps; and the abort word with its host-visible
// report. `base_update` is the launch that ends a run: it adds each target to its base. Counts only
// grow; `reset` (after an abort, everything idle) is the only way back to zero.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "tileweave/plan/plan.h"
#include "tileweave/runtime/device.h"
#include "tileweave/runtime/launch.h"
#include "tileweave/sync/context.h"

namespace tileweave {

/// Observed state of one data tile's semaphore, as a user would inspect it.
struct SemaphoreView {
  std::uint32_t count = 0;  // word
  std::uint32_t base = 0;
  std::uint32_t target = 0;  // arrivals that complete it
  std::int32_t arrived() const { return static_cast<std::int32_t>(count - base); }
};

}  // namespace tileweave
