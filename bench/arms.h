// Arms of a benchmark on a GPU: programs that take turns, and their medians.
#pragma once

#include <algorithm>
#include <memory>
#include <string>
#include <vector>

#include "tileweave/runtime/cuda/run_timer.h"
#include "tileweave/runtime/program.h"

namespace tileweave::bench {

struct Arm {
  std::string name;
  std::unique_ptr<Program> program;
  std::vector<double> us = {};  // per node
};

inline double median(std::vector<double> values) {
  std::sort(values.begin(), values.end());
  return values[values.size() / 2];
}

/// Runs every arm in turn, twice to warm up and `repeat` times for `us`, calling `before` ahead of
/// each run. `length`: nodes of an arm.
template <class Before>
void time_in_turn(std::vector<Arm>& arms, int length, int repeat, const Before& before) {
  RunTimer timer;
  for (int r = -2; r < repeat; ++r) {
    for (Arm& arm : arms) {
      before();
      const double seconds = timer.seconds(*arm.program, [&] { arm.program->run(); });
      if (r >= 0) arm.us.push_back(seconds * 1e6 / length);
    }
  }
}

}  // namespace tileweave::bench
