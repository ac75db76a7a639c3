#include "cli/moe_svg.h"

#include <fmt/format.h>

#include <algorithm>

#include "tileweave/trace/escape.h"

namespace tileweave::cli {
namespace {

constexpr double kHeight = 260, kTop = 92, kLeft = 70, kBottom = 46;

constexpr const char* kStyle = R"(<style>
text { font: 12px system-ui, sans-serif; fill: #222 }
.title { font-size: 15px; font-weight: 600 }
.small { font-size: 11px; fill: #555 }
.before { fill: #b9bec6 }
.own { fill: #2f6fb2 }
.replica { fill: #e8a33d }
.axis { stroke: #999; stroke-width: 1 }
.mean { stroke: #b03030; stroke-width: 1.2; stroke-dasharray: 5 4 }
</style>
)";

std::string rect(const char* kind, double x, double y, double width, double height,
                 const std::string& hover) {
  return fmt::format(
      "<rect class=\"{}\" x=\"{:.1f}\" y=\"{:.1f}\" width=\"{:.1f}\" height=\"{:.1f}\">"
      "<title>{}</title></rect>\n",
      kind, x, y, width, height, html_escape(hover));
}

std::string text(const char* kind, double x, double y, const char* anchor,
                 const std::string& words) {
  return fmt::format("<text class=\"{}\" x=\"{:.1f}\" y=\"{:.1f}\" text-anchor=\"{}\">{}</text>\n",
                     kind, x, y, anchor, html_escape(words));
}

std::string line(const char* kind, double x0, double y0, double x1, double y1) {
  return fmt::format(
      "<line class=\"{}\" x1=\"{:.1f}\" y1=\"{:.1f}\" x2=\"{:.1f}\" y2=\"{:.1f}\"/>\n", kind, x0,
      y0, x1, y1);
}

std::string legend(double x, const char* kind, const char* words) {
  return rect(kind, x, kTop - 24, 11, 11, words) + text("small", x + 16, kTop - 14, "start", words);
}

}  // namespace

std::string to_svg(const LoadPicture& picture) {
  const auto count = static_cast<double>(picture.ranks.size());
  const double group = std::clamp(640 / std::max(count, 1.0), 14.0, 72.0), bar = group * 0.36;
  const double width = std::max(620.0, kLeft + group * count + 24), floor = kTop + kHeight;
  std::int64_t most = 1, sum = 0;
  for (const RankBars& rank : picture.ranks) {
    most = std::max({most, rank.before, rank.after_own + rank.after_replicas});
    sum += rank.before;
  }
  const double mean = static_cast<double>(sum) / std::max(count, 1.0);
  const auto scaled = [&](double rows) { return rows * kHeight / static_cast<double>(most); };

  std::string svg = fmt::format(
      "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {0:.0f} {1:.0f}\" width=\"{0:.0f}\" "
      "height=\"{1:.0f}\" role=\"img\">\n",
      width, floor + kBottom);
  svg += fmt::format("<title>{}</title>\n", html_escape(picture.title));
  svg += kStyle;
  svg += "<rect width=\"100%\" height=\"100%\" fill=\"#fff\"/>\n";
  svg += text("title", 16, 24, "start", picture.title);
  svg += text("small", 16, 42, "start", picture.workload);
  svg += text("small", 16, 58, "start", picture.plan);
  svg += legend(kLeft, "before", "before: fixed placement");
  svg += legend(kLeft + 165, "own", "after: own experts");
  svg += legend(kLeft + 300, "replica", "after: replicas");
  for (int i = 0; i <= 4; ++i) {
    const double rows = static_cast<double>(most) * i / 4, y = floor - scaled(rows);
    svg += line("axis", kLeft - 4, y, kLeft, y);
    svg += text("small", kLeft - 8, y + 4, "end", fmt::format("{:.0f}", rows));
  }
  svg += line("axis", kLeft, kTop, kLeft, floor);
  for (std::size_t r = 0; r < picture.ranks.size(); ++r) {
    const RankBars& rank = picture.ranks[r];
    const double x = kLeft + group * static_cast<double>(r) + group * 0.12;
    const double before = scaled(static_cast<double>(rank.before));
    const double own = scaled(static_cast<double>(rank.after_own));
    const double copies = scaled(static_cast<double>(rank.after_replicas));
    svg += rect("before", x, floor - before, bar, before,
                fmt::format("rank {} before: {} rows", r, rank.before));
    svg += rect("own", x + bar, floor - own, bar, own,
                fmt::format("rank {} after: {} rows of its own experts", r, rank.after_own));
    svg += rect("replica", x + bar, floor - own - copies, bar, copies,
                fmt::format("rank {} after: {} rows of replicas", r, rank.after_replicas));
    svg += text("small", x + bar, floor + 16, "middle", std::to_string(r));
  }
  svg += line("axis", kLeft, floor, width - 16, floor);
  svg += line("mean", kLeft, floor - scaled(mean), width - 16, floor - scaled(mean));
  svg +=
      text("small", width - 16, floor - scaled(mean) - 4, "end", fmt::format("mean {:.0f}", mean));
  svg += text("small", kLeft, floor + 34, "start", "valid rows by rank");
  return svg + "</svg>\n";
}

}  // namespace tileweave::cli
