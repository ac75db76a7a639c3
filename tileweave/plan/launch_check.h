// Checks of one launch by itself: its counts, its tile order and its last-arriver counters.
//
// Called by ContractChecker for every node; append one fault per broken rule.
#pragma once

#include <vector>

#include "tileweave/plan/operand_tiles.h"

namespace tileweave {

/// Whether the works of a node are few enough to be enumerated.
enum class Countable : std::uint8_t { kNo, kYes };

/// Works and blocks fit 32-bit indices; every work is at exactly one position of the order.
Countable check_launch(const NodeLabel& label, const NodeSpec& node, std::vector<Fault>& faults);

/// A last arriver is known by its counter: one per kernel tile, which grows by the works that touch
/// the tile. Counters beyond those are the node's own (such as the queue of a claimed order).
void check_last_arrivers(const NodeLabel& label, const NodeSpec& node, const OperandTiles& written,
                         const Tensor& tensor, std::vector<Fault>& faults);

}  // namespace tileweave
