// A trace as one HTML file that anyone can open: no server, no network, nothing beside it.
//
// Shows every block on its SM, coloured by node, the waiting part hatched; pointing at a block
// draws the tile dependencies into and out of it. Header and tables (makespan, SM time, exposed
// time) are plain HTML and can be read without the script. The page's content policy forbids every
// request. When it has finished drawing, the page sets data-rendered on its root element to the
// number of blocks; an error of the script sets data-error: that is how tests know. Throws Error as
// check_trace and write_file_atomically do.
#pragma once

#include <cstddef>
#include <string>

#include "tileweave/trace/trace.h"

namespace tileweave {

struct TimelineOptions {
  /// Arrows beyond this number are left out, and the page says how many.
  std::size_t max_arrows = 400'000;
};

std::string timeline_html(const Trace& trace, const TimelineOptions& options = {});

void write_timeline_html(const Trace& trace, const std::string& path,
                         const TimelineOptions& options = {});

}  // namespace tileweave
