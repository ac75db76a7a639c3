// Contract check: what the tiles of nodes, taken in position order, say about each other.
//
// Every kernel tile of every operand is enumerated: arrivals equal targets, every element that is
// read was written by an earlier node and is covered by a waited tile or a completion, nothing is
// written twice, nothing waits for a later or its own position. verify() checks a whole plan with
// it; AsyncStream checks the window in flight, launch by launch. Faults come as sentences, never as
// exceptions; nodes must have passed check_node(). Tensors may be added to the table meanwhile.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "tileweave/plan/plan.h"
#include "tileweave/plan/verdict.h"

namespace tileweave {

/// What orders a reader after a writer.
enum class Via : std::uint8_t {
  kTiles,      // the reader's waits cover all it reads of the writer
  kCompletion  // they don't (no sync slot, or no data tiles): a full or programmatic edge must
};

/// `to` reads elements of `tensor` that the earlier node `from` wrote, or waits for its arrivals.
struct DataEdge {
  NodeId from = -1;
  NodeId to = -1;
  TensorId tensor = kNoTensor;
  Via via = Via::kTiles;
};

/// The later node `writer` writes elements of a state tensor that `reader` read before: the reader
/// must be ordered before the writer by other means than tiles.
struct Overwrite {
  NodeId reader = -1;
  NodeId writer = -1;
  TensorId tensor = kNoTensor;
};

/// Whether a wait that no node has satisfied yet is a fault at once, because the node will be
/// launched, or only when no more nodes come, because a later one says better what is wrong.
enum class Report : std::uint8_t { kAtOnce, kAtFinish };

class ContractChecker {
 public:
  explicit ContractChecker(const TensorTable& tensors, Report report = Report::kAtOnce);
  ~ContractChecker();
  ContractChecker(ContractChecker&&) noexcept;
  ContractChecker& operator=(ContractChecker&&) noexcept;

  /// Faults that show when `node` joins the nodes added before it, in order of (position, rank).
  std::vector<Fault> add(NodeId id, const NodeSpec& node);
  /// Faults that show only when no more nodes come; none with Report::kAtOnce.
  std::vector<Fault> finish();

  /// One per (from, to, tensor), in the order in which readers were added.
  const std::vector<DataEdge>& edges() const;
  const std::vector<Overwrite>& overwrites() const;
  /// Arrivals per data tile in one run, as the maps of the producers added so far make them: what
  /// derived consumers wait for and what the base grows by. Empty for a tensor without data tiles.
  std::vector<std::int64_t> arrivals(TensorId tensor) const;

 private:
  class Impl;
  std::unique_ptr<Impl> impl_;
};

struct ContractReport {
  std::vector<Fault> faults;
  std::vector<DataEdge> edges;
  std::vector<Overwrite> overwrites;
};

/// The check over all nodes of a plan.
ContractReport check_contract(const Plan& plan);

}  // namespace tileweave
