// Residency: on how many SMs blocks of some kernels can leave no room for one block of another.
//
// The arithmetic below the `capacity` ground (docs/grounds_and_proofs.md proves it): bounds hold
// for every way in which a device may spread the blocks over its SMs, so room for a block exists on
// some SM whenever fewer than all SMs can be blocked. Pure function of footprints; results are
// kept, since plans repeat few kernels many times.
#pragma once

#include <compare>
#include <cstdint>
#include <map>
#include <tuple>
#include <vector>

#include "tileweave/plan/resources.h"

namespace tileweave {

/// Blocks of one kernel that may be resident and not leave.
struct Crowd {
  KernelResources resources;
  std::int64_t blocks = 0;
};

class Residency {
 public:
  explicit Residency(const DeviceLimits& device) : device_(device) {}

  const DeviceLimits& device() const { return device_; }

  /// Upper bound of the number of SMs on which blocks of `crowds`, however spread, leave no room
  /// for one block of `need`; at most the number of SMs.
  std::int64_t blocked_sms(const KernelResources& need, const std::vector<Crowd>& crowds);

  /// Fewest blocks of `crowd` alone that leave no room for a block of `need` on an SM; 0 when even
  /// as many as fit leave room.
  std::int64_t blocks_to_block(const KernelResources& need, const KernelResources& crowd) const;

 private:
  using Key = std::vector<std::int64_t>;

  DeviceLimits device_;
  std::map<Key, std::int64_t> known_;
};

}  // namespace tileweave
