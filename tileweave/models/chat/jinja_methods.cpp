// Methods of strings, dicts and lists.
#include <algorithm>

#include "tileweave/models/chat/jinja_builtins.h"
#include "tileweave/models/chat/jinja_operators.h"
#include "tileweave/models/chat/jinja_print.h"
#include "tileweave/models/chat/jinja_text.h"

namespace tileweave::jinja {
namespace {

// Every public name that Python's types have: the ones without an implementation are refused when
// called, instead of being looked up in a dict or taken for undefined.
constexpr std::string_view kTextMethods[] = {
    "capitalize",   "casefold",    "center",    "count",      "encode",       "endswith",
    "expandtabs",   "find",        "format",    "format_map", "index",        "isalnum",
    "isalpha",      "isascii",     "isdecimal", "isdigit",    "isidentifier", "islower",
    "isnumeric",    "isprintable", "isspace",   "istitle",    "isupper",      "join",
    "ljust",        "lower",       "lstrip",    "maketrans",  "partition",    "removeprefix",
    "removesuffix", "replace",     "rfind",     "rindex",     "rjust",        "rpartition",
    "rsplit",       "rstrip",      "split",     "splitlines", "startswith",   "strip",
    "swapcase",     "title",       "translate", "upper",      "zfill"};
constexpr std::string_view kDictMethods[] = {"clear",      "copy",   "fromkeys", "get",
                                             "items",      "keys",   "pop",      "popitem",
                                             "setdefault", "update", "values"};
constexpr std::string_view kDictChanges[] = {"clear", "pop", "popitem", "setdefault", "update"};
constexpr std::string_view kListMethods[] = {"append", "clear",   "copy",   "count",
                                             "extend", "index",   "insert", "pop",
                                             "remove", "reverse", "sort"};
constexpr std::string_view kListChanges[] = {"append", "clear", "pop",    "reverse",
                                             "insert", "sort",  "extend", "remove"};
constexpr std::string_view kTupleMethods[] = {"count", "index"};
constexpr std::string_view kRangeMethods[] = {"count", "index", "start", "step", "stop"};
constexpr std::string_view kNumberMethods[] = {
    "as_integer_ratio", "bit_count", "bit_length", "conjugate", "denominator",
    "from_bytes",       "fromhex",   "hex",        "imag",      "is_integer",
    "numerator",        "real",      "to_bytes"};
constexpr std::string_view kViewMethods[] = {"isdisjoint", "mapping"};
constexpr std::string_view kMacroAttributes[] = {"name", "arguments", "caller", "catch_kwargs",
                                                 "catch_varargs"};
constexpr std::string_view kGeneratorMethods[] = {"close", "send", "throw"};

template <std::size_t N>
bool is_among(std::string_view name, const std::string_view (&names)[N]) {
  return std::find(std::begin(names), std::end(names), name) != std::end(names);
}

// A call of a method of a string.
struct TextCall {
  Environment& environment;
  const Value& self;
  const Arguments& arguments;
  std::string what;

