// The timeline page and the trace file of a step, where the user asked for them.
#pragma once

#include <ostream>
#include <string>

#include "tileweave/trace/trace.h"

namespace tileweave::cli {

/// Throws Error where no file can be written at `path`, before any work is done for it.
void require_writable(const std::string& path);

/// Makes missing folders; throws Error where a file could not be written later, and for one path
/// twice. Empty paths are not asked for.
void check_trace_paths(const std::string& timeline, const std::string& trace);

/// Writes those asked for, whole or not at all, and names them on `err`.
void write_step_trace(Trace trace, const std::string& title, const std::string& timeline_path,
                      const std::string& trace_path, std::ostream& err);

}  // namespace tileweave::cli
