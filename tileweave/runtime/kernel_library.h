// KernelLibrary: kernel name -> implementation, one library per device.
//
// A plan names its kernels ("gemm.f32"); the device that runs it looks the name up. Operator
// folders add theirs (`add_gemm_cpu(device.kernels())`), users add their own. No globals: what a
// device can run is what was added to it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <string>

#include "tileweave/sync/cpu_lane.h"

namespace tileweave {

class Device;

/// Opaque native stream of a device: cudaStream_t on a GPU, unused on the emulated device.
using NativeStream = void*;

/// One block (one lane of it) on the emulated device. `args` are the bytes made by
/// NodeSpec::make_args, `context` points to the SyncContext<N> with N = num_sync_slots.
using CpuKernel =
    std::function<void(CpuLane& lane, const std::byte* args, const std::byte* context)>;

/// Data tiles per synchronised operand that a kernel was compiled for (SingleTileMaps: one).
enum class TileSupport : std::uint8_t { kAny, kSingleTile };

/// A kernel that is another library's function (cuBLASLt): it puts its own work on a stream. Its
/// node is not integrated, so it has full dependencies on both sides. `args` as for CpuKernel.
struct VendorCall {
  /// Loads what the call needs and chooses how it is computed: once per node, before a plan is
  /// recorded or run, and before every launch of an AsyncStream, whose kernels may be running then.
  /// Leaves operands as they are. Null: nothing to prepare. Throws Error.
  std::function<void(Device& device, const std::byte* args)> prepare;
  /// Enqueues; the stream may be being captured. Throws Error.
  std::function<void(NativeStream stream, const std::byte* args)> enqueue;
};

struct KernelImpl {
  std::string name;
  std::int32_t num_sync_slots = 0;  // N of its SyncContext<N>; 0: takes no context
  CpuKernel cpu = nullptr;
  std::int32_t cpu_lanes = 1;           // lanes (fibers) per block on the emulated device
  const void* cuda_function = nullptr;  // __global__ void(Args, SyncContext<N>)
  TileSupport tiles = TileSupport::kAny;
  std::optional<VendorCall> vendor_call = std::nullopt;  // in place of cuda_function
};

class KernelLibrary {
 public:
  /// Replaces an implementation of the same name.
  void add(KernelImpl kernel);
  /// Throws Error naming the kernel and what the library holds.
  const KernelImpl& find(const std::string& name) const;
  /// Everything added, by name.
  const std::map<std::string, KernelImpl>& all() const { return kernels_; }

 private:
  std::map<std::string, KernelImpl> kernels_;
};

}  // namespace tileweave
