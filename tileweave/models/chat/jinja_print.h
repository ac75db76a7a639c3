// How values are written: Python's str() and repr(), its two ways to format, and JSON.
//
// Everything written is charged to the budget. Faults on values that have no text: generators,
// namespaces, loops and functions print addresses in Python.
#pragma once

#include <span>
#include <string>
#include <string_view>

#include "tileweave/models/chat/jinja_value.h"

namespace tileweave::jinja {

std::string to_text(Budget& budget, const Value& value);  // str(value); undefined is empty
std::string repr(Budget& budget, const Value& value);
std::string repr_of_float(double number);

/// `format % arguments` for the conversions s, r, d, i, f and %, with flags, width and precision.
std::string format_percent(Budget& budget, std::string_view format, const Value& arguments);

/// `format.format(...)` for {}, {0}, {name} and {{ }}.
std::string format_braces(Budget& budget, std::string_view format,
                          std::span<const Value> positional,
                          std::span<const std::pair<std::string, Value>> named);

struct JsonLayout {
  std::string item_separator = ", ";
  std::string key_separator = ": ";
  std::string indent;  // what one level is indented by
  enum class Lines { kOne, kMany } lines = Lines::kOne;
  enum class Escape { kNeeded, kNonAscii } escape = Escape::kNeeded;
  enum class Order { kAsIs, kSorted } order = Order::kAsIs;
};

/// json.dumps(value) of Python.
std::string to_json(Budget& budget, const Value& value, const JsonLayout& layout);

/// json.loads(text). Faults name `what`, the text that is parsed.
Value from_json(Budget& budget, std::string_view text, const std::string& what);

}  // namespace tileweave::jinja
