#include "tileweave/kernels/sampling/advance_ref.h"

#include <cstddef>

namespace tileweave {

void advance_reference(DecodeState& state, const DecodePages& pages,
                       std::span<const std::int32_t> next) {
  std::vector<std::int32_t> said;
  for (std::size_t r = 0; r < next.size(); ++r) {
    if (state.slots[r] == -1) {  // padding
      said.push_back(-1);
      continue;
    }
    said.push_back(next[r]);
    state.ids[r] = next[r];
    ++state.past[r];
    ++state.draw_positions[r];
    const std::int64_t position = ++state.positions[r];
    state.slots[r] = -1;
    if (position < pages.max_pages * pages.page_size) {
      const std::int64_t of_row = static_cast<std::int64_t>(r) * pages.max_pages;
      const std::int64_t page =
          pages.page_table[static_cast<std::size_t>(of_row + position / pages.page_size)];
      if (page >= 0) {
        state.slots[r] =
            static_cast<std::int32_t>(page * pages.page_size + position % pages.page_size);
      }
    }
    if (std::ssize(state.history[r]) < pages.max_history) state.history[r].push_back(next[r]);
  }
  state.tokens.push_back(said);
}

}  // namespace tileweave
