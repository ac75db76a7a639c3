// JSON to values and back, as Python's json module writes it.
#include <algorithm>
#include <cmath>
#include <cstdio>
#include <nlohmann/json.hpp>
#include <optional>

#include "tileweave/core/format.h"
#include "tileweave/models/chat/jinja_print.h"
#include "tileweave/models/chat/jinja_text.h"

namespace tileweave::jinja {
namespace {

using Lines = JsonLayout::Lines;

// Builds values as the parser meets them: no recursion, integers are kept exact.
class Reader {
 public:
  using number_integer_t = std::int64_t;
  using number_unsigned_t = std::uint64_t;
  using number_float_t = double;
  using string_t = std::string;
  using binary_t = nlohmann::json::binary_t;

  Reader(Budget& budget, const std::string& what) : budget_(budget), what_(what) {}

  Value take() { return std::move(result_); }

  bool null() { return add(Value::none()); }
  bool boolean(bool value) { return add(value); }
  bool number_integer(number_integer_t value) { return add(value); }
  bool number_unsigned(number_unsigned_t value) {
    if (value > static_cast<number_unsigned_t>(INT64_MAX)) refuse_integer(std::to_string(value));
    return add(static_cast<std::int64_t>(value));
  }
  bool number_float(number_float_t value, const string_t& text) {
    if (text.find_first_of(".eE") == string_t::npos) refuse_integer(text);
    return add(value);
  }
  bool string(string_t& value) {
    budget_.charge(value.size());
    return add(Value::text(std::move(value)));
  }
  bool binary(binary_t&) { return false; }
  bool start_object(std::size_t) { return open(true); }
  bool start_array(std::size_t) { return open(false); }
  bool key(string_t& value) {
    open_.back().key = Value::text(std::move(value));
    return true;
  }
  bool end_object() {
    Value value = open_.back().dict->finish();
    open_.pop_back();
    return add(std::move(value));
  }
  bool end_array() {
    Value value = make_sequence(budget_, SequenceKind::kList, std::move(open_.back().items));
    open_.pop_back();
    return add(std::move(value));
  }
  template <class Exception>
  bool parse_error(std::size_t position, const std::string& token, const Exception&) {
    fail(what_ + " is JSON", in_quotes(token) + " at byte " + std::to_string(position));
  }

 private:
  struct Open {
    std::optional<DictBuilder> dict;  // of an object
    Value key;
    Values items;  // of an array
  };

  bool open(bool is_object) {
    if (open_.size() >= static_cast<std::size_t>(kMaxNesting)) {
      fail(what_ + " nests at most " + std::to_string(kMaxNesting) + " deep");
    }
    open_.emplace_back();
    if (is_object) open_.back().dict.emplace(budget_);
    return true;
  }

  bool add(Value value) {
    budget_.charge(kStepCost);
    if (open_.empty()) {
      result_ = std::move(value);
    } else if (open_.back().dict) {
      open_.back().dict->set(open_.back().key, std::move(value));
    } else {
      budget_.charge(kItemCost);
      open_.back().items.push_back(std::move(value));
    }
    return true;
  }

  [[noreturn]] void refuse_integer(const std::string& text) const {
    fail(what_ + " holds integers of at most 64 bits", text);
  }

  Budget& budget_;
  const std::string& what_;
  std::vector<Open> open_;
  Value result_;
};

class Writer {
 public:
  Writer(Budget& budget, const JsonLayout& layout) : budget_(budget), layout_(layout) {}

  std::string take() { return std::move(out_); }

  void write(const Value& value, std::size_t level) {
    budget_.charge(kStepCost);
    if (value.is_none()) {
      out_ += "null";
    } else if (value.is<bool>()) {
      out_ += value.as<bool>() ? "true" : "false";
    } else if (value.is<std::int64_t>()) {
      out_ += std::to_string(value.as<std::int64_t>());
    } else if (value.is<double>()) {
      out_ += number(value.as<double>());
    } else if (value.is_text()) {
      write_text(value.view());
    } else if (value.is<std::shared_ptr<const Dict>>()) {
      write_dict(*value.as<std::shared_ptr<const Dict>>(), level);
    } else if (value.is<std::shared_ptr<Sequence>>() && is_array(value)) {
      write_array(value.as<std::shared_ptr<Sequence>>()->items, level);
    } else {
      require_defined(value);
      fail("a value that JSON can hold", "a " + type_name(value));
    }
  }

