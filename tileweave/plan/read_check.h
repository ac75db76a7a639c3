// Checks that every element a node reads was written before it and is covered by what it waits for.
//
// An element is covered by a waited data tile when it lies in that tile and its writer arrives on
// it. Elements from writers or to readers without semaphores need a completion instead, which the
// data edge says.
#pragma once

#include <cstdint>
#include <vector>

#include "tileweave/plan/contract_check.h"
#include "tileweave/plan/tensor_use.h"

namespace tileweave {

/// Touched kernel tiles with elements that no earlier node has written.
struct OpenReads {
  const UsedOperand* read = nullptr;
  std::vector<std::int64_t> places;
};

/// Enters a read operand into the ledger, after the node's own writes. Unwritten elements are
/// returned open: a later writer says better what is wrong with them.
OpenReads record_read(RunUse& run, const UsedOperand& read, std::vector<Fault>& faults,
                      std::vector<DataEdge>& edges);

/// Reports elements that no earlier node has written, unless the read waits for a later node, which
/// `faults` of that node's writes have told.
void close_reads(RunUse& run, const OpenReads& open, std::vector<Fault>& faults);

/// A read in the prologue of what the run writes.
void check_stable(const Tensor& tensor, const UsedOperand& read, const UsedOperand& write,
                  std::vector<Fault>& faults);

/// A read of what another node of the same position writes: nothing can order them.
Fault same_position_fault(const Tensor& tensor, const UsedOperand& read, const UsedOperand& write,
                          const Box& common);

}  // namespace tileweave
