// The `tileweave` command: everything but the process itself is in command_line.cpp.
#include <csignal>
#include <cstddef>
#include <iostream>
#include <string>
#include <vector>

#include "cli/command_line.h"
#include "cli/interrupt.h"

int main(int argc, char** argv) {
  tileweave::cli::exit_on_interrupt();
  // A file that grows beyond a limit is an error to report, not a reason to leave parts behind.
  std::signal(SIGXFSZ, SIG_IGN);
  std::vector<std::string> arguments;
  for (int i = 1; i < argc; ++i) arguments.emplace_back(argv[i]);
  return tileweave::cli::run_command(arguments, std::cout, std::cerr);
}
