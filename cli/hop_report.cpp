#include "cli/hop_report.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstddef>

#include "tileweave/core/error.h"

namespace tileweave::cli {
namespace {

/// Nanoseconds are as much as a clock can say.
double rounded(double us) {
  return std::round(us * 1000) / 1000;
}

}  // namespace

double median(std::vector<double> values) {
  require(!values.empty(), "take a median", "at least one value");
  const auto middle = values.begin() + static_cast<std::ptrdiff_t>(values.size() / 2);
  std::nth_element(values.begin(), middle, values.end());
  if (values.size() % 2 == 1) return *middle;
  return (*middle + *std::max_element(values.begin(), middle)) / 2;
}

std::string downgrade_remark(std::int64_t downgrades, std::int64_t hops) {
  if (downgrades == 0) return {};
  return fmt::format("{} of {} edges ran as full dependencies", downgrades, hops - 1);
}

std::string hop_table(const HopReport& report) {
  std::string text = fmt::format(
      "device {}: {}\nchain of {} kernels of {} blocks x {} threads, one semaphore word a kernel, "
      "deadline and abort compiled in\n",
      report.device, report.machine, report.hops, report.blocks, report.threads);
  if (!report.notice.empty()) text += report.notice + "\n";
  std::size_t width = 0;
  for (const HopArm& arm : report.arms) width = std::max(width, arm.name.size());
  text += fmt::format("\n  {:<{}}  {:>10}  {:>10}  {:>10}\n", "", width, "median", "least", "most");
  for (const HopArm& arm : report.arms) {
    const auto [least, most] = std::minmax_element(arm.us_per_hop.begin(), arm.us_per_hop.end());
    text += fmt::format("  {:<{}}  {:>10.3f}  {:>10.3f}  {:>10.3f}  us a hop{}{}\n", arm.name,
                        width, median(arm.us_per_hop), *least, *most,
                        arm.remark.empty() ? "" : "; ", arm.remark);
  }
  return text;
}

Json hop_json(const HopReport& report) {
  Json arms = Json::array();
  for (const HopArm& arm : report.arms) {
    const auto [least, most] = std::minmax_element(arm.us_per_hop.begin(), arm.us_per_hop.end());
    Json values = Json::array();
    for (const double us : arm.us_per_hop) values.push_back(rounded(us));
    arms.push_back({{"arm", arm.name},
                    {"median_us_per_hop", rounded(median(arm.us_per_hop))},
                    {"least_us_per_hop", rounded(*least)},
                    {"most_us_per_hop", rounded(*most)},
                    {"us_per_hop", std::move(values)},
                    {"remark", arm.remark}});
  }
  return {{"verb", "bench sync"},    {"device", report.device}, {"machine", report.machine},
          {"notice", report.notice}, {"blocks", report.blocks}, {"threads", report.threads},
          {"hops", report.hops},     {"arms", std::move(arms)}};
}

}  // namespace tileweave::cli
