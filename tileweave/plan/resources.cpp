#include "tileweave/plan/resources.h"

#include <algorithm>

#include "tileweave/core/coord.h"
#include "tileweave/core/error.h"

namespace tileweave {
namespace {

constexpr std::int64_t round_up(std::int64_t value, std::int64_t unit) {
  return ceil_div(value, unit) * unit;
}

std::int64_t warps_of(const KernelResources& block, const DeviceLimits& device) {
  return ceil_div(block.threads, device.warp_size);
}

std::int64_t registers_per_warp(const KernelResources& block, const DeviceLimits& device) {
  return round_up(std::int64_t{block.registers_per_thread} * device.warp_size,
                  device.register_unit);
}

std::int64_t shared_of(const KernelResources& block, const DeviceLimits& device) {
  return round_up(block.shared_bytes + device.shared_reserved, device.shared_unit);
}

/// Registers that the launch check assumes: as if every sub-partition got the same share.
std::int64_t registers_assumed(const KernelResources& block, const DeviceLimits& device) {
  return registers_per_warp(block, device) *
         round_up(warps_of(block, device), device.sub_partitions);
}

/// Warps of this kernel whose registers fit one SM.
std::int64_t warps_by_registers(const KernelResources& block, const DeviceLimits& device) {
  const std::int64_t per_partition = device.registers_per_sm / device.sub_partitions;
  return per_partition / registers_per_warp(block, device) * device.sub_partitions;
}

std::string count(std::int64_t number, const char* what) {
  return std::to_string(number) + " " + what;
}

}  // namespace

DeviceLimits h200_limits() {
  return {.name = "H200",
          .num_sms = 132,
          .threads_per_sm = 2048,
          .threads_per_block = 1024,
          .blocks_per_sm = 32,
          .registers_per_sm = 65536,
          .registers_per_block = 65536,
          .register_unit = 256,
          .warp_size = 32,
          .sub_partitions = 4,
          .shared_bytes_per_sm = 228 * 1024,
          .shared_bytes_per_block = 227 * 1024,
          .shared_unit = 128,
          .shared_reserved = 1024,
          .hardware_queues = 8,
          .compute_capability = 90,
          .l2_bytes = 50 << 20};
}

DeviceLimits partition(DeviceLimits device, std::int32_t num_sms) {
  if (num_sms < 1 || num_sms > device.num_sms) {
    throw Error("partition of " + device.name,
                "between 1 and " + std::to_string(device.num_sms) + " SMs",
                std::to_string(num_sms));
  }
  device.num_sms = num_sms;
  return device;
}

BlockFootprint footprint(const KernelResources& block, const DeviceLimits& device) {
  const std::int64_t warps = warps_of(block, device);
  return {.threads = warps * device.warp_size,
          .registers = warps * registers_per_warp(block, device),
          .shared_bytes = shared_of(block, device),
          .slots = 1};
}

BlockFootprint footprint_bound(const KernelResources& block, const DeviceLimits& device) {
  const std::int64_t warps = round_up(warps_of(block, device), device.sub_partitions);
  return {.threads = warps * device.warp_size,
          .registers = warps * registers_per_warp(block, device),
          .shared_bytes = shared_of(block, device),
          .slots = 1};
}

std::int32_t blocks_per_sm(const KernelResources& block, const DeviceLimits& device) {
  if (!why_no_fit(block, device).empty()) return 0;
  const std::int64_t warps = warps_of(block, device);
  std::int64_t blocks = device.blocks_per_sm;
  blocks = std::min(blocks, device.threads_per_sm / device.warp_size / warps);
  if (block.registers_per_thread > 0) {
    blocks = std::min(blocks, warps_by_registers(block, device) / warps);
  }
  const std::int64_t shared = shared_of(block, device);
  if (shared > 0) blocks = std::min(blocks, device.shared_bytes_per_sm / shared);
  return static_cast<std::int32_t>(blocks);
}

std::string why_no_fit(const KernelResources& block, const DeviceLimits& device) {
  if (device.blocks_per_sm < 1) return "an SM has no slot for a block";
  if (block.threads > device.threads_per_block) {
    return "a block has " + count(block.threads, "threads") + ", the device allows " +
           std::to_string(device.threads_per_block);
  }
  const std::int64_t warps = warps_of(block, device);
  if (warps > device.threads_per_sm / device.warp_size) {
    return "a block has " + count(warps * device.warp_size, "threads") + " in whole warps, an SM " +
           std::to_string(device.threads_per_sm);
  }
  if (block.shared_bytes > device.shared_bytes_per_block) {
    return "a block needs " + count(block.shared_bytes, "bytes of shared memory") +
           ", the device allows " + std::to_string(device.shared_bytes_per_block);
  }
  if (shared_of(block, device) > device.shared_bytes_per_sm) {
    return "a block takes " + count(shared_of(block, device), "bytes of shared memory") +
           " with the reserved part, an SM has " + std::to_string(device.shared_bytes_per_sm);
  }
  if (block.registers_per_thread == 0) return {};
  if (registers_assumed(block, device) > device.registers_per_block) {
    return "a block needs " + count(registers_assumed(block, device), "registers") +
           ", the device allows " + std::to_string(device.registers_per_block);
  }
  if (warps_by_registers(block, device) < warps) {
    return "a block has " + count(warps, "warps") + ", the registers of an SM serve " +
           std::to_string(warps_by_registers(block, device)) + " of them";
  }
  return {};
}

}  // namespace tileweave
