#include "tileweave/runtime/cpu/cpu_device.h"

#include <unistd.h>

#include <cstring>
#include <new>
#include <thread>

#include "tileweave/core/error.h"
#include "tileweave/core/format.h"
#include "tileweave/runtime/base_update.h"
#include "tileweave/runtime/cpu/cpu_queue.h"

namespace tileweave {
namespace cpu {

namespace {

constexpr std::align_val_t kAlignment{256};
constexpr std::uint8_t kNanByte = 0xff;

std::size_t physical_bytes() {
  const long pages = sysconf(_SC_PHYS_PAGES);
  const long page = sysconf(_SC_PAGESIZE);
  return static_cast<std::size_t>(pages) * static_cast<std::size_t>(page);
}

DescribedDevice described_of(const CpuOptions& options) {
  if (!options.described_device.empty()) return DescribedDevice::load(options.described_device);
  return options.way == CpuWay::kModel ? DescribedDevice::unit() : DescribedDevice::host();
}

KernelImpl base_update_kernel() {
  KernelImpl kernel;
  kernel.name = kBaseUpdateKernel;
  kernel.cpu = [](CpuLane& lane, const std::byte* args, const std::byte* /*context*/) {
    BaseUpdateArgs update;
    std::memcpy(&update, args, sizeof(update));
    // Block b of a launch takes every entry: one block is enough, and further ones find none.
    if (lane.block_index() != 0) return;
    apply_base_updates(update, 0, 1, lane.lane(), lane.num_lanes());
  };
  return kernel;
}

constexpr std::int32_t kMostSms = 4096;  // in `throughput` each is a thread

}  // namespace

CpuDevice::CpuDevice(const CpuOptions& options)
    : options_(options), described_(described_of(options)), limits_(described_.limits) {
  if (!options.limits.name.empty()) limits_ = options.limits;
  if (options.num_sms < 0 || options.num_sms > kMostSms) {
    throw Error("open the emulated device",
                "no negative number of SMs, at most " + std::to_string(kMostSms),
                std::to_string(options.num_sms));
  }
  require(options.delay_probability >= 0 && options.delay_probability <= 1,
          "open the emulated device", "a delay probability between 0 and 1",
          std::to_string(options.delay_probability));
  if (options.num_sms > 0) {
    limits_.num_sms = options.num_sms;
  } else if (options.way == CpuWay::kThroughput && options.limits.name.empty()) {
    limits_.num_sms = std::max(1, static_cast<std::int32_t>(std::thread::hardware_concurrency()));
  }
  require(limits_.num_sms >= 1, "open the emulated device", "at least one SM",
          std::to_string(limits_.num_sms));
  kernels().add(base_update_kernel());
}

void* CpuDevice::allocate(std::size_t bytes) {
  const std::size_t wanted = bytes == 0 ? 1 : bytes;
  // Linux promises memory that it does not have; more than the machine holds is refused here.
  void* pointer =
      wanted <= physical_bytes() ? ::operator new(wanted, kAlignment, std::nothrow) : nullptr;
  require(pointer != nullptr, "allocate on the emulated device", "enough memory",
          "a request for " + human_bytes(bytes));
  if (options_.way == CpuWay::kExplore || options_.check_views == CheckViews::kOn) {
    std::memset(pointer, kNanByte, bytes);
  }
  return pointer;
}

void CpuDevice::release(void* pointer) noexcept {
  ::operator delete(pointer, kAlignment);
}

void CpuDevice::upload(void* device, const void* host, std::size_t bytes) {
  if (bytes != 0) std::memcpy(device, host, bytes);
}

void CpuDevice::download(void* host, const void* device, std::size_t bytes) const {
  if (bytes != 0) std::memcpy(host, device, bytes);
}

void CpuDevice::fill(void* device, std::uint8_t byte, std::size_t bytes) {
  if (bytes != 0) std::memset(device, byte, bytes);
}

KernelResources CpuDevice::measured_resources(const KernelImpl& /*kernel*/,
                                              const KernelResources& declared) const {
  return declared;
}

std::int32_t CpuDevice::occupancy(const KernelImpl& /*kernel*/,
                                  const KernelResources& /*resources*/) const {
  return -1;
}

std::unique_ptr<LaunchQueue> CpuDevice::open_queue(std::int32_t num_streams) {
  std::unique_ptr<Engine> engine;
  switch (options_.way) {
    case CpuWay::kThroughput:
      engine = make_throughput_engine(options_, limits_);
      break;
    case CpuWay::kExplore:
      engine = make_explore_engine(options_, limits_);
      break;
    case CpuWay::kModel:
      engine = make_model_engine(options_, limits_, described_);
      break;
  }
  return std::make_unique<CpuQueue>(options_, limits_, num_streams, std::move(engine));
}

}  // namespace cpu

std::unique_ptr<Device> open_cpu_device(const CpuOptions& options) {
  return std::make_unique<cpu::CpuDevice>(options);
}

}  // namespace tileweave
