// Colours of nodes on a timeline.
//
// Chosen once, here, for legend, bars and blocks alike; readable on light and dark backgrounds.
// The same position has the same colour on every rank, so ranks can be compared by eye. Pure.
#pragma once

#include <string>
#include <vector>

#include "tileweave/trace/trace.h"

namespace tileweave {

/// Up to this many positions every node has a colour that no other node has.
inline constexpr std::size_t kNumDistinctColors = 10;

struct NodeColors {
  std::vector<std::string> by_node;      // "#rrggbb" per Trace::nodes
  std::vector<std::string> by_operator;  // one hue per operator kind, shades within it
  bool operators_are_clearer = false;    // more positions than distinct colours
};

NodeColors color_nodes(const Trace& trace);

/// The colour that `color_nodes` derives the shades of an operator kind from.
std::string color_of_operator(const Trace& trace, const std::string& op);

}  // namespace tileweave