 private:
  static bool is_array(const Value& value) {
    const SequenceKind kind = value.as<std::shared_ptr<Sequence>>()->kind;
    return kind == SequenceKind::kList || kind == SequenceKind::kTuple;
  }

  static std::string number(double value) {
    if (std::isnan(value)) return "NaN";
    if (std::isinf(value)) return value < 0 ? "-Infinity" : "Infinity";
    return repr_of_float(value);
  }

  void write_text(std::string_view text) {
    budget_.charge(text.size() + 2);
    out_ += '"';
    for (std::size_t at = 0; at < text.size();) {
      const std::size_t start = at;
      const char32_t code = next_code_point(text, at);
      switch (code) {
        case '"':
          out_ += "\\\"";
          break;
        case '\\':
          out_ += "\\\\";
          break;
        case '\n':
          out_ += "\\n";
          break;
        case '\r':
          out_ += "\\r";
          break;
        case '\t':
          out_ += "\\t";
          break;
        case '\f':
          out_ += "\\f";
          break;
        case '\b':
          out_ += "\\b";
          break;
        default:
          if (code < 0x20 || (code > 0x7e && layout_.escape == JsonLayout::Escape::kNonAscii)) {
            write_escaped(code);
          } else {
            out_ += text.substr(start, at - start);
          }
      }
    }
    out_ += '"';
  }

  void write_escaped(char32_t code) {
    char units[16];
    if (code < 0x10000) {
      std::snprintf(units, sizeof units, "\\u%04x", static_cast<unsigned>(code));
    } else {
      const unsigned offset = static_cast<unsigned>(code) - 0x10000;
      std::snprintf(units, sizeof units, "\\u%04x\\u%04x", 0xd800 + (offset >> 10),
                    0xdc00 + (offset & 0x3ff));
    }
    out_ += units;
  }

  void write_key(const Value& key) {
    if (key.is_text()) {
      write_text(key.view());
    } else if (key.is_none() || key.is_number()) {
      out_ += '"';
      write(key, 0);
      out_ += '"';
    } else {
      fail("keys that JSON can hold", "a " + type_name(key));
    }
  }

  void write_dict(const Dict& dict, std::size_t level) {
    auto items = dict.items;
    budget_.charge(kItemCost * items.size());
    if (layout_.order == JsonLayout::Order::kSorted) {
      std::stable_sort(items.begin(), items.end(), [this](const auto& a, const auto& b) {
        return less(budget_, a.first, b.first);
      });
    }
    open('{', '}', items.size(), level, [&](std::size_t i) {
      write_key(items[i].first);
      out_ += layout_.key_separator;
      write(items[i].second, level + 1);
    });
  }

  void write_array(const Values& items, std::size_t level) {
    open('[', ']', items.size(), level, [&](std::size_t i) { write(items[i], level + 1); });
  }

  template <class WriteItem>
  void open(char begin, char end, std::size_t num_items, std::size_t level,
            const WriteItem& write_item) {
    out_ += begin;
    for (std::size_t i = 0; i < num_items; ++i) {
      if (i > 0) put(layout_.item_separator);
      if (layout_.lines == Lines::kMany) new_line(level + 1);
      write_item(i);
    }
    if (num_items > 0 && layout_.lines == Lines::kMany) new_line(level);
    out_ += end;
  }

  void put(const std::string& text) {
    budget_.charge(text.size());
    out_ += text;
  }

  void new_line(std::size_t level) {
    out_ += '\n';
    for (std::size_t i = 0; i < level; ++i) put(layout_.indent);
  }

  Budget& budget_;
  const JsonLayout& layout_;
  std::string out_;
};

}  // namespace

std::string to_json(Budget& budget, const Value& value, const JsonLayout& layout) {
  Writer writer(budget, layout);
  writer.write(value, 0);
  return writer.take();
}

Value from_json(Budget& budget, std::string_view text, const std::string& what) {
  Reader reader(budget, what);
  nlohmann::json::sax_parse(text.begin(), text.end(), &reader);
  return reader.take();
}

}  // namespace tileweave::jinja
