// Devices and small plans that the runtime tests share.
#pragma once

#include <chrono>
#include <memory>
#include <string>

#include "tests/runtime/tile_mix.h"
#include "tileweave/plan/resources.h"

namespace tileweave {

/// An H200's SMs, `num_sms` of them.
inline DeviceLimits emulated(std::int32_t num_sms) {
  DeviceLimits limits = h200_limits();
  limits.name = "emulated";
  limits.num_sms = num_sms;
  return limits;
}

/// An emulated device with the tile-mix kernels; limits as above where num_sms is given.
inline std::unique_ptr<Device> open_mix_device(CpuOptions options) {
  if (options.num_sms > 0 && options.limits.name.empty()) {
    options.limits = emulated(options.num_sms);
  }
  std::unique_ptr<Device> device = open_cpu_device(options);
  add_tile_mix_cpu(device->kernels());
  return device;
}

inline double seconds_since(std::chrono::steady_clock::time_point begin) {
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
}

/// x (8, 4) -> `first` -> y (8, 4), data tiles of two rows -> `second` -> z (8, 4); 4 works each,
/// `second` work w reads data tile w of y.
struct TwoNodes {
  MixPlan mix;
  TensorId x = kNoTensor;
  TensorId y = kNoTensor;
  TensorId z = kNoTensor;
  MixNode first;
  MixNode second;

  explicit TwoNodes(std::int32_t num_streams = 2) {
    mix.plan.options() = {.name = "two nodes", .num_streams = num_streams};
    x = add_filled(mix, {.name = "x", .shape = {8, 4}, .kind = TensorKind::kConstant}, 7);
    y = add_value(mix, {.name = "y", .shape = {8, 4}, .tiles = {2, 4}});
    z = add_value(mix, {.name = "z", .shape = {8, 4}, .tiles = {2, 4}, .output = true});
    const TileSet rows = TileSet::plain({{8, 4}, {2, 4}});
    first = {.name = "first",
             .inputs = {{.tensor = x, .kernel_tiles = rows}},
             .outputs = {{.tensor = y, .kernel_tiles = rows}},
             .num_works = 4,
             .salt = 1};
    second = {.name = "second",
              .inputs = {{.tensor = y, .kernel_tiles = rows}},
              .outputs = {{.tensor = z, .kernel_tiles = rows}},
              .num_works = 4,
              .salt = 2};
  }
  /// Adds the nodes as they have been changed.
  MixPlan& done() {
    add_mix(mix, first);
    add_mix(mix, second);
    return mix;
  }
};

}  // namespace tileweave
