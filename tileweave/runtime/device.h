// Device: one emulated device or one GPU (or a partition of it); memory, kernels, queues.
//
// The same verbs on both sides: `open_cpu_device` is always linked, `open_cuda_device` where CUDA
// is enabled (otherwise a stub throws Error saying so). A device outlives what was made from it.
// Host-thread-safe only for distinct queues; memory verbs synchronise with nothing unless stated.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>

#include "tileweave/core/error.h"
#include "tileweave/plan/resources.h"
#include "tileweave/runtime/kernel_library.h"
#include "tileweave/runtime/launch_queue.h"

namespace tileweave {

/// How the emulated device runs blocks (DESIGN "Devices").
enum class CpuWay : std::uint8_t {
  kThroughput,  // SMs are threads; default
  kExplore,     // one thread, seeded admission, interleaving and delays; deadlock named at once
  kModel,       // virtual clock, discrete events: ranks schedules, never a performance result
};

/// What `model` runs: the kernels' arithmetic under the virtual clock, or their costs alone.
enum class ModelWork : std::uint8_t { kMath, kCostOnly };

/// Whether operators run with checking views.
enum class CheckViews : std::uint8_t { kOff, kOn };

struct CpuOptions {
  CpuWay way = CpuWay::kThroughput;
  std::int32_t num_sms = 0;        // 0: one per core (throughput), the described device's (else)
  std::uint64_t seed = 1;          // explore
  double delay_probability = 0.0;  // explore: chance that a runnable lane is held back at a step
  ModelWork model_work = ModelWork::kMath;
  CheckViews check_views = CheckViews::kOff;
  std::string described_device = {};  // model: file of constants; empty: built-in unit device
  DeviceLimits limits = {};           // used where name is not empty
};

struct CudaOptions {
  std::int32_t device_index = 0;
  std::int32_t num_sms = 0;  // 0: the whole GPU; else a green context of at least that many SMs
};

class Device {
 public:
  virtual ~Device() = default;

  virtual const std::string& name() const = 0;  // "cpu" or "cuda"
  virtual const DeviceLimits& limits() const = 0;
  /// Version of the driver that the device runs under; empty where there is none.
  virtual std::string driver() const { return {}; }
  KernelLibrary& kernels() { return kernels_; }
  const KernelLibrary& kernels() const { return kernels_; }

  /// 256-byte aligned, uninitialised. Throws Error naming the size when out of memory.
  virtual void* allocate(std::size_t bytes) = 0;
  virtual void release(void* pointer) noexcept = 0;
  /// Memory that both sides read and write (hang report); host-mapped on a GPU.
  virtual void* allocate_shared(std::size_t bytes) = 0;
  virtual void release_shared(void* pointer) noexcept = 0;
  /// Blocking copies and fill.
  virtual void upload(void* device, const void* host, std::size_t bytes) = 0;
  virtual void download(void* host, const void* device, std::size_t bytes) const = 0;
  virtual void fill(void* device, std::uint8_t byte, std::size_t bytes) = 0;

  /// True on devices that name a deadlock at once (explore, model): waits then need no deadline.
  virtual bool finds_deadlock() const { return false; }
  /// Default distance between neighbouring semaphores, in words.
  virtual std::int32_t default_word_stride() const = 0;
  /// Registers, shared memory of a kernel as compiled, with `dynamic_shared` added; for devices
  /// that cannot know, `declared` comes back.
  virtual KernelResources measured_resources(const KernelImpl& kernel,
                                             const KernelResources& declared) const = 0;
  /// Blocks per SM by the device's own occupancy calculation, or -1 where it has none.
  virtual std::int32_t occupancy(const KernelImpl& kernel,
                                 const KernelResources& resources) const = 0;

  /// N internal streams. Loads every kernel it is told of before anything may spin.
  virtual std::unique_ptr<LaunchQueue> open_queue(std::int32_t num_streams) = 0;

 private:
  KernelLibrary kernels_;
};

std::unique_ptr<Device> open_cpu_device(const CpuOptions& options = {});
/// Throws Error when this build has no CUDA, or the machine no usable GPU.
std::unique_ptr<Device> open_cuda_device(const CudaOptions& options = {});
/// True when a GPU can be opened.
bool cuda_usable() noexcept;
/// "cpu" or "cuda" with default options; throws Error for any other name.
inline std::unique_ptr<Device> open_device(const std::string& name) {
  if (name == "cpu") return open_cpu_device();
  if (name == "cuda") return open_cuda_device();
  throw Error("open device", "`cpu` or `cuda`", "`" + name + "`");
}

}  // namespace tileweave
