// Advance in plain loops over host arrays: oracle of every other form, and its documentation.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

namespace tileweave {

/// What a decode loop keeps per row (S); names as in AdvanceArgs.
struct DecodeState {
  std::vector<std::int32_t> ids, positions, past, slots, draw_positions;
  std::vector<std::vector<std::int32_t>> history;  // at most max_history tokens each
  std::vector<std::vector<std::int32_t>> tokens;   // one row per step taken

  friend bool operator==(const DecodeState&, const DecodeState&) = default;
};

struct DecodePages {
  std::span<const std::int32_t> page_table;  // (S, max_pages)
  std::int64_t max_pages, page_size, max_history;
};

/// The state after a step that has drawn `next`.
void advance_reference(DecodeState& state, const DecodePages& pages,
                       std::span<const std::int32_t> next);

}  // namespace tileweave
