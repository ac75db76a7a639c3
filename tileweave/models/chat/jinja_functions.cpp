// Functions that templates call by name, and the clock of strftime_now.
#include <ctime>

#include "tileweave/models/chat/jinja_builtins.h"
#include "tileweave/models/chat/jinja_text.h"

namespace tileweave::jinja {
namespace {

constexpr std::int64_t kMaxRange = 100'000;  // Jinja's own bound

constexpr std::string_view kFunctions[] = {"range", "namespace", "dict", "raise_exception",
                                           "strftime_now"};
constexpr std::string_view kRefusedFunctions[] = {"lipsum", "cycler", "joiner"};

Value range(Environment& environment, const Arguments& arguments) {
  const BoundArguments bound(arguments, "the function 'range'", {"start", "stop", "step"}, 1);
  if (!arguments.named.empty()) fail("the function 'range' with positional arguments");
  const bool has_start = bound.has(1);
  const std::int64_t start = has_start ? bound.integer(0, 0) : 0;
  const std::int64_t stop = has_start ? bound.integer(1, 0) : bound.integer(0, 0);
  const std::int64_t step = bound.integer(2, 1);
  if (step == 0) fail("a step of 'range' that is not zero");
  Values items;
  std::int64_t at = start;
  while (step > 0 ? at < stop : at > stop) {
    if (items.size() == static_cast<std::size_t>(kMaxRange)) {
      fail("a range of at most " + std::to_string(kMaxRange) + " items");
    }
    environment.budget.charge(kItemCost);
    items.emplace_back(at);
    if (__builtin_add_overflow(at, step, &at)) break;
  }
  std::string printed = "range(" + std::to_string(start) + ", " + std::to_string(stop);
  printed += step == 1 ? ")" : ", " + std::to_string(step) + ")";
  return make_sequence(environment.budget, SequenceKind::kRange, std::move(items),
                       std::move(printed));
}

// dict(mapping or pairs, **named), the constructor.
Value dict(Environment& environment, const Arguments& arguments) {
  if (arguments.positional.size() > 1) fail("the function 'dict' with at most one argument");
  DictBuilder builder(environment.budget);
  if (!arguments.positional.empty()) {
    const Value& source = arguments.positional[0];
    require_defined(source);
    if (source.is<std::shared_ptr<const Dict>>()) {
      for (const auto& [key, value] : source.as<std::shared_ptr<const Dict>>()->items) {
        builder.set(key, value);
      }
    } else {
      const auto sequence = iterate(environment.budget, source);
      for (const Value& item : sequence->items) {
        const auto pair = iterate(environment.budget, item);
        if (pair->items.size() != 2) fail("pairs to make a dict of");
        builder.set(pair->items[0], pair->items[1]);
      }
    }
  }
  for (const auto& [name, value] : arguments.named) builder.set(Value::text(name), value);
  return builder.finish();
}

Value make_namespace(Environment& environment, const Arguments& arguments) {
  environment.budget.charge(kObjectCost);
  const Value attributes = dict(environment, arguments);
  auto made = std::make_unique<Namespace>();
  for (const auto& [key, value] : attributes.as<std::shared_ptr<const Dict>>()->items) {
    if (!key.is_text()) fail("strings as the names of a namespace", "a " + type_name(key));
    if (key.view().starts_with('_')) {
      fail("names of a namespace that do not start with '_'", "'" + std::string(key.view()) + "'");
    }
    made->attributes.insert_or_assign(std::string(key.view()), value);
  }
  Namespace* pointer = made.get();
  environment.namespaces.push_back(std::move(made));
  return pointer;
}

[[noreturn]] void raise_exception(const Arguments& arguments) {
  const BoundArguments bound(arguments, "the function 'raise_exception'", {"message"}, 1);
  const Value& message = bound.at(0);
  fail("the template accepts the conversation",
       message.is_text() ? "its refusal '" + std::string(message.view()) + "'" : "its refusal");
}

std::tm calendar(std::chrono::local_seconds time) {
  const auto day = std::chrono::floor<std::chrono::days>(time);
  const std::chrono::year_month_day date(day);
  const std::chrono::hh_mm_ss clock(time - day);
  const auto january = std::chrono::local_days(date.year() / std::chrono::January / 1);
  std::tm parts{};
  parts.tm_year = static_cast<int>(date.year()) - 1900;
  parts.tm_mon = static_cast<int>(static_cast<unsigned>(date.month())) - 1;
  parts.tm_mday = static_cast<int>(static_cast<unsigned>(date.day()));
  parts.tm_hour = static_cast<int>(clock.hours().count());
  parts.tm_min = static_cast<int>(clock.minutes().count());
  parts.tm_sec = static_cast<int>(clock.seconds().count());
  parts.tm_wday = static_cast<int>(std::chrono::weekday(day).c_encoding());
  parts.tm_yday = static_cast<int>((day - january).count());
  return parts;
}

}  // namespace

bool is_function(std::string_view name) {
  for (const std::string_view function : kFunctions) {
    if (function == name) return true;
  }
  return false;
}

bool is_refused_function(std::string_view name) {
  for (const std::string_view function : kRefusedFunctions) {
    if (function == name) return true;
  }
  return false;
}

Value call_function(Environment& environment, std::string_view name, const Arguments& arguments) {
  if (name == "range") return range(environment, arguments);
  if (name == "namespace") return make_namespace(environment, arguments);
  if (name == "dict") return dict(environment, arguments);
  if (name == "raise_exception") raise_exception(arguments);
  const BoundArguments bound(arguments, "the function 'strftime_now'", {"format"}, 1);
  return Value::text(format_time(environment.budget, bound.text(0), environment.now));
}

std::string format_time(Budget& budget, std::string_view format, std::chrono::local_seconds time) {
  static constexpr std::string_view kDirectives = "aAbBcCdDeFgGhHIjmMnpRrStTuUVwWxXyY%";
  static constexpr std::string_view kModifiers = "-_0^#";
  const std::tm parts = calendar(time);
  std::string out;
  for (std::size_t at = 0; at < format.size(); ++at) {
    budget.charge(kStepCost);
    if (format[at] != '%') {
      out += format[at];
      continue;
    }
    std::string directive = "%";
    if (++at < format.size() && kModifiers.find(format[at]) != kNowhere) directive += format[at++];
    if (at >= format.size()) fail("a time format that ends after its directives", "a single %");
    directive += format[at];
    if (format[at] == 'f') {  // microseconds, which this clock has none of
      out += "000000";
    } else if (kDirectives.find(format[at]) != kNowhere) {
      char text[100];
      out.append(text, std::strftime(text, sizeof text, directive.c_str(), &parts));
    } else if (format[at] != 'z' && format[at] != 'Z') {  // empty: local time without a zone
      fail("only time directives that are supported", "'" + directive + "'");
    }
  }
  return out;
}

}  // namespace tileweave::jinja
