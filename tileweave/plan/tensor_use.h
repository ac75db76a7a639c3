// What the nodes checked so far do with each tensor: the ledger that the contract check keeps.
//
// Plain data, grown node by node in order of (position, rank). Operands have stable addresses.
#pragma once

#include <cstdint>
#include <deque>
#include <vector>

#include "tileweave/plan/operand_tiles.h"

namespace tileweave {

struct UsedOperand {
  const NodeLabel* node = nullptr;
  LaunchArgs args;
  OperandTiles tiles;

  TensorId tensor() const { return tiles.spec().tensor; }
};

/// One data tile of a tensor in this run.
struct TileUse {
  std::int64_t arrivals = 0;
  const NodeLabel* last_signaller = nullptr;
  std::int32_t visit = 0;  // the last wait check that came by
  bool waited = false;
};

struct TensorUse {
  std::vector<const UsedOperand*> writes;
  std::vector<const UsedOperand*> reads;
  std::vector<TileUse> tiles;  // empty until a node synchronises on the tensor
  bool written_twice = false;  // volumes of writes no longer tell what they cover
};

struct RunUse {
  explicit RunUse(const TensorTable& table) : tensors(&table) {}

  const Tensor& tensor_of(const UsedOperand& operand) const { return (*tensors)[operand.tensor()]; }
  TensorUse& use_of(const UsedOperand& operand) {
    const auto id = static_cast<std::size_t>(operand.tensor());
    if (id >= uses.size()) uses.resize(id + 1);
    TensorUse& use = uses[id];
    if (operand.tiles.synchronises() && use.tiles.empty()) {
      use.tiles.resize(static_cast<std::size_t>(tensor_of(operand).tiles.count()));
    }
    return use;
  }

  const TensorTable* tensors;
  std::deque<NodeLabel> nodes;
  std::deque<UsedOperand> operands;
  std::vector<TensorUse> uses;
  std::int32_t visit = 0;
};

/// Elements that two operands touch both: the first common box, empty when there is none.
Box first_common_box(const UsedOperand& a, const UsedOperand& b);

}  // namespace tileweave
