#include "tileweave/plan/node.h"

#include "tileweave/core/error.h"

namespace tileweave {

std::int64_t blocks_of(const NodeSpec& node) {
  return node.num_blocks == 0 ? node.num_works : node.num_blocks;
}

TileSet kernel_tiles_of(const OperandSpec& operand, const Tensor& tensor) {
  if (!operand.kernel_tiles.empty()) return operand.kernel_tiles;
  return TileSet::plain({tensor.spec.shape, tensor.spec.shape});
}

std::vector<std::int64_t> kernel_tiles_of_work(const OperandSpec& operand, const Tensor& /*tensor*/,
                                               std::int64_t work) {
  if (operand.tiles_of_work) return operand.tiles_of_work(work);
  const bool only_one = operand.kernel_tiles.empty() || operand.kernel_tiles.count() == 1;
  return {only_one ? 0 : work};
}

TileMap map_of(const OperandSpec& operand, const Tensor& tensor, const LaunchArgs& args) {
  if (!tensor.tiled()) {
    throw Error("map to data tiles", "a tensor with data tiles", "`" + tensor.spec.name + "`");
  }
  const TileSet& led_to = operand.view.empty() ? tensor.tiles : operand.view;
  const TileMap map =
      operand.map ? *operand.map : TileMap::derive(kernel_tiles_of(operand, tensor), led_to);
  return operand.view.empty() ? map : compose_with_view(map, operand.view, tensor.tiles, args);
}

}  // namespace tileweave
