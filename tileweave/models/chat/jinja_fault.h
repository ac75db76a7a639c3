// What stops a template: Fault, thrown below the renderer and turned by it into a tileweave::Error
// that names the template and the line; and Budget, the bound on a rendering's work.
#pragma once

#include <cstdint>
#include <string>
#include <utility>

namespace tileweave::jinja {

/// `expected` is what must hold, `got` what was there instead (may be empty).
struct Fault {
  std::string expected;
  std::string got;
};

[[noreturn]] inline void fail(std::string expected, std::string got = {}) {
  throw Fault{std::move(expected), std::move(got)};
}

/// Every allocation and every step of a rendering is charged here before it happens, so that memory
/// and time are bounded whatever the template does.
class Budget {
 public:
  explicit Budget(std::uint64_t units) : left_(units) {}
  void charge(std::uint64_t units) {
    if (units > left_) fail("a template that ends within its budget of work");
    left_ -= units;
  }

 private:
  std::uint64_t left_;
};

inline constexpr std::uint64_t kStepCost = 16;     // one node visited
inline constexpr std::uint64_t kItemCost = 64;     // one element of a list or dict
inline constexpr std::uint64_t kObjectCost = 512;  // one namespace, loop or scope that is kept
inline constexpr int kMaxNesting = 100;            // of lists, dicts and JSON

}  // namespace tileweave::jinja
