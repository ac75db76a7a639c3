// Hop costs on a GPU: microseconds per dependent kernel of a chain, for every edge kind.
//
// The chain is a real plan run by a real Program: empty kernels of one block per SM and 256
// threads, every block of which waits for one semaphore word (all blocks of the node before have
// arrived) and arrives on the next. Deadline and abort are compiled in. Arms take turns, so that
// drift of clocks hits all alike. Time is taken on the GPU between two events around a whole run,
// end of run included. Throws Error when an arm does not run or a chain counts wrong.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "tileweave/plan/node.h"
#include "tileweave/runtime/device.h"
#include "tileweave/runtime/run_options.h"

namespace tileweave {

struct HopBenchOptions {
  CudaOptions device = {};
  std::int32_t num_nodes = 1024;  // so that the ends of a run hardly count
  std::int32_t repeats = 20;      // measurements of every arm
  std::int64_t num_blocks = 0;    // 0: one per SM
};

struct HopArmResult {
  std::string name;  // "tile launch_completion, 2 streams"
  EdgePolicy edge;
  Submit submit = Submit::kGraph;
  std::int32_t num_streams = 1;
  std::vector<double> us_per_hop;   // in the order of measuring
  std::int32_t num_downgrades = 0;  // edges that ran as full dependencies instead
  double median_us() const;
};

struct HopBenchReport {
  std::string machine;
  std::int32_t num_nodes = 0;
  std::int64_t num_blocks = 0;
  std::int32_t threads = 0;
  std::vector<HopArmResult> arms;
};

HopBenchReport measure_hops(const HopBenchOptions& options = {});

}  // namespace tileweave
