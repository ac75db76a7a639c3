// KernelLoader: loads kernels before anything may spin, and keeps what CUDA says about them.
//
// Loading asks for the attributes (which brings the code onto the GPU), allows dynamic shared
// memory up to what a block may have, and sets one carve-out for every kernel: SMs that are
// configured for different carve-outs cannot be shared by two kernels.
#pragma once

#include <cuda_runtime.h>

#include <cstddef>
#include <cstdint>
#include <string>
#include <unordered_map>
#include <vector>

#include "tileweave/runtime/kernel_library.h"

namespace tileweave {

struct LoadedKernel {
  const void* function = nullptr;
  std::int32_t registers_per_thread = 0;
  std::int64_t static_shared_bytes = 0;
  std::int32_t max_threads_per_block = 0;
  /// Runs code of sm_90 or later, in which a programmatic consumer really waits.
  bool waits_for_grid_dependency = false;
  std::vector<std::size_t> parameter_bytes;
};

class KernelLoader {
 public:
  /// Share of an SM's combined L1 and shared memory that every kernel asks for, in percent.
  static constexpr int kSharedCarveout = 100;

  explicit KernelLoader(std::int64_t shared_bytes_per_block)
      : shared_bytes_per_block_(shared_bytes_per_block) {}

  /// Throws Error naming the kernel when it has no CUDA function or no code for this GPU.
  const LoadedKernel& load(const KernelImpl& kernel);
  const LoadedKernel& load(const std::string& name, const void* function);
  void load_all(const KernelLibrary& kernels);

 private:
  std::int64_t shared_bytes_per_block_;
  std::unordered_map<const void*, LoadedKernel> loaded_;
};

}  // namespace tileweave
