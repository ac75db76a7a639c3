// ProgressBar: one line on standard error that says how far a long step is, and how fast.
//
// Drawn only where standard error is a terminal; elsewhere nothing is written. Not coloured, so
// NO_COLOR changes nothing. The line is cleared when the bar ends.
#pragma once

#include <chrono>
#include <cstddef>
#include <ostream>
#include <string>

namespace tileweave::cli {

class ProgressBar {
 public:
  ProgressBar(std::ostream& err, std::string label);
  ~ProgressBar();
  ProgressBar(const ProgressBar&) = delete;
  ProgressBar& operator=(const ProgressBar&) = delete;

  /// Redraws at most ten times a second. Bytes are shown with their rate.
  void update(std::size_t done, std::size_t in_all);

 private:
  using Clock = std::chrono::steady_clock;
  std::ostream& err_;
  std::string label_;
  bool shown_;
  Clock::time_point start_;
  Clock::time_point drawn_;
};

/// "269.1 MB", "1.5 GB": powers of ten.
std::string bytes_text(double bytes);
/// "134.5 M", "8.03 B": for parameters.
std::string count_text(double count);

}  // namespace tileweave::cli
