#include "tileweave/models/step_batch.h"

#include <algorithm>
#include <cstddef>
#include <string>

#include "tileweave/core/error.h"

namespace tileweave {

StepBatch step_batch(const StepShape& shape, const KvCache& cache, std::int64_t max_pages,
                     std::span<const StepPart> parts) {
  const auto rows = static_cast<std::size_t>(shape.rows);
  const auto sequences = static_cast<std::size_t>(shape.sequences);
  const auto pages_per_sequence = static_cast<std::size_t>(max_pages);
  StepBatch batch;
  batch.ids.reserve(rows);
  batch.first_row.assign(sequences, 0);
  batch.past.assign(sequences, 0);
  batch.page_table.assign(sequences * pages_per_sequence, 0);
  batch.output_rows.assign(static_cast<std::size_t>(shape.outputs), -1);
  require(parts.size() <= sequences, "build a step's inputs", "no more parts than sequences");
  for (std::size_t s = 0; s < parts.size(); ++s) {
    const StepPart& part = parts[s];
    const auto count = static_cast<std::int64_t>(part.ids.size());
    const std::int64_t past = cache.length(part.sequence) - count;
    const std::span<const std::int32_t> pages = cache.pages(part.sequence);
    require(count >= 1 && past >= 0, "build a step's inputs", "claimed tokens in every part",
            std::to_string(count) + " of " + std::to_string(past + count));
    require(batch.ids.size() + part.ids.size() <= rows && pages.size() <= pages_per_sequence,
            "build a step's inputs", "parts that fit the step's shape");
    batch.first_row[s] = static_cast<std::int32_t>(batch.ids.size());
    batch.past[s] = static_cast<std::int32_t>(past);
    std::copy(pages.begin(), pages.end(),
              batch.page_table.begin() + static_cast<std::ptrdiff_t>(s * pages_per_sequence));
    for (std::int64_t i = 0; i < count; ++i) {
      batch.ids.push_back(part.ids[static_cast<std::size_t>(i)]);
      batch.positions.push_back(static_cast<std::int32_t>(past + i));
      batch.slots.push_back(cache.row(part.sequence, past + i));
      batch.sequence_of_row.push_back(static_cast<std::int32_t>(s));
    }
    if (s < batch.output_rows.size()) {
      batch.output_rows[s] = static_cast<std::int32_t>(batch.ids.size() - 1);
    }
  }
  batch.ids.resize(rows, 0);
  batch.positions.resize(rows, 0);
  batch.slots.resize(rows, -1);
  batch.sequence_of_row.resize(rows, -1);
  return batch;
}

}  // namespace tileweave
