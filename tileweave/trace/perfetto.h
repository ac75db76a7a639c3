// A trace as Chrome trace-event JSON, which ui.perfetto.dev and chrome://tracing open.
//
// One process per rank, one thread per lane of an SM (layout_lanes). A block is a slice; inside it
// lie "prologue", "wait" and "compute". A tile dependency is a flow from the producer's signal to
// the moment the consumer's wait was satisfied. Times count from the run start, exactly: one ns is
// shown as one ns, one unit of a virtual clock as one microsecond; the run start itself is in the
// metadata. Modelled clocks and lost records are named in every process name.
// Throws Error as check_trace and write_file_atomically do.
#pragma once

#include <cstddef>
#include <string>

#include "tileweave/trace/trace.h"

namespace tileweave {

struct PerfettoOptions {
  /// Arrows beyond this number are left out; metadata and process names say how many.
  std::size_t max_arrows = 200'000;
};

std::string perfetto_json(const Trace& trace, const PerfettoOptions& options = {});

void write_perfetto(const Trace& trace, const std::string& path,
                    const PerfettoOptions& options = {});

}  // namespace tileweave
