#include "cli/findings.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstddef>

#include "tileweave/trace/escape.h"

namespace tileweave::cli {
namespace {

constexpr std::size_t kStatusWidth = 11;  // "attention" and a gap

}  // namespace

std::string findings_table(const std::vector<Finding>& findings) {
  std::size_t name_width = 0;
  for (const Finding& f : findings) name_width = std::max(name_width, f.name.size());
  std::string text;
  const std::string* device = nullptr;
  for (const Finding& f : findings) {
    if (device == nullptr || *device != f.device) text += fmt::format("device {}\n", f.device);
    device = &f.device;
    text += fmt::format("  {:<{}}{:<{}}  {}\n", name_of(f.status), kStatusWidth, f.name, name_width,
                        printable(f.found));
    if (!f.means.empty()) {
      text += fmt::format("  {:<{}}{}\n", "", kStatusWidth + name_width + 2,
                          "-> " + printable(f.means));
    }
  }
  return text;
}

Json findings_json(const std::vector<Finding>& findings) {
  Json list = Json::array();
  for (const Finding& f : findings) {
    list.push_back({{"device", f.device},
                    {"name", f.name},
                    {"status", name_of(f.status)},
                    {"found", f.found},
                    {"means", f.means}});
  }
  return list;
}

}  // namespace tileweave::cli
