// The GPU, or a part of it, with the tile-mix kernels.
#pragma once

#include <memory>

#include "tests/runtime/tile_mix.h"

namespace tileweave {

/// `num_sms` 0: the whole GPU.
inline std::unique_ptr<Device> open_mix_gpu(std::int32_t num_sms = 0) {
  std::unique_ptr<Device> device = open_cuda_device({.num_sms = num_sms});
  add_tile_mix_cuda(device->kernels());
  return device;
}

}  // namespace tileweave
