// `tileweave bench decode` on a GPU: arms `serial` (one kernel after the other), `pdl` (every edge
// programmatic), `overlap` (what the plan says) and on request `tile` (every edge a tile edge).
//
// Arms share weights, cache and kernels; they take turns, each timed on the GPU over a run of
// steps from the same context on. All must choose the same tokens from the same logits, to the bit.
// The cache is filled with random numbers: a step's time does not depend on them.
#pragma once

#include <ostream>

#include "cli/bench_decode.h"
#include "cli/open_model.h"

namespace tileweave::cli {

int bench_decode_gpu(const BenchDecodeOptions& options, const ModelDescription& description,
                     std::ostream& out, std::ostream& err);

}  // namespace tileweave::cli
