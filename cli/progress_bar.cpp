#include "cli/progress_bar.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <iostream>

namespace tileweave::cli {
namespace {

constexpr std::size_t kWidth = 30;
constexpr std::chrono::milliseconds kInterval(100);

std::string scaled(double value, const std::array<const char*, 5>& units) {
  std::size_t unit = 0;
  for (; value >= 999.5 && unit + 1 < units.size(); ++unit) value /= 1000;
  if (unit == 0) return fmt::format("{:.0f}{}", value, units[unit]);
  return value < 9.995 ? fmt::format("{:.2f}{}", value, units[unit])
                       : fmt::format("{:.1f}{}", value, units[unit]);
}

}  // namespace

std::string bytes_text(double bytes) {
  return scaled(bytes, {" B", " kB", " MB", " GB", " TB"});
}

std::string count_text(double count) {
  return scaled(count, {"", " k", " M", " B", " T"});
}

ProgressBar::ProgressBar(std::ostream& err, std::string label)
    : err_(err),
      label_(std::move(label)),
      shown_(&err == &std::cerr && ::isatty(STDERR_FILENO) != 0),
      start_(Clock::now()) {}

ProgressBar::~ProgressBar() {
  if (shown_ && drawn_ != Clock::time_point()) err_ << "\r\x1b[K" << std::flush;
}

void ProgressBar::update(std::size_t done, std::size_t in_all) {
  const auto now = Clock::now();
  if (!shown_ || in_all == 0 || (now - drawn_ < kInterval && done < in_all)) return;
  drawn_ = now;
  const double share = static_cast<double>(done) / static_cast<double>(in_all);
  const double seconds = std::chrono::duration<double>(now - start_).count();
  const auto filled = static_cast<std::size_t>(share * kWidth);
  err_ << fmt::format("\r{} [{}{}] {:3.0f} % of {}, {}/s", label_, std::string(filled, '#'),
                      std::string(kWidth - filled, '.'), share * 100,
                      bytes_text(static_cast<double>(in_all)),
                      bytes_text(static_cast<double>(done) / std::max(seconds, 1e-6)))
       << std::flush;
}

}  // namespace tileweave::cli
