// Machine probe: what `tileweave doctor` finds out about a GPU by trying it.
//
// Everything that the library relies on but CUDA does not promise is measured: how many streams
// make progress independently, whether launch-completion events keep the order of launches, whether
// memory operations and green contexts work inside graphs. Every kernel has a deadline, so a probe
// cannot hang; a feature that fails is a finding with a sentence, not an exception. Takes about two
// seconds on an idle GPU and needs it for itself. Throws Error only when no GPU can be opened.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "tileweave/plan/resources.h"
#include "tileweave/runtime/device.h"

namespace tileweave {

enum class Works : std::uint8_t { kYes, kNo, kNotThere };

constexpr const char* name_of(Works works) {
  switch (works) {
    case Works::kYes:
      return "yes";
    case Works::kNo:
      return "no";
    case Works::kNotThere:
      return "not there";
  }
  return "?";
}

/// One feature: what was tried, whether it works, and numbers or the reason why not.
struct MachineCheck {
  std::string name;
  Works works = Works::kNotThere;
  std::string detail;
};

/// Whether all launches of a chain have blocks of one size. Small blocks may fit where the rest of
/// a launch of large ones does not: that is where an order is most likely to break.
enum class BlockSizes : std::uint8_t { kEqual, kUnequal };

/// A chain of launches, each released by the launch-completion event of the one before.
struct LaunchOrderFinding {
  std::string chain;   // "equal blocks", "several waves", "large and small blocks by turns"
  std::string submit;  // "eager" or "graph"
  BlockSizes sizes = BlockSizes::kEqual;
  std::int32_t num_streams = 0;
  std::int64_t launches = 0;
  std::int64_t blocks = 0;               // of all launches
  std::int64_t early_blocks = 0;         // began before the last block of their predecessor began
  std::int64_t early_launches = 0;       // launches with such a block
  std::int64_t overlapped_launches = 0;  // began before their predecessor's last block ended
  std::int64_t longest_lead_ns = 0;      // by which an early block was early
  bool kept() const { return early_blocks == 0; }
};

struct MachineReport {
  DeviceLimits limits;
  std::string driver;               // "580.65.06", or the CUDA version where that is not told
  std::int32_t driver_version = 0;  // newest CUDA that the driver serves, 13000 for 13.0
  std::int32_t runtime_version = 0;
  std::int32_t compute_capability = 0;  // 90 for 9.0
  std::size_t memory_bytes = 0;
  std::size_t free_bytes = 0;
  std::size_t l2_bytes = 0;
  /// Streams that were seen to make progress while the others spin.
  std::int32_t independent_streams = 0;
  std::vector<MachineCheck> checks;
  std::vector<LaunchOrderFinding> launch_order;
  /// No block of any chain began too early: `trust_launch_order` may be stored.
  bool launch_order_kept() const;
};

struct ProbeOptions {
  CudaOptions device = {};
  std::int32_t launches = 1000;  // per chain of the launch-order probe
};

MachineReport probe_machine(const ProbeOptions& options = {});

}  // namespace tileweave
