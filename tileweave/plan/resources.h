// What a block needs and what a device has: plain numbers, no CUDA header.
//
// `blocks_per_sm` follows the occupancy rules of the CUDA programming guide (registers per warp
// rounded to the allocation unit and dealt to sub-partitions, shared memory per block plus the
// reserved part); on a GPU the runtime compares it with the occupancy API for every kernel and
// refuses to run when they differ. Pure functions.
#pragma once

#include <cstdint>
#include <string>

namespace tileweave {

/// Resources of one block of a kernel.
struct KernelResources {
  std::int32_t threads = 1;
  std::int32_t registers_per_thread = 0;
  std::int64_t shared_bytes = 0;  // static + dynamic, padding included
};

/// One SM of a device (or of the partition a plan runs on), and how many there are.
struct DeviceLimits {
  std::string name;
  std::int32_t num_sms = 1;
  std::int32_t threads_per_sm = 2048;
  std::int32_t threads_per_block = 1024;
  std::int32_t blocks_per_sm = 32;
  std::int32_t registers_per_sm = 65536;
  std::int32_t registers_per_block = 65536;
  std::int32_t register_unit = 256;  // registers are given to a warp in multiples of this
  std::int32_t warp_size = 32;
  std::int32_t sub_partitions = 1;  // an SM's warps and registers are split evenly among these
  std::int64_t shared_bytes_per_sm = 0;
  std::int64_t shared_bytes_per_block = 0;
  std::int64_t shared_unit = 128;       // shared memory is given in multiples of this
  std::int64_t shared_reserved = 0;     // taken by the system for every block
  std::int32_t hardware_queues = 8;     // streams that can make progress independently
  std::int32_t compute_capability = 0;  // 90 for 9.0; 0: no GPU
  std::int64_t l2_bytes = 0;            // 0: not known
};

/// H100 and H200 (sm_90), whole GPU of 132 SMs.
DeviceLimits h200_limits();
/// The same SMs, but only `num_sms` of them (a green context). Throws Error when there are fewer.
DeviceLimits partition(DeviceLimits device, std::int32_t num_sms);

/// What one block takes from an SM after rounding to allocation units.
struct BlockFootprint {
  std::int64_t threads = 0;
  std::int64_t registers = 0;
  std::int64_t shared_bytes = 0;
  std::int64_t slots = 1;
};

BlockFootprint footprint(const KernelResources& block, const DeviceLimits& device);

/// Upper bound of the footprint however the warps are dealt to sub-partitions: as if each of them
/// got the largest share. Blocks whose bounds add up to no more than an SM has are all resident.
BlockFootprint footprint_bound(const KernelResources& block, const DeviceLimits& device);

/// Blocks of this kernel that fit an empty SM; 0 when not even one does.
std::int32_t blocks_per_sm(const KernelResources& block, const DeviceLimits& device);

/// Why a block fits no SM, as part of a sentence; empty when it fits.
std::string why_no_fit(const KernelResources& block, const DeviceLimits& device);

}  // namespace tileweave
