// Random bf16 numbers in device memory, the same on every device: element i depends on seed and i
// alone, so a tensor may be filled in pieces and in any place.
#pragma once

#include <cstdint>

#include "tileweave/core/dtype.h"
#include "tileweave/core/target.h"
#include "tileweave/runtime/device.h"

namespace tileweave {

/// Uniform in [center - spread, center + spread).
struct RandomFill {
  std::uint64_t seed = 0;
  std::int64_t first = 0;  // index of the first element
  std::int64_t count = 0;
  float center = 0;
  float spread = 1;
};

/// Element `index` of a tensor.
TW_HOST_DEVICE inline BFloat16 random_element(const RandomFill& fill, std::int64_t index) {
  // splitmix64: neighbouring indices give unrelated bits.
  std::uint64_t bits = fill.seed + static_cast<std::uint64_t>(index) * 0x9e3779b97f4a7c15ULL;
  bits = (bits ^ (bits >> 30)) * 0xbf58476d1ce4e5b9ULL;
  bits = (bits ^ (bits >> 27)) * 0x94d049bb133111ebULL;
  bits ^= bits >> 31;
  const float unit = static_cast<float>(bits >> 40) * 0x1p-23F - 1.0F;  // exact
  return to_bfloat16(fill.center + fill.spread * unit);
}

/// Returns when the numbers are there.
void fill_random_on(Device& device, BFloat16* to, const RandomFill& fill);

/// Of fill_random_on; in builds without CUDA: throws Error saying so.
void fill_random_cuda(BFloat16* to, const RandomFill& fill);

}  // namespace tileweave
