// What CUDA says about a GPU, as DeviceLimits.
#pragma once

#include <string>

#include "tileweave/plan/resources.h"

namespace tileweave {

DeviceLimits query_device_limits(int device_index);

/// Compute capability, 90 for 9.0.
int compute_capability(int device_index);

/// "580.65.06", or the CUDA version where that is not told.
std::string driver_name();

inline constexpr int kOldestComputeCapability = 80;

}  // namespace tileweave
