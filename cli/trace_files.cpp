#include "cli/trace_files.h"

#include <fmt/format.h>

#include <filesystem>
#include <system_error>

#include "cli/interrupt.h"
#include "tileweave/core/atomic_file.h"
#include "tileweave/core/error.h"
#include "tileweave/trace/perfetto.h"
#include "tileweave/trace/timeline_html.h"

namespace tileweave::cli {

void require_writable(const std::string& path) {
  const UninterruptedSection section;
  const AtomicFile probe(path);
}

void check_trace_paths(const std::string& timeline, const std::string& trace) {
  for (const std::string& path : {timeline, trace}) {
    if (path.empty()) continue;
    std::error_code code;
    require(!std::filesystem::is_directory(path, code), "write a trace", "a file to write",
            "the folder " + path);
    const std::filesystem::path folder = std::filesystem::path(path).parent_path();
    if (!folder.empty()) std::filesystem::create_directories(folder, code);
    if (code) throw Error("write a trace", "a folder to write to", path + ": " + code.message());
    require_writable(path);
  }
  if (timeline.empty() || trace.empty()) return;
  std::error_code ignored;
  require(std::filesystem::weakly_canonical(timeline, ignored) !=
              std::filesystem::weakly_canonical(trace, ignored),
          "write a trace", "two files", "--timeline and --trace of one path, " + timeline);
}

void write_step_trace(Trace trace, const std::string& title, const std::string& timeline_path,
                      const std::string& trace_path, std::ostream& err) {
  trace.title = title;
  const UninterruptedSection section;
  if (!timeline_path.empty()) {
    write_timeline_html(trace, timeline_path);
    err << fmt::format("timeline written to {}\n", timeline_path);
  }
  if (!trace_path.empty()) {
    write_perfetto(trace, trace_path);
    err << fmt::format("trace written to {}\n", trace_path);
  }
}

}  // namespace tileweave::cli
