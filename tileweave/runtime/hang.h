// Hang: a wait that never ended, in words that name kernel, tile, tensor, counts and culprit.
//
// Made by Program and AsyncStream from the HangReport of an expired deadline, or from the Deadlock
// that an exploring device found, together with what the plan says about producers. Read only when
// the device has drained.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "tileweave/plan/plan.h"
#include "tileweave/runtime/launch_queue.h"
#include "tileweave/runtime/sync_state.h"

namespace tileweave {

struct Hang {
  std::string sentence;
  HangReport report{};
  std::string node;                  // name of the waiting node
  std::string tensor;                // empty for waits that are not on a tensor
  std::vector<std::string> missing;  // "kernel tile (2, 0) of node 3 `down` (7 of 8 blocks began)"
};

/// What an explanation is made from; nodes by id.
struct HangContext {
  const std::map<NodeId, const NodeSpec*>& nodes;
  const TensorTable& tensors;
  const std::map<TensorId, TensorSync>& tensor_syncs;
  const std::map<NodeId, NodeSync>& node_syncs;
  const SyncState& state;
};

Hang explain(const HangReport& report, const HangContext& context);
Hang explain(const Deadlock& deadlock, const HangContext& context);

}  // namespace tileweave
