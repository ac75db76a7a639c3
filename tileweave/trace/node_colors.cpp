#include "tileweave/trace/node_colors.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <map>

namespace tileweave {
namespace {

struct Rgb {
  double red;
  double green;
  double blue;
};

constexpr std::array<Rgb, kNumDistinctColors> kPalette = {{
    {74, 122, 222},   // blue
    {240, 146, 64},   // orange
    {36, 150, 108},   // green
    {206, 84, 146},   // magenta
    {132, 104, 214},  // violet
    {214, 80, 74},    // red
    {38, 166, 190},   // teal
    {190, 152, 40},   // ochre
    {118, 138, 166},  // slate
    {148, 176, 60},   // olive
}};

std::string to_hex(const Rgb& color) {
  std::array<char, 8> text{};
  std::snprintf(text.data(), text.size(), "#%02x%02x%02x", static_cast<unsigned>(color.red) & 0xFF,
                static_cast<unsigned>(color.green) & 0xFF,
                static_cast<unsigned>(color.blue) & 0xFF);
  return text.data();
}

Rgb mix(const Rgb& color, const Rgb& other, double share) {
  const auto between = [&](double a, double b) { return a + (b - a) * share; };
  return {between(color.red, other.red), between(color.green, other.green),
          between(color.blue, other.blue)};
}

// Neighbouring nodes of one kind must not melt together; three shades are enough for that.
Rgb shade(const Rgb& color, std::size_t ordinal) {
  switch (ordinal % 3) {
    case 1:
      return mix(color, {255, 255, 255}, 0.26);
    case 2:
      return mix(color, {0, 0, 0}, 0.20);
    default:
      return color;
  }
}

// Past the palette: the golden ratio keeps the hues of successive indices far apart.
Rgb spread_color(std::size_t index) {
  if (index < kPalette.size()) return kPalette[index];
  const double hue = 6 * std::fmod(0.618033988749895 * static_cast<double>(index), 1.0);
  const auto channel = [&](double offset) {
    const double k = std::fmod(offset + 2 * hue, 12.0);
    return 255 * (0.56 - 0.26 * std::max(-1.0, std::min({k - 3, 9 - k, 1.0})));
  };
  return {channel(0), channel(8), channel(4)};
}

// Kinds in order of first position: the hue of a kind doesn't depend on how nodes were listed.
std::map<std::string, std::size_t> index_operators(const Trace& trace) {
  std::map<std::uint32_t, std::string> op_at;
  for (const TraceNode& node : trace.nodes) op_at.emplace(node.position, node.op);
  std::map<std::string, std::size_t> index;
  for (const auto& [position, op] : op_at) index.emplace(op, index.size());
  for (const TraceNode& node : trace.nodes) index.emplace(node.op, index.size());
  return index;
}

}  // namespace

NodeColors color_nodes(const Trace& trace) {
  std::map<std::uint32_t, std::string> op_at;
  for (const TraceNode& node : trace.nodes) op_at.emplace(node.position, node.op);
  std::map<std::string, std::size_t> seen;
  std::map<std::uint32_t, std::pair<std::size_t, std::size_t>> ordinals;  // (overall, within kind)
  for (const auto& [position, op] : op_at) {
    const std::size_t overall = ordinals.size();
    ordinals.emplace(position, std::make_pair(overall, seen[op]++));
  }

  const std::map<std::string, std::size_t> operators = index_operators(trace);
  NodeColors colors;
  colors.operators_are_clearer = ordinals.size() > kNumDistinctColors;
  for (const TraceNode& node : trace.nodes) {
    const auto [overall, within_kind] = ordinals.at(node.position);
    colors.by_node.push_back(to_hex(spread_color(overall)));
    colors.by_operator.push_back(to_hex(shade(spread_color(operators.at(node.op)), within_kind)));
  }
  return colors;
}

std::string color_of_operator(const Trace& trace, const std::string& op) {
  return to_hex(spread_color(index_operators(trace).at(op)));
}

}  // namespace tileweave
