// What CUDA says about a GPU, as DeviceLimits.
#pragma once

#include "tileweave/plan/resources.h"

namespace tileweave {

DeviceLimits query_device_limits(int device_index);

/// Compute capability, 90 for 9.0.
int compute_capability(int device_index);

inline constexpr int kOldestComputeCapability = 80;

}  // namespace tileweave
