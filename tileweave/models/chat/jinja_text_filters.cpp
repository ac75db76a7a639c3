// Filters that give text or numbers.
#include <charconv>
#include <cmath>

#include "tileweave/models/chat/jinja_filters.h"
#include "tileweave/models/chat/jinja_operators.h"
#include "tileweave/models/chat/jinja_print.h"
#include "tileweave/models/chat/jinja_text.h"

namespace tileweave::jinja {
namespace {

constexpr std::int64_t kMaxIndent = 10'000;

// Filters without arguments that map text to text.
template <std::string (*kMap)(std::string_view)>
Value mapped(Environment& environment, const Value& input, const Arguments& arguments) {
  const BoundArguments none(arguments, "a filter of text", {});
  const Value text = as_text(environment, input);
  environment.budget.charge(text.view().size() * 8);
  return text_like(text, kMap(text.view()));
}

bool starts_word(char32_t code) {
  return is_space(code) || code == '-' || code == '(' || code == '{' || code == '[' || code == '<';
}

// Jinja's own title case: words begin after white space, brackets and dashes.
Value title(Environment& environment, const Value& input, const Arguments& arguments) {
  const BoundArguments none(arguments, "the filter 'title'", {});
  const Value value = as_text(environment, input);
  const std::string_view text = value.view();
  environment.budget.charge(text.size() * 8);
  std::string out;
  for (std::size_t at = 0; at < text.size();) {
    const std::size_t start = at;
    std::size_t next = at;
    const bool is_gap = starts_word(next_code_point(text, next));
    at = next;
    while (at < text.size() && starts_word(next_code_point(text, next)) == is_gap) at = next;
    std::size_t letter_end = start;
    next_code_point(text, letter_end);
    out += to_upper(text.substr(start, letter_end - start));
    out += to_lower(text.substr(letter_end, at - letter_end));
  }
  return Value::text(std::move(out));
}

Value escape(Environment& environment, const Value& input, const Arguments& arguments) {
  const BoundArguments none(arguments, "the filter 'escape'", {});
  if (input.is_safe()) return input;
  const Value text = as_text(environment, input);
  environment.budget.charge(text.view().size() * 5);
  return Value::safe_text(escape_html(text.view()));
}

Value force_escape(Environment& environment, const Value& input, const Arguments& arguments) {
  return escape(environment, Value::text(to_text(environment.budget, input)), arguments);
}

Value safe(Environment& environment, const Value& input, const Arguments& arguments) {
  const BoundArguments none(arguments, "the filter 'safe'", {});
  return Value::safe_text(to_text(environment.budget, input));
}

Value string(Environment& environment, const Value& input, const Arguments& arguments) {
  const BoundArguments none(arguments, "the filter 'string'", {});
  return as_text(environment, input);
}

Value trim(Environment& environment, const Value& input, const Arguments& arguments) {
  const BoundArguments bound(arguments, "the filter 'trim'", {"chars"});
  const Value text = as_text(environment, input);
  std::optional<std::string_view> chars;
  if (bound.has(0) && !bound.at(0).is_none()) chars = bound.text(0);
  environment.budget.charge(text.view().size() * (chars ? chars->size() + 1 : 1));
  return text_like(text, std::string(strip(text.view(), Side::kBoth, chars)));
}

Value replace(Environment& environment, const Value& input, const Arguments& arguments) {
  const BoundArguments bound(arguments, "the filter 'replace'", {"old", "new", "count"}, 2);
  const bool is_counted = bound.has(2) && !bound.at(2).is_none();
  return Value::text(replaced(environment.budget, to_text(environment.budget, input),
                              to_text(environment.budget, bound.at(0)),
                              to_text(environment.budget, bound.at(1)),
                              is_counted ? bound.integer(2, -1) : -1));
}

Value format(Environment& environment, const Value& input, const Arguments& arguments) {
  if (!arguments.named.empty()) fail("the filter 'format' with positional arguments");
  const Value text = as_text(environment, input);
  return Value::text(format_percent(
      environment.budget, text.view(),
      make_sequence(environment.budget, SequenceKind::kTuple, arguments.positional)));
}

std::string spaces(std::int64_t width) {
  if (width > kMaxIndent) fail("an indent of at most " + std::to_string(kMaxIndent));
  return std::string(width < 0 ? 0 : static_cast<std::size_t>(width), ' ');
}

Value indent(Environment& environment, const Value& input, const Arguments& arguments) {
  const BoundArguments bound(arguments, "the filter 'indent'", {"width", "first", "blank"});
  require_defined(input);
  if (!input.is_text()) fail("a string to indent", "a " + type_name(input));
  const bool is_string = bound.has(0) && bound.at(0).is_text();
  const std::string indent = is_string ? std::string(bound.text(0)) : spaces(bound.integer(0, 4));
  const bool indents_blank = bound.truth(2, false);
  const std::string text = std::string(input.view()) + "\n";
  const std::vector<std::string_view> lines = split_lines(text);
  environment.budget.charge(text.size() + lines.size() * (indent.size() + 16));
  std::string out = bound.truth(1, false) ? indent : "";
  for (std::size_t i = 0; i < lines.size(); ++i) {
    if (i > 0) {
      out += '\n';
      if (indents_blank || !lines[i].empty()) out += indent;
    }
    out += lines[i];
  }
  return text_like(input, std::move(out));
}

JsonLayout json_layout(const BoundArguments& bound) {
  JsonLayout layout;
  if (bound.truth(0, false)) layout.escape = JsonLayout::Escape::kNonAscii;
  if (bound.has(1) && !bound.at(1).is_none()) {
    layout.lines = JsonLayout::Lines::kMany;
    layout.item_separator = ",";
    layout.indent =
        bound.at(1).is_text() ? std::string(bound.text(1)) : spaces(bound.integer(1, 0));
  }
  if (bound.has(2) && !bound.at(2).is_none()) {
    const bool is_sequence = bound.at(2).is<std::shared_ptr<Sequence>>();
    const Values pair = is_sequence ? bound.at(2).as<std::shared_ptr<Sequence>>()->items : Values{};
    if (pair.size() != 2 || !pair[0].is_text() || !pair[1].is_text()) {
      fail("two strings as the separators of 'tojson'");
    }
    layout.item_separator = pair[0].view();
    layout.key_separator = pair[1].view();
  }
  if (bound.truth(3, false)) layout.order = JsonLayout::Order::kSorted;
  return layout;
}

Value tojson(Environment& environment, const Value& input, const Arguments& arguments) {
  const BoundArguments bound(arguments, "the filter 'tojson'",
                             {"ensure_ascii", "indent", "separators", "sort_keys"});
  return Value::text(to_json(environment.budget, input, json_layout(bound)));
}

bool is_digit(char c) {
  return c >= '0' && c <= '9';
}

// The number's text without the '_' that Python allows between digits; nullopt: misplaced ones.
std::optional<std::string> without_underscores(std::string_view text) {
  std::string out;
  for (std::size_t i = 0; i < text.size(); ++i) {
    if (text[i] != '_') {
      out += text[i];
      continue;
    }
    const bool is_between =
        i > 0 && i + 1 < text.size() && is_digit(text[i - 1]) && is_digit(text[i + 1]);
    if (!is_between) return std::nullopt;
  }
  return out;
}

std::optional<std::int64_t> integer_of(std::string_view text) {
  auto digits = without_underscores(strip(text, Side::kBoth));
  if (!digits || digits->empty()) return std::nullopt;
  if (digits->front() == '+') digits->erase(0, 1);
  const std::size_t sign = !digits->empty() && digits->front() == '-' ? 1 : 0;
  const bool is_number =
      digits->size() > sign && digits->find_first_not_of("0123456789", sign) == std::string::npos;
  if (!is_number) return std::nullopt;
  std::int64_t number = 0;
  const auto read = std::from_chars(digits->data(), digits->data() + digits->size(), number);
  if (read.ec != std::errc()) fail("integers that fit 64 bits", "'" + *digits + "'");
  return number;
}

std::optional<double> float_of(std::string_view text) {
  auto digits = without_underscores(strip(text, Side::kBoth));
  if (!digits || digits->empty()) return std::nullopt;
  if (digits->front() == '+' && digits->size() > 1 && (*digits)[1] != '-') digits->erase(0, 1);
  if (digits->find('(') != std::string::npos) return std::nullopt;  // nan(...) is not Python's
  double number = 0;
  const auto read = std::from_chars(digits->data(), digits->data() + digits->size(), number);
  if (read.ptr != digits->data() + digits->size()) return std::nullopt;
  if (read.ec == std::errc::result_out_of_range) {
    const bool is_small = to_lower(*digits).find("e-") != std::string::npos;
    number = is_small ? 0 : digits->front() == '-' ? -HUGE_VAL : HUGE_VAL;
  } else if (read.ec != std::errc()) {
    return std::nullopt;
  }
  return number;
}

std::int64_t truncated(double number) {
  if (!(std::abs(number) < 9.2e18)) fail("a number that fits an integer of 64 bits");
  return static_cast<std::int64_t>(number);
}

Value to_integer(Environment&, const Value& input, const Arguments& arguments) {
  const BoundArguments bound(arguments, "the filter 'int'", {"default", "base"});
  require_defined(input);
  if (bound.integer(1, 10) != 10) fail("the filter 'int' with base 10");
  if (input.is_integer()) return input.integer();
  if (input.is<double>()) return truncated(input.as<double>());
  if (input.is_text()) {
    if (const auto number = integer_of(input.view())) return *number;
    const auto number = float_of(input.view());
    if (number && std::isfinite(*number)) return truncated(*number);
  }
  return bound.get(0, std::int64_t{0});
}

Value to_float(Environment&, const Value& input, const Arguments& arguments) {
  const BoundArguments bound(arguments, "the filter 'float'", {"default"});
  require_defined(input);
  if (input.is_number()) return input.number();
  if (input.is_text()) {
    if (const auto number = float_of(input.view())) return *number;
  }
  return bound.get(0, 0.0);
}

Value absolute(Environment&, const Value& input, const Arguments& arguments) {
  const BoundArguments none(arguments, "the filter 'abs'", {});
  require_defined(input);
  if (!input.is_number()) fail("a number for the filter 'abs'", "a " + type_name(input));
  if (input.is<double>()) return std::abs(input.as<double>());
  return input.integer() < 0 ? negate(input) : Value(input.integer());
}

// Python rounds the exact value of the float, half to even, as printf does.
double rounded(double number, std::int64_t precision) {
  if (!std::isfinite(number)) return number;
  std::string text(400, '\0');
  const int used =
      std::snprintf(text.data(), text.size(), "%.*f", static_cast<int>(precision), number);
  text.resize(static_cast<std::size_t>(used));
  double result = 0;
  std::from_chars(text.data(), text.data() + text.size(), result);
  return result;
}

Value round(Environment&, const Value& input, const Arguments& arguments) {
  const BoundArguments bound(arguments, "the filter 'round'", {"precision", "method"});
  require_defined(input);
  if (!input.is_number()) fail("a number for the filter 'round'", "a " + type_name(input));
  const std::int64_t precision = bound.integer(0, 0);
  if (precision < 0 || precision > 22) fail("a precision from 0 to 22 for the filter 'round'");
  const std::string_view method = bound.has(1) ? bound.text(1) : "common";
  if (method == "common") {
    if (input.is_integer()) return input.integer();
    return rounded(input.as<double>(), precision);
  }
  if (method != "ceil" && method != "floor") {
    fail("'common', 'ceil' or 'floor' as the method of 'round'", "'" + std::string(method) + "'");
  }
  const double scale = std::pow(10.0, static_cast<double>(precision));
  const double scaled = input.number() * scale;
  return (method == "ceil" ? std::ceil(scaled) : std::floor(scaled)) / scale;
}

constexpr Filter kFilters[] = {
    {"abs", absolute},    {"capitalize", mapped<to_capitalized>},
    {"e", escape},        {"escape", escape},
    {"float", to_float},  {"forceescape", force_escape},
    {"format", format},   {"indent", indent},
    {"int", to_integer},  {"lower", mapped<to_lower>},
    {"replace", replace}, {"round", round},
    {"safe", safe},       {"string", string},
    {"title", title},     {"tojson", tojson},
    {"trim", trim},       {"upper", mapped<to_upper>},
};

}  // namespace

std::span<const Filter> text_filters() {
  return kFilters;
}

std::string replaced(Budget& budget, std::string_view text, std::string_view old,
                     std::string_view fresh, std::int64_t count) {
  std::uint64_t left = count < 0 ? UINT64_MAX : static_cast<std::uint64_t>(count);
  std::string out;
  budget.charge(text.size());
  std::size_t at = 0;
  while (left-- > 0) {
    const std::size_t found = find_text(text, old, at);
    if (found == kNowhere) break;
    budget.charge(fresh.size() + kStepCost);
    out += text.substr(at, found - at);
    out += fresh;
    at = found + old.size();
    if (!old.empty()) continue;
    if (at == text.size()) return out;  // an empty `old` lies between all characters
    std::size_t next = at;
    next_code_point(text, next);
    out += text.substr(at, next - at);
    at = next;
  }
  return out.append(text.substr(at));
}

}  // namespace tileweave::jinja
