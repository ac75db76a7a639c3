// run_command: the `tileweave` command as a function of its arguments and two streams.
//
// Called by main and by tests. Parses, runs one verb, and turns every failure into one sentence on
// `err`: exit status 1 when a verb fails, 2 when the arguments make no sense. With --json a verb
// writes exactly one JSON object to `out`, {"error": sentence} when it failed. Throws nothing.
#pragma once

#include <ostream>
#include <string>
#include <vector>

namespace tileweave::cli {

inline constexpr int kSuccess = 0;
inline constexpr int kFailure = 1;
inline constexpr int kUsageError = 2;

/// `arguments`: without the name of the command.
int run_command(const std::vector<std::string>& arguments, std::ostream& out, std::ostream& err);

}  // namespace tileweave::cli
