// Two environment variables that CUDA reads once, when the driver is first used in a process.
//
// CUDA_DEVICE_MAX_CONNECTIONS: hardware queues (default 8, at most 32). Streams beyond that share a
// queue, and a waiting kernel may then block the very kernel it waits for.
// CUDA_MODULE_LOADING: LAZY (the default) may load a kernel at its first launch, which can wait for
// everything on the GPU: a deadlock when a kernel spins there.
// The library sets them to 32 and EAGER before its first CUDA call, where the user has not set
// them and the driver is not in use yet. A program that calls CUDA before it opens a device should
// set both itself. Not safe while other threads read the environment.
#pragma once

#include <cstdint>

namespace tileweave {

inline constexpr std::int32_t kDefaultHardwareQueues = 8;
inline constexpr std::int32_t kWantedHardwareQueues = 32;

void prepare_cuda_environment() noexcept;

/// Hardware queues that the driver has been told to use; call after prepare_cuda_environment().
std::int32_t hardware_queues() noexcept;

}  // namespace tileweave