  std::string_view text() const { return self.view(); }
  Budget& budget() const { return environment.budget; }
  BoundArguments bind(std::initializer_list<const char*> parameters,
                      std::size_t required = 0) const {
    return BoundArguments(arguments, what, parameters, required);
  }
};

Value text_list(const TextCall& call, const std::vector<std::string_view>& parts) {
  Values items;
  for (const std::string_view part : parts) {
    call.budget().charge(part.size() + kItemCost);
    items.push_back(text_like(call.self, std::string(part)));
  }
  return make_sequence(call.budget(), SequenceKind::kList, std::move(items));
}

Value text_tuple(const TextCall& call, std::string_view a, std::string_view b, std::string_view c) {
  Values items{Value::text(std::string(a)), Value::text(std::string(b)),
               Value::text(std::string(c))};
  return make_sequence(call.budget(), SequenceKind::kTuple, std::move(items));
}

void require_unsafe(const TextCall& call) {
  if (call.self.is_safe()) fail(call.what + " on a string that is not safe", "a safe string");
}

template <Side kSide>
Value strip_method(const TextCall& call) {
  const BoundArguments bound = call.bind({"chars"});
  std::optional<std::string_view> chars;
  if (bound.has(0) && !bound.at(0).is_none()) chars = bound.text(0);
  call.budget().charge(call.text().size() * (chars ? chars->size() + 1 : 1));
  return text_like(call.self, std::string(strip(call.text(), kSide, chars)));
}

template <std::string (*kMap)(std::string_view)>
Value map_method(const TextCall& call) {
  const BoundArguments none = call.bind({});
  call.budget().charge(call.text().size() * 8);
  return text_like(call.self, kMap(call.text()));
}

std::vector<std::string_view> split_at_space(std::string_view text, std::uint64_t most) {
  std::vector<std::string_view> parts;
  std::string_view rest = strip(text, Side::kLeft);
  while (!rest.empty() && parts.size() < most) {
    std::size_t end = 0;
    std::size_t next = 0;
    while (end < rest.size() && !is_space(next_code_point(rest, next))) end = next;
    parts.push_back(rest.substr(0, end));
    rest = strip(rest.substr(end), Side::kLeft);
  }
  if (!rest.empty()) parts.push_back(rest);
  return parts;
}

std::vector<std::string_view> split_at(std::string_view text, std::string_view separator,
                                       std::uint64_t most) {
  std::vector<std::string_view> parts;
  std::size_t at = 0;
  while (parts.size() < most) {
    const std::size_t found = find_text(text, separator, at);
    if (found == kNowhere) break;
    parts.push_back(text.substr(at, found - at));
    at = found + separator.size();
  }
  parts.push_back(text.substr(at));
  return parts;
}

// Where `wanted` lies last in text, reading at most up to `end`.
std::size_t find_last(std::string_view text, std::string_view wanted, std::size_t end) {
  return text.substr(0, end).rfind(wanted);
}

std::vector<std::string_view> split_at_from_right(std::string_view text, std::string_view separator,
                                                  std::uint64_t most) {
  std::vector<std::string_view> parts;
  std::size_t end = text.size();
  while (parts.size() < most) {
    const std::size_t found = find_last(text, separator, end);
    if (found == kNowhere) break;
    parts.push_back(text.substr(found + separator.size(), end - found - separator.size()));
    end = found;
  }
  parts.push_back(text.substr(0, end));
  std::reverse(parts.begin(), parts.end());
  return parts;
}

std::vector<std::string_view> split_at_space_from_right(std::string_view text, std::uint64_t most) {
  std::vector<std::string_view> parts;
  std::string_view rest = strip(text, Side::kRight);
  while (!rest.empty() && parts.size() < most) {
    std::size_t begin = 0;
    for (std::size_t at = 0; at < rest.size();) {
      if (is_space(next_code_point(rest, at))) begin = at;
    }
    parts.push_back(rest.substr(begin));
    rest = strip(rest.substr(0, begin), Side::kRight);
  }
  if (!rest.empty()) parts.push_back(rest);
  std::reverse(parts.begin(), parts.end());
  return parts;
}

enum class From { kLeft, kRight };

template <From kFrom>
Value split_method(const TextCall& call) {
  const BoundArguments bound = call.bind({"sep", "maxsplit"});
  const std::int64_t maximum = bound.integer(1, -1);
  const std::uint64_t most = maximum < 0 ? UINT64_MAX : static_cast<std::uint64_t>(maximum);
  const bool is_at_space = !bound.has(0) || bound.at(0).is_none();
  constexpr bool kIsLeft = kFrom == From::kLeft;
  // From the right each part may look at all of the text before it.
  const std::uint64_t passes = kIsLeft ? 1 : std::min<std::uint64_t>(most, call.text().size()) + 1;
  call.budget().charge(call.text().size() * 4 * passes);
  if (is_at_space) {
    return text_list(call, kIsLeft ? split_at_space(call.text(), most)
                                   : split_at_space_from_right(call.text(), most));
  }
  const std::string_view separator = bound.text(0);
  if (separator.empty()) fail("a separator that is not empty for " + call.what);
  if (!kIsLeft) call.budget().charge(call.text().size() * separator.size());
  return text_list(call, kIsLeft ? split_at(call.text(), separator, most)
                                 : split_at_from_right(call.text(), separator, most));
}

Value splitlines_method(const TextCall& call) {
  const BoundArguments bound = call.bind({"keepends"});
  call.budget().charge(call.text().size());
  std::vector<std::string_view> lines = split_lines(call.text());
  if (bound.truth(0, false)) {
    const std::string_view text = call.text();
    for (std::size_t i = 0; i < lines.size(); ++i) {
      const char* end = i + 1 < lines.size() ? lines[i + 1].data() : text.data() + text.size();
      lines[i] = std::string_view(lines[i].data(), static_cast<std::size_t>(end - lines[i].data()));
    }
  }
  return text_list(call, lines);
}

template <From kFrom>
Value partition_method(const TextCall& call) {
  require_unsafe(call);
  const BoundArguments bound = call.bind({"sep"}, 1);
  const std::string_view separator = bound.text(0);
  if (separator.empty()) fail("a separator that is not empty for " + call.what);
  const std::string_view text = call.text();
  call.budget().charge(text.size() * (kFrom == From::kLeft ? 1 : separator.size()));
  const std::size_t found =
      kFrom == From::kLeft ? find_text(text, separator) : find_last(text, separator, text.size());
  if (found != kNowhere) {
    return text_tuple(call, text.substr(0, found), separator,
                      text.substr(found + separator.size()));
  }
  return kFrom == From::kLeft ? text_tuple(call, text, "", "") : text_tuple(call, "", "", text);
}

// The part of the text that the arguments start and end of find, count and startswith leave.
struct Part {
  std::string_view text;
  std::int64_t start = 0;  // in code points
  bool is_beyond = false;  // start lies behind the end of the text
};

Part part_of(const TextCall& call, const BoundArguments& bound) {
  const auto length = static_cast<std::int64_t>(count_code_points(call.text()));
  call.budget().charge(call.text().size() * 2);
  const auto bounded = [&](std::size_t i, std::int64_t otherwise) {
    const bool is_absent = !bound.has(i) || bound.at(i).is_none();
    const std::int64_t at = is_absent ? otherwise : bound.integer(i, otherwise);
    return at < 0 ? std::max<std::int64_t>(0, at + length) : at;
  };
  const std::int64_t start = bounded(1, 0);
  const std::int64_t end = std::min(bounded(2, length), length);
  if (start > end) return {"", start, true};
  std::size_t begin = 0;
  for (std::int64_t i = 0; i < start; ++i) next_code_point(call.text(), begin);
  std::size_t stop = begin;
  for (std::int64_t i = start; i < end; ++i) next_code_point(call.text(), stop);
  return {call.text().substr(begin, stop - begin), start, false};
}

enum class Missing { kMinusOne, kFault };

template <From kFrom, Missing kMissing>
Value find_method(const TextCall& call) {
  const BoundArguments bound = call.bind({"sub", "start", "end"}, 1);
  const std::string_view wanted = bound.text(0);
  const Part part = part_of(call, bound);
  call.budget().charge(part.text.size() * (kFrom == From::kLeft ? 1 : wanted.size() + 1));
  const std::size_t found = kFrom == From::kLeft ? find_text(part.text, wanted)
                                                 : find_last(part.text, wanted, part.text.size());
  if (found == kNowhere || part.is_beyond) {
    if (kMissing == Missing::kFault) fail("a part of the string for " + call.what, "another text");
    return std::int64_t{-1};
  }
  return part.start + static_cast<std::int64_t>(count_code_points(part.text.substr(0, found)));
}

Value count_method(const TextCall& call) {
  const BoundArguments bound = call.bind({"sub", "start", "end"}, 1);
  const std::string_view wanted = bound.text(0);
  const Part part = part_of(call, bound);
  if (part.is_beyond) return std::int64_t{0};
  if (wanted.empty()) return static_cast<std::int64_t>(count_code_points(part.text)) + 1;
  std::int64_t count = 0;
  for (std::size_t at = find_text(part.text, wanted); at != kNowhere;
       at = find_text(part.text, wanted, at + wanted.size())) {
    ++count;
  }
  return count;
}

template <From kFrom>
Value affix_method(const TextCall& call) {
  const BoundArguments bound = call.bind({"affix", "start", "end"}, 1);
  const Part part = part_of(call, bound);
  if (part.is_beyond) return false;
  const auto has = [&](std::string_view affix) {
    return kFrom == From::kLeft ? part.text.starts_with(affix) : part.text.ends_with(affix);
  };
  const Value& affix = bound.at(0);
  const bool is_tuple = affix.is<std::shared_ptr<Sequence>>() &&
                        affix.as<std::shared_ptr<Sequence>>()->kind == SequenceKind::kTuple;
  if (!is_tuple) return has(bound.text(0));
  const Values& affixes = affix.as<std::shared_ptr<Sequence>>()->items;
  return std::any_of(affixes.begin(), affixes.end(), [&](const Value& one) {
    call.budget().charge(kStepCost);
    if (!one.is_text()) fail("strings in the tuple of " + call.what, "a " + type_name(one));
    return has(one.view());
  });
}

template <From kFrom>
Value remove_method(const TextCall& call) {
  const BoundArguments bound = call.bind({"affix"}, 1);
  std::string_view text = call.text();
  const std::string_view affix = bound.text(0);
  call.budget().charge(text.size());
  if (kFrom == From::kLeft && text.starts_with(affix)) text.remove_prefix(affix.size());
  if (kFrom == From::kRight && text.ends_with(affix)) text.remove_suffix(affix.size());
  return text_like(call.self, std::string(text));
}

Value replace_method(const TextCall& call) {
  require_unsafe(call);
  const BoundArguments bound = call.bind({"old", "new", "count"}, 2);
  return Value::text(
      replaced(call.budget(), call.text(), bound.text(0), bound.text(1), bound.integer(2, -1)));
}

Value join_method(const TextCall& call) {
  require_unsafe(call);
  const BoundArguments bound = call.bind({"iterable"}, 1);
  std::string out;
  bool is_first = true;
  const auto sequence = iterate(call.budget(), bound.at(0));
  for (const Value& item : sequence->items) {
    if (!item.is_text()) fail("strings to join", "a " + type_name(item));
    call.budget().charge(call.text().size() + item.view().size() + kStepCost);
    if (!is_first) out += call.text();
    is_first = false;
    out += item.view();
  }
  return Value::text(std::move(out));
}

Value format_method(const TextCall& call) {
  require_unsafe(call);
  return Value::text(
      format_braces(call.budget(), call.text(), call.arguments.positional, call.arguments.named));
}

template <bool (*kHolds)(char32_t)>
Value all_method(const TextCall& call) {
  const BoundArguments none = call.bind({});
  call.budget().charge(call.text().size() * 8);
  for (std::size_t at = 0; at < call.text().size();) {
    if (!kHolds(next_code_point(call.text(), at))) return false;
  }
  return !call.text().empty();
}

template <bool (*kHolds)(std::string_view)>
Value case_method(const TextCall& call) {
  const BoundArguments none = call.bind({});
  call.budget().charge(call.text().size() * 8);
  return kHolds(call.text());
}

struct TextMethod {
  std::string_view name;
  Value (*call)(const TextCall&);
};

constexpr TextMethod kSupportedTextMethods[] = {
    {"capitalize", map_method<to_capitalized>},
    {"count", count_method},
    {"endswith", affix_method<From::kRight>},
    {"find", find_method<From::kLeft, Missing::kMinusOne>},
    {"format", format_method},
    {"index", find_method<From::kLeft, Missing::kFault>},
    {"isalnum", all_method<is_letter_or_number>},
    {"isalpha", all_method<is_letter>},
    {"isdigit", all_method<is_digit>},
    {"islower", case_method<is_all_lower>},
    {"isspace", all_method<is_space>},
    {"isupper", case_method<is_all_upper>},
    {"join", join_method},
    {"lower", map_method<to_lower>},
    {"lstrip", strip_method<Side::kLeft>},
    {"partition", partition_method<From::kLeft>},
    {"removeprefix", remove_method<From::kLeft>},
    {"removesuffix", remove_method<From::kRight>},
    {"replace", replace_method},
    {"rfind", find_method<From::kRight, Missing::kMinusOne>},
    {"rindex", find_method<From::kRight, Missing::kFault>},
    {"rpartition", partition_method<From::kRight>},
    {"rsplit", split_method<From::kRight>},
    {"rstrip", strip_method<Side::kRight>},
    {"split", split_method<From::kLeft>},
    {"splitlines", splitlines_method},
    {"startswith", affix_method<From::kLeft>},
    {"strip", strip_method<Side::kBoth>},
    {"title", map_method<to_title>},
    {"upper", map_method<to_upper>},
};

[[noreturn]] void refuse_method(const std::string& name, const Value& self) {
  fail("only methods that are supported", "'" + name + "' of a " + type_name(self));
}

Value call_dict_method(Environment& environment, const std::string& name, const Value& self,
                       const Arguments& arguments) {
  const Dict& dict = *self.as<std::shared_ptr<const Dict>>();
  Budget& budget = environment.budget;
  if (name == "get") {
    const BoundArguments bound(arguments, "the method 'get'", {"key", "default"}, 1);
    const Value* found = find(budget, dict, bound.at(0));
    return found != nullptr ? *found : bound.get(1, Value::none());
  }
  const BoundArguments none(arguments, "the method '" + name + "'", {});
  if (name == "copy") return self;
  if (name != "keys" && name != "values" && name != "items") refuse_method(name, self);
  budget.charge(kItemCost * dict.items.size());
  Values items;
  for (const auto& [key, value] : dict.items) {
    if (name == "items") {
      items.push_back(make_sequence(budget, SequenceKind::kTuple, {key, value}));
    } else {
      items.push_back(name == "keys" ? key : value);
    }
  }
  return make_sequence(budget, SequenceKind::kView, std::move(items), "dict_" + name);
}

Value call_list_method(Environment& environment, const std::string& name, const Value& self,
                       const Arguments& arguments) {
  const Values& items = self.as<std::shared_ptr<Sequence>>()->items;
  Budget& budget = environment.budget;
  if (name == "copy") {
    const BoundArguments none(arguments, "the method 'copy'", {});
    return self;
  }
  if (name != "count" && name != "index") refuse_method(name, self);
  const BoundArguments bound(arguments, "the method '" + name + "'", {"value"}, 1);
  std::int64_t count = 0;
  for (std::size_t i = 0; i < items.size(); ++i) {
    if (!equal(budget, items[i], bound.at(0))) continue;
    if (name == "index") return static_cast<std::int64_t>(i);
    ++count;
  }
  if (name == "index") fail("a value that is in the list for the method 'index'");
  return count;
}

}  // namespace

bool has_method(const Value& value, std::string_view name) {
  if (value.is_text()) return is_among(name, kTextMethods);
  if (value.is_number()) return is_among(name, kNumberMethods);
  if (value.is<std::shared_ptr<const Dict>>()) return is_among(name, kDictMethods);
  if (value.is<std::shared_ptr<const Callable>>()) {
    return value.as<std::shared_ptr<const Callable>>()->kind == CallableKind::kMacro &&
           is_among(name, kMacroAttributes);
  }
  if (!value.is<std::shared_ptr<Sequence>>()) return false;
  switch (value.as<std::shared_ptr<Sequence>>()->kind) {
    case SequenceKind::kList:
      return is_among(name, kListMethods);
    case SequenceKind::kTuple:
      return is_among(name, kTupleMethods);
    case SequenceKind::kRange:
      return is_among(name, kRangeMethods);
    case SequenceKind::kView:
      return is_among(name, kViewMethods);
    case SequenceKind::kGenerator:
      break;
  }
  return is_among(name, kGeneratorMethods);
}

bool changes_its_object(const Value& value, std::string_view name) {
  if (value.is<std::shared_ptr<const Dict>>()) return is_among(name, kDictChanges);
  return value.is<std::shared_ptr<Sequence>>() &&
         value.as<std::shared_ptr<Sequence>>()->kind == SequenceKind::kList &&
         is_among(name, kListChanges);
}

Value call_method(Environment& environment, const Callable& method, const Arguments& arguments) {
  const Value& self = method.self;
  if (self.is<Loop*>()) return self.as<Loop*>()->call(environment, method.name, arguments);
  if (self.is<std::shared_ptr<const Dict>>()) {
    return call_dict_method(environment, method.name, self, arguments);
  }
  if (self.is_text()) {
    for (const TextMethod& candidate : kSupportedTextMethods) {
      if (candidate.name == method.name) {
        return candidate.call({environment, self, arguments, "the method '" + method.name + "'"});
      }
    }
  } else if (self.is<std::shared_ptr<Sequence>>()) {
    const SequenceKind kind = self.as<std::shared_ptr<Sequence>>()->kind;
    if (kind == SequenceKind::kList || kind == SequenceKind::kTuple) {
      return call_list_method(environment, method.name, self, arguments);
    }
  }
  refuse_method(method.name, self);
}

}  // namespace tileweave::jinja
