// Writes JSON into a string, front to back, without a tree in between.
//
// Used by the exporters of this folder. The caller opens and closes objects and arrays in order and
// names every member of an object with `key`; commas and quoting are done here. Not thread-safe.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "tileweave/trace/escape.h"

namespace tileweave {

class JsonWriter {
 public:
  JsonWriter& begin_object() { return open('{'); }
  JsonWriter& end_object() { return close('}'); }
  JsonWriter& begin_array() { return open('['); }
  JsonWriter& end_array() { return close(']'); }

  JsonWriter& key(std::string_view name) {
    separate();
    out_ += json_quote(name);
    out_ += ':';
    after_key_ = true;
    return *this;
  }

  JsonWriter& string(std::string_view value) { return raw(json_quote(value)); }
  JsonWriter& integer(std::int64_t value) { return raw(std::to_string(value)); }
  JsonWriter& unsigned_integer(std::uint64_t value) { return raw(std::to_string(value)); }

  /// A number whose digits the caller made, e.g. exact decimals.
  JsonWriter& raw(std::string_view digits) {
    separate();
    out_ += digits;
    return *this;
  }

  /// A line break where the next comma or value goes: keeps large files readable by line tools.
  JsonWriter& line() {
    line_pending_ = true;
    return *this;
  }

  std::string take() { return std::move(out_); }

 private:
  JsonWriter& open(char bracket) {
    separate();
    out_ += bracket;
    is_empty_.push_back(1);
    return *this;
  }

  JsonWriter& close(char bracket) {
    is_empty_.pop_back();
    out_ += bracket;
    return *this;
  }

  void separate() {
    if (after_key_) {
      after_key_ = false;
      return;
    }
    if (!is_empty_.empty()) {
      if (is_empty_.back() == 0) out_ += ',';
      is_empty_.back() = 0;
    }
    if (line_pending_) out_ += '\n';
    line_pending_ = false;
  }

  std::string out_;
  std::vector<char> is_empty_;  // one per open object or array
  bool after_key_ = false;
  bool line_pending_ = false;
};

}  // namespace tileweave
