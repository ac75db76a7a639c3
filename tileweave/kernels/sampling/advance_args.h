// AdvanceArgs: the arrays of a decode loop, all at device addresses, and one row's step.
//
// Host protocol: read *published (or *step where that is null) with acquire until it has moved from
// n to more, then row n % ring_length of `tokens` is that of step n, until ring_length more steps
// have been taken: the host must read before that. Counts go on modulo 2^32.
#pragma once

#include <cstdint>

#include "tileweave/core/target.h"

namespace tileweave {

struct AdvanceArgs {
  std::int64_t rows = 0;                     // S
  const std::int32_t* next = nullptr;        // (S) the tokens that the run has drawn
  std::int32_t* ids = nullptr;               // (S) inputs of the next step, as all below
  std::int32_t* positions = nullptr;         // (S)
  std::int32_t* past = nullptr;              // (S) tokens in the cache before the step's own
  std::int32_t* slots = nullptr;             // (S) pool row of this step's keys; -1: padding
  const std::int32_t* page_table = nullptr;  // (S, max_pages) row r is that of row r's sequence; it
                                             //   must hold the pages that the loop will reach
  std::int32_t max_pages = 0, page_size = 0;

  // For steps that end in a `sample` node, each or null.
  std::int32_t* draw_positions = nullptr;  // (S) its `position`: grows by one
  std::int32_t* history = nullptr;         // (S, max_history): gets the token, while it has room
  std::int32_t* history_length = nullptr;  // (S)
  std::int32_t max_history = 0;

  // May lie in memory shared with the host.
  std::int32_t* tokens = nullptr;      // (ring_length, S)
  std::uint32_t* step = nullptr;       // steps taken so far: read and written, so better on device
  std::uint32_t* published = nullptr;  // null: none; written last, for the host to poll
  std::int32_t ring_length = 0;
};

/// Throws Error for arrays that are missing or sizes that mean nothing.
void check_advance_args(const AdvanceArgs& args);

/// One row of step number `step`.
TW_HOST_DEVICE inline void advance_row(const AdvanceArgs& args, std::uint32_t step,
                                       std::int64_t row) {
  const std::int32_t slot = args.slots[row];
  const std::int32_t token = args.next[row];
  const std::int32_t position = args.positions[row] + 1;
  const std::int64_t ring_row = step % static_cast<std::uint32_t>(args.ring_length);
  args.tokens[ring_row * args.rows + row] = slot < 0 ? -1 : token;
  if (slot < 0) return;
  args.ids[row] = token;
  args.positions[row] = position;
  args.past[row] += 1;
  const std::int32_t page = position / args.page_size;
  std::int32_t pool_page = -1;
  if (page < args.max_pages) pool_page = args.page_table[row * args.max_pages + page];
  args.slots[row] = pool_page < 0 ? -1 : pool_page * args.page_size + position % args.page_size;
  if (args.draw_positions != nullptr) args.draw_positions[row] += 1;
  if (args.history != nullptr) {
    const std::int32_t length = args.history_length[row];
    if (length >= 0 && length < args.max_history) {
      args.history[row * args.max_history + length] = token;
      args.history_length[row] = length + 1;
    }
  }
}

}  // namespace tileweave
