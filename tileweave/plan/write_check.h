// Checks what a node writes against everything written, read and waited for before it.
#pragma once

#include <vector>

#include "tileweave/plan/contract_check.h"
#include "tileweave/plan/tensor_use.h"

namespace tileweave {

/// Enters a write operand into the ledger. Faults: a constant is written, an element is written
/// twice, an earlier or own position has waited for these arrivals or read these elements.
/// Overwrites are readers of state boxes that this operand writes.
void record_write(RunUse& run, const UsedOperand& write, std::vector<Fault>& faults,
                  std::vector<Overwrite>& overwrites);

}  // namespace tileweave
