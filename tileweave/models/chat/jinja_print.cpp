#include "tileweave/models/chat/jinja_print.h"

#include <charconv>
#include <cmath>
#include <cstdio>

#include "tileweave/models/chat/jinja_text.h"

namespace tileweave::jinja {
namespace {

void put(Budget& budget, std::string& out, std::string_view text) {
  budget.charge(text.size());
  out += text;
}

void put_hex(std::string& out, const char* format, char32_t code) {
  char digits[16];
  std::snprintf(digits, sizeof digits, format, static_cast<unsigned>(code));
  out += digits;
}

void put_repr_of_text(Budget& budget, std::string& out, std::string_view text) {
  budget.charge(text.size() + 2);
  const bool has_single = text.find('\'') != kNowhere;
  const char quote = has_single && text.find('"') == kNowhere ? '"' : '\'';
  out += quote;
  for (std::size_t at = 0; at < text.size();) {
    const std::size_t start = at;
    const char32_t code = next_code_point(text, at);
    if (code == static_cast<char32_t>(quote) || code == '\\') {
      out += '\\';
      out += static_cast<char>(code);
    } else if (code == '\n') {
      out += "\\n";
    } else if (code == '\r') {
      out += "\\r";
    } else if (code == '\t') {
      out += "\\t";
    } else if (is_printable(code)) {
      out += text.substr(start, at - start);
    } else {
      put_hex(out, code < 0x100 ? "\\x%02x" : code < 0x10000 ? "\\u%04x" : "\\U%08x", code);
    }
  }
  out += quote;
}

void put_repr(Budget& budget, std::string& out, const Value& value);

void put_items(Budget& budget, std::string& out, const Values& items) {
  for (std::size_t i = 0; i < items.size(); ++i) {
    if (i > 0) out += ", ";
    put_repr(budget, out, items[i]);
  }
}

void put_sequence(Budget& budget, std::string& out, const Sequence& sequence) {
  switch (sequence.kind) {
    case SequenceKind::kList:
      out += '[';
      put_items(budget, out, sequence.items);
      out += ']';
      return;
    case SequenceKind::kTuple:
      out += '(';
      put_items(budget, out, sequence.items);
      out += sequence.items.size() == 1 ? ",)" : ")";
      return;
    case SequenceKind::kRange:
      if (sequence.printed.empty()) fail("a value with a text", "a slice of a range");
      out += sequence.printed;
      return;
    case SequenceKind::kView:
      out += sequence.printed + "([";
      put_items(budget, out, sequence.items);
      out += "])";
      return;
    case SequenceKind::kGenerator:
      break;
  }
  fail("a value with a text (lazy filters need `| list`)", "a generator");
}

void put_dict(Budget& budget, std::string& out, const Dict& dict) {
  out += '{';
  bool is_first = true;
  for (const auto& [key, value] : dict.items) {
    if (!is_first) out += ", ";
    is_first = false;
    put_repr(budget, out, key);
    out += ": ";
    put_repr(budget, out, value);
  }
  out += '}';
}

void put_repr(Budget& budget, std::string& out, const Value& value) {
  budget.charge(kStepCost);
  if (value.is_undefined()) {
    out += "Undefined";
  } else if (value.is_none()) {
    out += "None";
  } else if (value.is<bool>()) {
    out += value.as<bool>() ? "True" : "False";
  } else if (value.is<std::int64_t>()) {
    out += std::to_string(value.as<std::int64_t>());
  } else if (value.is<double>()) {
    out += repr_of_float(value.as<double>());
  } else if (value.is_text()) {
    if (value.is_safe()) out += "Markup(";
    put_repr_of_text(budget, out, value.view());
    if (value.is_safe()) out += ')';
  } else if (value.is<std::shared_ptr<Sequence>>()) {
    put_sequence(budget, out, *value.as<std::shared_ptr<Sequence>>());
  } else if (value.is<std::shared_ptr<const Dict>>()) {
    put_dict(budget, out, *value.as<std::shared_ptr<const Dict>>());
  } else {
    fail("a value with a text", "a " + type_name(value));
  }
}

// One conversion of a format: %-08.3f.
struct Conversion {
  bool is_left = false;
  bool is_zero_padded = false;
  bool has_plus = false;
  std::size_t width = 0;
  std::optional<std::size_t> precision;
};

constexpr std::size_t kMaxWidth = 1000;

std::size_t read_width(std::string_view format, std::size_t& at) {
  std::size_t width = 0;
  while (at < format.size() && format[at] >= '0' && format[at] <= '9') {
    width = width * 10 + static_cast<std::size_t>(format[at++] - '0');
    if (width > kMaxWidth) fail("widths of a format of at most 1000");
  }
  return width;
}

Conversion read_conversion(std::string_view format, std::size_t& at) {
  Conversion conversion;
  for (; at < format.size(); ++at) {
    if (format[at] == '-') {
      conversion.is_left = true;
    } else if (format[at] == '0') {
      conversion.is_zero_padded = true;
    } else if (format[at] == '+') {
      conversion.has_plus = true;
    } else {
      break;
    }
  }
  conversion.width = read_width(format, at);
  if (at < format.size() && format[at] == '.') {
    ++at;
    conversion.precision = read_width(format, at);
  }
  return conversion;
}

std::string padded(std::string text, const Conversion& conversion, bool is_number) {
  const std::size_t length = count_code_points(text);
  if (length >= conversion.width) return text;
  const std::size_t missing = conversion.width - length;
  if (conversion.is_left) return text + std::string(missing, ' ');
  if (conversion.is_zero_padded && is_number) {
    const std::size_t sign = !text.empty() && (text[0] == '-' || text[0] == '+') ? 1 : 0;
    return text.insert(sign, missing, '0');
  }
  return std::string(missing, ' ') + text;
}

std::string first_code_points(const std::string& text, std::size_t count) {
  std::size_t at = 0;
  for (std::size_t i = 0; i < count && at < text.size(); ++i) next_code_point(text, at);
  return text.substr(0, at);
}

std::string fixed(double number, std::size_t precision) {
  if (!std::isfinite(number)) return repr_of_float(number);
  std::string text(400 + precision, '\0');
  const int used =
      std::snprintf(text.data(), text.size(), "%.*f", static_cast<int>(precision), number);
  text.resize(static_cast<std::size_t>(used));
  return text;
}

std::string converted(Budget& budget, char letter, const Conversion& conversion,
                      const Value& value) {
  if (letter == 's' || letter == 'r') {
    std::string text = letter == 's' ? to_text(budget, value) : repr(budget, value);
    if (conversion.precision) text = first_code_points(text, *conversion.precision);
    return padded(std::move(text), conversion, false);
  }
  if (letter != 'd' && letter != 'i' && letter != 'f') {
    fail("a format of the conversions %s, %r, %d, %i, %f and %%", std::string("'%") + letter + "'");
  }
  require_defined(value);
  if (!value.is_number()) fail("a number for the format's %" + std::string(1, letter));
  std::string text;
  if (letter == 'f') {
    text = fixed(value.number(), conversion.precision.value_or(6));
  } else if (value.is_integer()) {
    text = std::to_string(value.integer());
  } else {
    if (!(std::abs(value.number()) < 9e18)) fail("a number for %d that fits 64 bits");
    text = std::to_string(static_cast<std::int64_t>(value.number()));
  }
  if (conversion.has_plus && text[0] != '-') text.insert(0, 1, '+');
  return padded(std::move(text), conversion, true);
}

}  // namespace

std::string repr_of_float(double number) {
  if (std::isnan(number)) return "nan";
  if (std::isinf(number)) return number < 0 ? "-inf" : "inf";
  char shortest[40];
  const auto end =
      std::to_chars(shortest, shortest + sizeof shortest, number, std::chars_format::scientific);
  const std::string_view text(shortest, static_cast<std::size_t>(end.ptr - shortest));
  const std::size_t e = text.find('e');
  const std::string_view sign = text[0] == '-' ? "-" : "";
  std::string digits;
  for (const char c : text.substr(0, e)) {
    if (c >= '0' && c <= '9') digits += c;
  }
  int exponent = 0;
  const bool is_negative = text[e + 1] == '-';
  std::from_chars(text.data() + e + 2, text.data() + text.size(), exponent);
  if (is_negative) exponent = -exponent;

  std::string out(sign);
  if (exponent < -4 || exponent >= 16) {
    out += digits[0];
    if (digits.size() > 1) out += "." + digits.substr(1);
    const std::string size = std::to_string(std::abs(exponent));
    return out + "e" + (is_negative ? "-" : "+") + (size.size() < 2 ? "0" : "") + size;
  }
  if (exponent < 0)
    return out + "0." + std::string(static_cast<std::size_t>(-exponent - 1), '0') + digits;
  const auto whole = static_cast<std::size_t>(exponent) + 1;
  if (digits.size() <= whole) return out + digits + std::string(whole - digits.size(), '0') + ".0";
  return out + digits.substr(0, whole) + "." + digits.substr(whole);
}

std::string to_text(Budget& budget, const Value& value) {
  std::string out;
  if (value.is_text()) {
    put(budget, out, value.view());
  } else if (!value.is_undefined()) {
    put_repr(budget, out, value);
  }
  return out;
}

std::string repr(Budget& budget, const Value& value) {
  std::string out;
  put_repr(budget, out, value);
  return out;
}

std::string format_percent(Budget& budget, std::string_view format, const Value& arguments) {
  Values values{arguments};
  const bool is_tuple = arguments.is<std::shared_ptr<Sequence>>() &&
                        arguments.as<std::shared_ptr<Sequence>>()->kind == SequenceKind::kTuple;
  if (is_tuple) values = arguments.as<std::shared_ptr<Sequence>>()->items;
  std::string out;
  std::size_t next = 0;
  for (std::size_t at = 0; at < format.size();) {
    const std::size_t percent = std::min(format.find('%', at), format.size());
    put(budget, out, format.substr(at, percent - at));
    at = percent + 1;
    if (percent == format.size()) break;
    const Conversion conversion = read_conversion(format, at);
    if (at >= format.size()) fail("a format that ends after its conversions", "a single %");
    const char letter = format[at++];
    if (letter == '%') {
      out += '%';
      continue;
    }
    if (next >= values.size()) fail("as many values as the format has conversions");
    budget.charge(conversion.width + kStepCost);
    put(budget, out, converted(budget, letter, conversion, values[next++]));
  }
  // Python counts only what cannot be a mapping, which is a matter of having subscripts.
  const bool has_subscripts = arguments.is_undefined() ||
                              arguments.is<std::shared_ptr<const Dict>>() ||
                              (arguments.is<std::shared_ptr<Sequence>>() && !is_tuple);
  if (next < values.size() && !has_subscripts) fail("as many conversions as the format has values");
  return out;
}

std::string format_braces(Budget& budget, std::string_view format,
                          std::span<const Value> positional,
                          std::span<const std::pair<std::string, Value>> named) {
  std::string out;
  std::size_t next = 0;
  for (std::size_t at = 0; at < format.size();) {
    const char c = format[at++];
    const bool is_doubled = at < format.size() && format[at] == c && (c == '{' || c == '}');
    if (is_doubled || (c != '{' && c != '}')) {
      at += is_doubled ? 1 : 0;
      budget.charge(1);
      out += c;
      continue;
    }
    const std::size_t end = format.find('}', at);
    if (c == '}' || end == kNowhere) fail("a format with matching braces");
    const std::string field(format.substr(at, end - at));
    at = end + 1;
    const Value* value = nullptr;
    if (field.find_first_not_of("0123456789") == kNowhere && field.size() < 5) {
      const std::size_t number =
          field.empty() ? next++ : static_cast<std::size_t>(std::stoul(field));
      if (number < positional.size()) value = &positional[number];
    }
    for (const auto& [name, candidate] : named) {
      if (name == field) value = &candidate;
    }
    if (value == nullptr) fail("a value for every field of a format", "'{" + field + "}'");
    put(budget, out, to_text(budget, *value));
  }
  return out;
}

}  // namespace tileweave::jinja
