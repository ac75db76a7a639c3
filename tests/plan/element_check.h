// The contract, judged element by element: slow, obvious, and written apart from the contract check
// that it is compared with. For plans whose tilings agree (every raw map made for the tensor's own
// tiles, no signal through a view) and whose tensors have at most a few hundred elements.
#pragma once

#include <map>
#include <set>
#include <tuple>
#include <vector>

#include "tileweave/plan/contract_check.h"
#include "tileweave/plan/plan.h"

namespace tileweave::testing {

struct ElementReport {
  std::set<FaultKind> kinds;
  std::map<std::tuple<NodeId, NodeId, TensorId>, Via> edges;
  std::set<std::tuple<NodeId, NodeId, TensorId>> overwrites;
  std::vector<std::vector<std::int64_t>> arrivals;  // [tensor][data tile]
};

ElementReport check_elements(const Plan& plan);

/// For every kernel tile of an operand the tiles that its map leads to (of the view, if any), found
/// by walking over elements.
std::vector<std::vector<std::int64_t>> tiles_by_elements(const OperandSpec& operand,
                                                         const Tensor& tensor,
                                                         const LaunchArgs& args);

}  // namespace tileweave::testing
