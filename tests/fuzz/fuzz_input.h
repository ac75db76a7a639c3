// What the fuzz programs share. A program defines LLVMFuzzerTestOneInput; whatever leaves it other
// than by returning (an exception that is not an Error, a sanitizer's report, a trap) is a finding.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>

#include "tileweave/core/error.h"

namespace tileweave::fuzz {

inline std::string_view text_of(const std::uint8_t* data, std::size_t size) {
  return {reinterpret_cast<const char*>(data), size};
}

/// An invariant of what was accepted; breaking it is a finding.
inline void demand(bool holds) {
  if (!holds) __builtin_trap();
}

/// Runs `action`, which may refuse the input with an Error, but with a printable one.
template <class Action>
void may_refuse(const Action& action) {
  try {
    action();
  } catch (const Error& error) {
    const std::string_view sentence = error.what();
    demand(!sentence.empty() && sentence.size() < 20'000);
    for (const char c : sentence) demand(static_cast<unsigned char>(c) >= 0x20 && c != 0x7f);
  }
}

}  // namespace tileweave::fuzz
