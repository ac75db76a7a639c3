// What every example takes on its command line, and how it ends: status 0, or one sentence on
// standard error and status 1.
#pragma once

#include <unistd.h>
#include <csignal>

#include <charconv>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <system_error>

#include "tileweave/core/error.h"
#include "tileweave/runtime/device.h"
#include "tileweave/runtime/run_options.h"

namespace examples {

struct CommandLine {
  std::string device = "cpu";                            // --device cpu|cuda
  tileweave::Mode mode = tileweave::Mode::kOverlap;      // --mode serial|overlap
  tileweave::Submit submit = tileweave::Submit::kGraph;  // --submit eager|graph
  std::uint64_t seed = 1;                                // --seed N: of the input values
  std::string timeline;                                  // --timeline FILE.html
  std::string trace;                                     // --trace FILE.json (Perfetto)

  bool on_gpu() const { return device == "cuda"; }
};

inline const char* name_of(tileweave::Mode mode) {
  return mode == tileweave::Mode::kSerial ? "serial" : "overlap";
}

/// Whether an example can write --timeline and --trace.
enum class Traces { kNone, kWritten };

inline CommandLine parse_command_line(int argc, char** argv, Traces traces) {
  CommandLine line;
  const bool writes = traces == Traces::kWritten;
  const auto choose = [](const std::string& option, const std::string& value,
                         std::string_view first, std::string_view second) {
    if (value != first && value != second) {
      throw tileweave::Error(option, std::string(first) + " or " + std::string(second),
                             "\"" + value + "\"");
    }
    return value == second;
  };
  for (int i = 1; i < argc; i += 2) {
    const std::string option = argv[i];
    const bool has_value = i + 1 < argc;
    if (!has_value && option != "--help") throw tileweave::Error(option, "a value after it");
    const std::string value = has_value ? argv[i + 1] : "";
    if (option == "--device") {
      choose(option, value, "cpu", "cuda");
      line.device = value;
    } else if (option == "--mode") {
      line.mode = choose(option, value, "serial", "overlap") ? tileweave::Mode::kOverlap
                                                             : tileweave::Mode::kSerial;
    } else if (option == "--submit") {
      line.submit = choose(option, value, "eager", "graph") ? tileweave::Submit::kGraph
                                                            : tileweave::Submit::kEager;
    } else if (option == "--seed") {
      const char* end = value.data() + value.size();
      const auto [stop, error] = std::from_chars(value.data(), end, line.seed);
      if (error != std::errc{} || stop != end) {
        throw tileweave::Error(option, "a whole number", "\"" + value + "\"");
      }
    } else if (option == "--timeline" && writes) {
      line.timeline = value;
    } else if (option == "--trace" && writes) {
      line.trace = value;
    } else {
      throw tileweave::Error("read the command line",
                             std::string("--device, --mode, --submit") +
                                 (writes ? ", --seed, --timeline or --trace" : " or --seed") +
                                 ", each with a value",
                             "\"" + option + "\"");
    }
  }
  return line;
}

/// The device that the command line asks for.
inline std::unique_ptr<tileweave::Device> open(const CommandLine& line) {
  return line.on_gpu() ? tileweave::open_cuda_device() : tileweave::open_cpu_device();
}

/// main() of every example.
inline int run_example(int argc, char** argv, const std::function<void(const CommandLine&)>& run,
                       Traces traces = Traces::kNone) {
  std::signal(SIGINT, [](int) {
    constexpr std::string_view kSentence = "interrupted\n";
    if (write(STDERR_FILENO, kSentence.data(), kSentence.size()) < 0) _exit(130);
    _exit(130);
  });
  try {
    run(parse_command_line(argc, argv, traces));
    return EXIT_SUCCESS;
  } catch (const std::exception& error) {
    std::fprintf(stderr, "%s\n", error.what());
    return EXIT_FAILURE;
  }
}

}  // namespace examples
