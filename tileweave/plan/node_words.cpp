#include "tileweave/plan/node_words.h"

#include "tileweave/core/format.h"

namespace tileweave {

std::string NodeLabel::text() const {
  return "node " + std::to_string(id) + " `" + name + "`";
}

std::string NodeLabel::at() const {
  return text() + " at position " + std::to_string(position) +
         (rank == 0 ? "" : " of rank " + std::to_string(rank));
}

NodeLabel label_of(NodeId id, const NodeSpec& node) {
  return {id, node.name, node.position, node.rank};
}

std::string quoted(const Tensor& tensor) {
  return "`" + tensor.spec.name + "`";
}

std::string tile_text(const Tensor& tensor, std::int64_t data_tile) {
  return "tile " + to_string(tensor.tiles.coord(data_tile)) + " of " + quoted(tensor);
}

std::string counted(std::int64_t count, const char* thing) {
  return std::to_string(count) + " " + thing + (count == 1 ? "" : "s");
}

std::string and_more(std::int64_t count, const char* thing) {
  return count <= 0 ? ""
                    : " (and so for " + std::to_string(count) + " more " + thing +
                          (count == 1 ? ")" : "s)");
}

}  // namespace tileweave
