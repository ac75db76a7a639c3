#include "tileweave/kernels/sampling/advance.h"

#include <limits>
#include <string>

#include "tileweave/core/error.h"

namespace tileweave {

void check_advance_args(const AdvanceArgs& args) {
  const auto need = [](bool holds, const char* expected, const std::string& got) {
    require(holds, "make an advance", expected, got);
  };
  const bool complete = args.next != nullptr && args.ids != nullptr && args.positions != nullptr &&
                        args.past != nullptr && args.slots != nullptr &&
                        args.page_table != nullptr && args.tokens != nullptr &&
                        args.step != nullptr;
  need(complete, "next, ids, positions, past, slots, page_table, tokens and step",
       "a null among them");
  need((args.history == nullptr) == (args.history_length == nullptr),
       "history and history_length, or neither", "one of them");
  need(args.rows >= 1, "at least one row", std::to_string(args.rows));
  need(args.ring_length >= 1, "room for at least one step in the ring",
       std::to_string(args.ring_length));
  need(args.page_size >= 1 && args.max_pages >= 1 &&
           std::int64_t{args.page_size} * args.max_pages < std::numeric_limits<std::int32_t>::max(),
       "pages of at least one token and fewer than 2^31 - 1 tokens per row",
       std::to_string(args.max_pages) + " pages of " + std::to_string(args.page_size));
  need(args.history == nullptr || args.max_history >= 1, "room for at least one token of history",
       std::to_string(args.max_history));
}

}  // namespace tileweave
