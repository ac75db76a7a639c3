// The last node of a run: adds each data tile's target to its base (DESIGN principle 6).
//
// One source for both devices; every device registers it under kBaseUpdateKernel. Runs after every
// other node of the run has completed, so no signal or wait of the run can race with it. Targets
// are read from device memory where they are kept there, so data-dependent targets stay right.
#pragma once

#include <cstdint>

#include "tileweave/core/target.h"

namespace tileweave {

inline constexpr const char* kBaseUpdateKernel = "tileweave.base_update";
inline constexpr int kBaseUpdateThreads = 256;

/// At most kBaseUpdateWords words, so that one thread per entry keeps the end of a run short.
struct BaseUpdate {
  std::uint32_t* base;           // first of `count` words
  const std::uint32_t* targets;  // one per base word, or null: all equal `target`
  std::uint32_t target;
  std::int32_t count;
  std::int32_t stride = 1;  // words between bases
};
inline constexpr std::int32_t kBaseUpdateWords = 8;

struct BaseUpdateArgs {
  const BaseUpdate* entries;   // device memory
  const std::uint32_t* abort;  // an aborted run leaves its bases, so that a report can be made
  std::int32_t num_entries;
};

/// Work of one lane of one block: entries dealt out over all lanes of all blocks.
TW_HOST_DEVICE inline void apply_base_updates(const BaseUpdateArgs& args, std::int64_t block,
                                              std::int64_t num_blocks, int lane, int num_lanes) {
  if (*args.abort != 0) return;
  for (std::int64_t e = block * num_lanes + lane; e < args.num_entries;
       e += num_blocks * num_lanes) {
    const BaseUpdate entry = args.entries[e];
    for (std::int32_t i = 0; i < entry.count; ++i) {
      entry.base[i * entry.stride] += entry.targets != nullptr ? entry.targets[i] : entry.target;
    }
  }
}

}  // namespace tileweave
