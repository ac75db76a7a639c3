#include "tileweave/plan/residency.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>

#include "tileweave/core/coord.h"

namespace tileweave {
namespace {

/// Amounts of the four resources of an SM, in allocation units.
using Amounts = std::array<std::int64_t, 4>;

Amounts amounts_of(const BlockFootprint& block, const DeviceLimits& device) {
  return {block.threads / device.warp_size, block.registers / device.register_unit,
          block.shared_bytes / device.shared_unit, block.slots};
}

Amounts capacity_of(const DeviceLimits& device) {
  return {device.threads_per_sm / device.warp_size, device.registers_per_sm / device.register_unit,
          device.shared_bytes_per_sm / device.shared_unit, device.blocks_per_sm};
}

/// One kernel among those in the way.
struct Kind {
  Amounts upper = {};          // no more than this per block
  Amounts lower = {};          // no less than this per block
  std::int64_t blocks = 0;     // in all
  std::int64_t max_on_sm = 0;  // of these alone
};

/// What remains of an SM beside one block of the kernel that needs room; negative when not even
/// that block surely fits.
Amounts free_beside(const KernelResources& need, const DeviceLimits& device) {
  Amounts free = capacity_of(device);
  const Amounts taken = amounts_of(footprint_bound(need, device), device);
  for (std::size_t r = 0; r < free.size(); ++r) free[r] -= taken[r];
  return free;
}

/// Fewest blocks of `kind` that, beside `taken`, exceed what is free of some resource.
std::int64_t fewest_to_block(const Amounts& free, const Amounts& taken, const Kind& kind) {
  std::int64_t fewest = std::numeric_limits<std::int64_t>::max();
  for (std::size_t r = 0; r < free.size(); ++r) {
    const std::int64_t left = free[r] - taken[r];
    if (left < 0) return 0;
    if (kind.upper[r] > 0) fewest = std::min(fewest, left / kind.upper[r] + 1);
  }
  return fewest;
}

bool fit_together(const Kind& a, std::int64_t num_a, const Kind& b, std::int64_t num_b,
                  const Amounts& capacity) {
  for (std::size_t r = 0; r < capacity.size(); ++r) {
    if (a.lower[r] * num_a + b.lower[r] * num_b > capacity[r]) return false;
  }
  return num_a <= a.max_on_sm && num_b <= b.max_on_sm;
}

/// Weight of a block such that the blocks on a blocked SM always weigh at least 1.
double weight(const Amounts& free, const Kind& kind) {
  double heaviest = 0;
  for (std::size_t r = 0; r < free.size(); ++r) {
    heaviest =
        std::max(heaviest, static_cast<double>(kind.upper[r]) / static_cast<double>(free[r] + 1));
  }
  return heaviest;
}

std::int64_t floor_safely(double bound) {
  return static_cast<std::int64_t>(std::floor(bound * (1 + 1e-12) + 1e-9));
}

/// Two kernels: weights (y, z) with a y + b z >= 1 for every minimal mix (a, b) that blocks an SM
/// bound the number of blocked SMs by blocks_a y + blocks_b z. Best weights lie where two of the
/// mixes weigh the same; every candidate is scaled until all mixes weigh enough, so each is a
/// bound.
std::int64_t blocked_by_two(const Amounts& free, const Kind& a, const Kind& b,
                            const Amounts& capacity) {
  std::vector<std::pair<std::int64_t, std::int64_t>> mixes;
  for (std::int64_t num_a = 0; num_a <= a.max_on_sm; ++num_a) {
    Amounts taken = {};
    for (std::size_t r = 0; r < taken.size(); ++r) taken[r] = a.upper[r] * num_a;
    const std::int64_t num_b = fewest_to_block(free, taken, b);
    if (num_b <= b.max_on_sm && fit_together(a, num_a, b, num_b, capacity)) {
      mixes.emplace_back(num_a, num_b);
    }
    if (num_b == 0) break;
  }
  if (mixes.empty()) return 0;
  double best = std::numeric_limits<double>::infinity();
  const auto try_weights = [&](double y, double z) {
    double lightest = std::numeric_limits<double>::infinity();
    for (const auto& [num_a, num_b] : mixes) {
      lightest =
          std::min(lightest, static_cast<double>(num_a) * y + static_cast<double>(num_b) * z);
    }
    if (y < 0 || z < 0 || lightest <= 0) return;
    best = std::min(
        best, (static_cast<double>(a.blocks) * y + static_cast<double>(b.blocks) * z) / lightest);
  };
  try_weights(weight(free, a), weight(free, b));
  try_weights(1, 0);
  try_weights(0, 1);
  for (std::size_t p = 0; p < mixes.size(); ++p) {
    for (std::size_t q = p + 1; q < mixes.size(); ++q) {
      try_weights(static_cast<double>(mixes[q].second - mixes[p].second),
                  static_cast<double>(mixes[p].first - mixes[q].first));
    }
  }
  return floor_safely(best);
}

std::int64_t blocked_by(const Amounts& free, const std::vector<Kind>& kinds,
                        const Amounts& capacity) {
  if (kinds.empty()) return 0;
  if (kinds.size() == 1) {
    const std::int64_t fewest = fewest_to_block(free, {}, kinds[0]);
    return fewest > kinds[0].max_on_sm ? 0 : kinds[0].blocks / fewest;
  }
  if (kinds.size() == 2) return blocked_by_two(free, kinds[0], kinds[1], capacity);
  double sum = 0;
  for (const Kind& kind : kinds) sum += static_cast<double>(kind.blocks) * weight(free, kind);
  return floor_safely(sum);
}

}  // namespace

std::int64_t Residency::blocked_sms(const KernelResources& need, const std::vector<Crowd>& crowds) {
  std::map<std::tuple<std::int64_t, std::int64_t, std::int64_t>, Crowd> by_kernel;
  for (const Crowd& crowd : crowds) {
    if (crowd.blocks <= 0) continue;
    const KernelResources& r = crowd.resources;
    Crowd& same = by_kernel[{r.threads, r.registers_per_thread, r.shared_bytes}];
    same.resources = r;
    same.blocks += crowd.blocks;
  }
  Key key = {need.threads, need.registers_per_thread, need.shared_bytes};
  for (const auto& [kernel, crowd] : by_kernel) {
    key.insert(key.end(),
               {std::get<0>(kernel), std::get<1>(kernel), std::get<2>(kernel), crowd.blocks});
  }
  const auto [found, is_new] = known_.try_emplace(std::move(key), 0);
  if (!is_new) return found->second;

  const Amounts free = free_beside(need, device_);
  std::vector<Kind> kinds;
  kinds.reserve(by_kernel.size());
  for (const auto& [kernel, crowd] : by_kernel) {
    kinds.push_back({.upper = amounts_of(footprint_bound(crowd.resources, device_), device_),
                     .lower = amounts_of(footprint(crowd.resources, device_), device_),
                     .blocks = crowd.blocks,
                     .max_on_sm = std::min<std::int64_t>(crowd.blocks,
                                                         blocks_per_sm(crowd.resources, device_))});
  }
  const bool fits_nowhere =
      std::any_of(free.begin(), free.end(), [](std::int64_t amount) { return amount < 0; });
  found->second =
      fits_nowhere
          ? device_.num_sms
          : std::min<std::int64_t>(device_.num_sms, blocked_by(free, kinds, capacity_of(device_)));
  return found->second;
}

std::int64_t Residency::blocks_to_block(const KernelResources& need,
                                        const KernelResources& crowd) const {
  const std::int64_t max_on_sm = blocks_per_sm(crowd, device_);
  const Kind kind{.upper = amounts_of(footprint_bound(crowd, device_), device_),
                  .lower = {},
                  .blocks = 0,
                  .max_on_sm = max_on_sm};
  const std::int64_t fewest = fewest_to_block(free_beside(need, device_), {}, kind);
  return fewest > max_on_sm ? 0 : fewest;
}

}  // namespace tileweave
