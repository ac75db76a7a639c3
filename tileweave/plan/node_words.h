// Words for nodes, tiles and counts in fault sentences: each is spelt once, here.
#pragma once

#include <cstdint>
#include <limits>
#include <string>

#include "tileweave/plan/node.h"
#include "tileweave/plan/plan.h"

namespace tileweave {

/// Largest index or count that kernels hold: they count in signed 32-bit words.
inline constexpr std::int64_t kMaxIndex = std::numeric_limits<std::int32_t>::max();

/// What sentences say about a node after it was checked.
struct NodeLabel {
  NodeId id = -1;
  std::string name;
  std::int32_t position = 0;
  std::int32_t rank = 0;

  /// "node 1 `Z = YV`".
  std::string text() const;
  /// "node 1 `Z = YV` at position 1", with "of rank 2" for ranks other than 0.
  std::string at() const;
};

NodeLabel label_of(NodeId id, const NodeSpec& node);

/// "`Y`".
std::string quoted(const Tensor& tensor);
/// "tile (0, 1) of `Y`".
std::string tile_text(const Tensor& tensor, std::int64_t data_tile);
/// "1 arrival", "3 arrivals".
std::string counted(std::int64_t count, const char* thing);
/// "" for no more, else ", and so do 3 more <thing>s".
std::string and_more(std::int64_t count, const char* thing);

}  // namespace tileweave
