// Times on the GPU: runs of a program between two events, and the rate of a bare read.
//
// Host work hides behind the device's as long as it is the shorter one, so a time over some tens of
// runs is the device's own. Throws Error when a run fails.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <vector>

#include "tileweave/runtime/device.h"
#include "tileweave/runtime/program.h"

namespace tileweave {

class RunTimer {
 public:
  RunTimer();
  ~RunTimer();
  RunTimer(const RunTimer&) = delete;
  RunTimer& operator=(const RunTimer&) = delete;

  /// Seconds of everything that `enqueue` puts behind the program's runs so far, such as some more
  /// runs; the program is idle afterwards.
  double seconds(Program& program, const std::function<void()>& enqueue);

  struct Events;

 private:
  std::unique_ptr<Events> events_;
};

struct ReadRateOptions {
  std::size_t bytes = std::size_t{8} << 30;  // less where the GPU has not as much left
  std::int32_t repeats = 5;                  // of every number of blocks
};

struct ReadRateResult {
  std::int64_t blocks = 0;
  double bytes_per_second = 0;  // the median
};

struct ReadRateReport {
  std::size_t bytes = 0;
  std::vector<ReadRateResult> results;
  double best() const;
};

/// A kernel that only reads, alone in a graph, over random data: what streaming can reach.
ReadRateReport measure_read_rate(const ReadRateOptions& options = {});

}  // namespace tileweave
