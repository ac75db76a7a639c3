// VerbHost: what a file that defines verbs needs of the command line.
#pragma once

#include <CLI/CLI.hpp>
#include <functional>
#include <ostream>
#include <stdexcept>
#include <string>

#include "cli/output_form.h"

namespace tileweave::cli {

/// Arguments that make no sense; `verb` is what the user should ask for help about.
class UsageError : public std::runtime_error {
 public:
  UsageError(const std::string& sentence, std::string verb)
      : std::runtime_error(sentence), verb_(std::move(verb)) {}
  const std::string& verb() const { return verb_; }

 private:
  std::string verb_;
};

class VerbHost {
 public:
  virtual ~VerbHost() = default;
  virtual CLI::App& app() = 0;
  /// Last step of defining a verb; `run` returns the exit status and throws what fails.
  virtual void prepare(CLI::App* verb, std::function<int()> run) = 0;
  /// Gives the verb --json; form() then says whether it was there.
  virtual void add_json(CLI::App* verb) = 0;
  virtual OutputForm form() const = 0;
  virtual std::ostream& out() = 0;
  virtual std::ostream& err() = 0;
};

}  // namespace tileweave::cli
