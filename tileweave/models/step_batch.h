// StepBatch: the input arrays of one step, built on the host from what each sequence runs.
//
// Rows of a part follow one another in position order, parts in the order they were given; rows,
// sequences and outputs beyond the real ones are padding (id 0 at position 0, slot and sequence
// -1: written nowhere). The names are those of StepInputs. Pure function of its arguments.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "tileweave/models/kv_cache.h"
#include "tileweave/models/step_shape.h"

namespace tileweave {

/// Tokens of one sequence, whose rows in the cache have been claimed: the last ids.size() of them.
struct StepPart {
  KvCache::SequenceId sequence = -1;
  std::span<const std::int32_t> ids;
};

struct StepBatch {
  std::vector<std::int32_t> ids, positions, slots, sequence_of_row;  // (T)
  std::vector<std::int32_t> first_row, past;                         // (S)
  std::vector<std::int32_t> page_table;                              // (S, max_pages)
  std::vector<std::int32_t> output_rows;                             // (L): last row of each part
};

/// Throws Error for parts that do not fit the shape.
StepBatch step_batch(const StepShape& shape, const KvCache& cache, std::int64_t max_pages,
                     std::span<const StepPart> parts);

}  // namespace tileweave
