// How a verb writes its result: a table for people or one JSON object for programs.
#pragma once

#include <cstdint>
#include <nlohmann/json.hpp>
#include <ostream>
#include <stdexcept>
#include <string>

namespace tileweave::cli {

enum class OutputForm : std::uint8_t { kTable, kJson };

/// Keeps members in the order in which they were added.
using Json = nlohmann::ordered_json;

/// Flushes standard output; a full disk shows only here.
inline void flush_output(std::ostream& out) {
  if (!out.flush()) throw std::runtime_error("standard output cannot be written");
}

/// One object and a line break. Bytes that are not UTF-8 (a file name, say) become U+FFFD.
inline std::string to_text(const Json& json) {
  return json.dump(2, ' ', /*ensure_ascii=*/false, Json::error_handler_t::replace) + "\n";
}

}  // namespace tileweave::cli
