// Buffer check: tensors that the user put into one buffer (`shares_buffer_with`) are not
// overwritten while somebody still needs them.
//
// Element by element: a work may write a box of the later tensor only when every access of the
// earlier tensor to those elements is ordered before it: by node (HappensBefore::ordered), by the
// tiles that this work waits for, or because the same work did it. Called by verify().
#pragma once

#include <vector>

#include "tileweave/plan/happens_before.h"
#include "tileweave/plan/plan.h"
#include "tileweave/plan/verdict.h"

namespace tileweave {

std::vector<Fault> check_shared_buffers(const Plan& plan, const HappensBefore& order);

}  // namespace tileweave
