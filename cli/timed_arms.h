// Arms of a benchmark on a GPU: programs that take turns, so that what drifts drifts for all of
// them. Throws Error when a run fails.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "cli/cuda_machine.h"
#include "tileweave/runtime/program.h"

namespace tileweave::cli {

struct TimedArm {
  std::string name;
  std::unique_ptr<Program> program;
  std::vector<double> us = {};  // per node
};

/// Runs every arm in turn, twice to warm up and `repeat` times for `us`; `before` is called ahead
/// of each run. `nodes`: of an arm.
inline void time_in_turn(
    std::vector<TimedArm>& arms, std::int64_t nodes, std::int64_t repeat,
    const std::function<void()>& before = [] {}) {
  for (std::int64_t r = -2; r < repeat; ++r) {
    for (TimedArm& arm : arms) {
      before();
      const double seconds = seconds_on_gpu(*arm.program, [&] { arm.program->run(); });
      if (r >= 0) arm.us.push_back(seconds * 1e6 / static_cast<double>(nodes));
    }
  }
}

}  // namespace tileweave::cli
