// The library's one exception type: what was attempted, what was expected, what was there.
//
// Called by every host-side layer. `what()` is one sentence that names the thing. Library code
// throws, it never prints and never exits; the command line turns an Error into a sentence on
// standard error and a non-zero exit status.
#pragma once

#include <stdexcept>
#include <string>
#include <utility>

namespace tileweave {

class Error : public std::runtime_error {
 public:
  /// `operation`: what was attempted ("verify plan"); `expected`: what must hold; `got`: what was
  /// found instead (may be empty when `expected` already says it).
  Error(std::string operation, std::string expected, std::string got = {})
      : std::runtime_error(operation + ": " + expected + (got.empty() ? "" : ", got " + got)),
        operation_(std::move(operation)),
        expected_(std::move(expected)),
        got_(std::move(got)) {}

  const std::string& operation() const noexcept { return operation_; }
  const std::string& expected() const noexcept { return expected_; }
  const std::string& got() const noexcept { return got_; }

 private:
  std::string operation_;
  std::string expected_;
  std::string got_;
};

/// Throws Error(operation, expected, got) unless `holds`.
inline void require(bool holds, const char* operation, const char* expected,
                    const std::string& got = {}) {
  if (!holds) throw Error(operation, expected, got);
}

}  // namespace tileweave
