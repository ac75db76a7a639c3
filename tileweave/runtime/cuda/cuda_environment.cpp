#include "tileweave/runtime/cuda/cuda_environment.h"

#include <dlfcn.h>

#include <algorithm>
#include <cstdlib>
#include <string>

namespace tileweave {
namespace {

constexpr const char* kQueues = "CUDA_DEVICE_MAX_CONNECTIONS";
constexpr const char* kLoading = "CUDA_MODULE_LOADING";

/// The CUDA runtime opens the driver's library at its first call; before that nothing was read.
bool driver_is_loaded() {
  void* driver = dlopen("libcuda.so.1", RTLD_LAZY | RTLD_NOLOAD);
  if (driver == nullptr) return false;
  dlclose(driver);
  return true;
}

}  // namespace

void prepare_cuda_environment() noexcept {
  if (driver_is_loaded()) return;
  setenv(kQueues, std::to_string(kWantedHardwareQueues).c_str(), /*overwrite=*/0);
  setenv(kLoading, "EAGER", /*overwrite=*/0);
}

std::int32_t hardware_queues() noexcept {
  const char* text = std::getenv(kQueues);
  if (text == nullptr) return kDefaultHardwareQueues;
  const long value = std::strtol(text, nullptr, 10);
  return static_cast<std::int32_t>(std::clamp<long>(value, 1, kWantedHardwareQueues));
}

}  // namespace tileweave
