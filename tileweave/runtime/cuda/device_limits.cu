#include <cuda_runtime.h>

#include <fstream>
#include <string>

#include "tileweave/runtime/cuda/cuda_environment.h"
#include "tileweave/runtime/cuda/cuda_status.cuh"
#include "tileweave/runtime/cuda/device_limits.cuh"

namespace tileweave {
namespace {

int attribute(cudaDeviceAttr which, int device_index) {
  int value = 0;
  check_cuda(cudaDeviceGetAttribute(&value, which, device_index), "ask for a limit of the GPU");
  return value;
}

// Not told by CUDA; the same for every GPU since sm_80.
constexpr std::int32_t kRegisterUnit = 256;
constexpr std::int32_t kSubPartitions = 4;
constexpr std::int64_t kSharedUnit = 128;

}  // namespace

int compute_capability(int device_index) {
  return attribute(cudaDevAttrComputeCapabilityMajor, device_index) * 10 +
         attribute(cudaDevAttrComputeCapabilityMinor, device_index);
}

std::string driver_name() {
  // The kernel module's version; CUDA's runtime does not tell it.
  std::ifstream file("/sys/module/nvidia/version");
  std::string text;
  if (file >> text) return text;
  int version = 0;
  check_cuda(cudaDriverGetVersion(&version), "ask for the driver's version");
  return "CUDA " + std::to_string(version / 1000) + "." + std::to_string(version % 1000 / 10);
}

DeviceLimits query_device_limits(int device_index) {
  cudaDeviceProp properties{};
  check_cuda(cudaGetDeviceProperties(&properties, device_index), "ask for the GPU's name");
  const auto ask = [&](cudaDeviceAttr which) { return attribute(which, device_index); };
  DeviceLimits limits;
  limits.name = properties.name;
  limits.num_sms = ask(cudaDevAttrMultiProcessorCount);
  limits.threads_per_sm = ask(cudaDevAttrMaxThreadsPerMultiProcessor);
  limits.threads_per_block = ask(cudaDevAttrMaxThreadsPerBlock);
  limits.blocks_per_sm = ask(cudaDevAttrMaxBlocksPerMultiprocessor);
  limits.registers_per_sm = ask(cudaDevAttrMaxRegistersPerMultiprocessor);
  limits.registers_per_block = ask(cudaDevAttrMaxRegistersPerBlock);
  limits.register_unit = kRegisterUnit;
  limits.warp_size = ask(cudaDevAttrWarpSize);
  limits.sub_partitions = kSubPartitions;
  limits.shared_bytes_per_sm = ask(cudaDevAttrMaxSharedMemoryPerMultiprocessor);
  limits.shared_bytes_per_block = ask(cudaDevAttrMaxSharedMemoryPerBlockOptin);
  limits.shared_unit = kSharedUnit;
  limits.shared_reserved = ask(cudaDevAttrReservedSharedMemoryPerBlock);
  limits.hardware_queues = hardware_queues();
  limits.l2_bytes = ask(cudaDevAttrL2CacheSize);
  limits.compute_capability = compute_capability(device_index);
  return limits;
}

}  // namespace tileweave
