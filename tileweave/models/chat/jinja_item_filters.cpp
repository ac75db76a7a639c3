// Filters over lists, dicts and other iterables.
#include <algorithm>
#include <functional>

#include "tileweave/models/chat/jinja_filters.h"
#include "tileweave/models/chat/jinja_operators.h"
#include "tileweave/models/chat/jinja_print.h"
#include "tileweave/models/chat/jinja_text.h"

namespace tileweave::jinja {
namespace {

using Map = std::function<Value(const Value&)>;

Values items_of(Environment& environment, const Value& value) {
  const auto sequence = iterate(environment.budget, value);
  environment.budget.charge(kItemCost * sequence->items.size());
  return sequence->items;
}

Value generator(Environment& environment, Values items) {
  return make_sequence(environment.budget, SequenceKind::kGenerator, std::move(items));
}

// The way to an attribute: "function.name", "0", 1; none is the item itself.
Values attribute_path(const Value& attribute) {
  Values path;
  if (attribute.is_none()) return path;
  if (!attribute.is_text()) return {attribute};
  const std::string_view text = attribute.view();
  for (std::size_t at = 0; at <= text.size();) {
    const std::size_t dot = std::min(text.find('.', at), text.size());
    const std::string part(text.substr(at, dot - at));
    const bool is_index = !part.empty() && part.size() < 18 &&
                          part.find_first_not_of("0123456789") == std::string::npos;
    if (is_index) {
      path.emplace_back(static_cast<std::int64_t>(std::stoll(part)));
    } else {
      path.push_back(Value::text(part));
    }
    at = dot + 1;
  }
  return path;
}

Map attribute_getter(Environment& environment, const Value& attribute,
                     Value otherwise = Value::none()) {
  return [&environment, path = attribute_path(attribute),
          otherwise = std::move(otherwise)](const Value& item) {
    Value found = item;
    for (const Value& part : path) {
      found = item_of(environment, found, part);
      if (found.is_undefined() && !otherwise.is_none()) found = otherwise;
    }
    return found;
  };
}

Value without_case(Environment& environment, const Value& value) {
  if (!value.is_text()) return value;
  environment.budget.charge(value.view().size() * 8);
  return Value::text(to_lower(value.view()));
}

enum class Direction { kUp, kDown };

// Stable either way, as Python's sorted().
Values sorted(Environment& environment, const Values& items, const Map& key, Direction direction) {
  std::vector<std::pair<Value, std::size_t>> keys;
  environment.budget.charge(kItemCost * 2 * items.size());
  for (std::size_t i = 0; i < items.size(); ++i) keys.emplace_back(key(items[i]), i);
  std::stable_sort(keys.begin(), keys.end(), [&](const auto& a, const auto& b) {
    return direction == Direction::kUp ? less(environment.budget, a.first, b.first)
                                       : less(environment.budget, b.first, a.first);
  });
  Values result;
  for (const auto& entry : keys) result.push_back(items[entry.second]);
  return result;
}

Value length(Environment& environment, const Value& input, const Arguments& arguments) {
  const BoundArguments none(arguments, "the filter 'length'", {});
  if (input.is_text()) environment.budget.charge(input.view().size());
  return static_cast<std::int64_t>(length_of(input));
}

Value otherwise(Environment&, const Value& input, const Arguments& arguments) {
  const BoundArguments bound(arguments, "the filter 'default'", {"default_value", "boolean"});
  const bool is_missing = input.is_undefined() || (bound.truth(1, false) && !is_true(input));
  return is_missing ? bound.get(0, Value::text("")) : input;
}

Value first(Environment& environment, const Value& input, const Arguments& arguments) {
  const BoundArguments none(arguments, "the filter 'first'", {});
  if (input.is<std::shared_ptr<Sequence>>()) {
    Sequence& sequence = *input.as<std::shared_ptr<Sequence>>();
    const bool is_generator = sequence.kind == SequenceKind::kGenerator;
    const std::size_t at = is_generator ? sequence.num_read : 0;
    if (at < sequence.items.size()) {
      if (is_generator) ++sequence.num_read;
      return sequence.items[at];
    }
  } else {
    const auto sequence = iterate(environment.budget, input);
    if (!sequence->items.empty()) return sequence->items.front();
  }
  return Value::undefined("the first item of an empty sequence");
}

void require_reversible(const Value& input) {
  const bool is_generator = input.is<std::shared_ptr<Sequence>>() &&
                            input.as<std::shared_ptr<Sequence>>()->kind == SequenceKind::kGenerator;
  if (is_generator) fail("a sequence that can be read backwards", "a generator");
}

Value last(Environment& environment, const Value& input, const Arguments& arguments) {
  const BoundArguments none(arguments, "the filter 'last'", {});
  require_reversible(input);
  const auto sequence = iterate(environment.budget, input);
  if (!sequence->items.empty()) return sequence->items.back();
  return Value::undefined("the last item of an empty sequence");
}

Value reverse(Environment& environment, const Value& input, const Arguments& arguments) {
  const BoundArguments none(arguments, "the filter 'reverse'", {});
  if (input.is_text())
    return slice(environment.budget, input, SliceBounds{std::nullopt, std::nullopt, -1});
  const bool is_generator = input.is<std::shared_ptr<Sequence>>() &&
                            input.as<std::shared_ptr<Sequence>>()->kind == SequenceKind::kGenerator;
  Values items = items_of(environment, input);
  std::reverse(items.begin(), items.end());
  return make_sequence(environment.budget,
                       is_generator ? SequenceKind::kList : SequenceKind::kGenerator,
                       std::move(items));
}

Value list(Environment& environment, const Value& input, const Arguments& arguments) {
  const BoundArguments none(arguments, "the filter 'list'", {});
  return make_sequence(environment.budget, SequenceKind::kList, items_of(environment, input));
}

Value pair(Environment& environment, const Value& key, const Value& value) {
  return make_sequence(environment.budget, SequenceKind::kTuple, {key, value});
}

const Dict& dict_of(const Value& value, const char* what) {
  if (!value.is<std::shared_ptr<const Dict>>()) fail(what, "a " + type_name(value));
  return *value.as<std::shared_ptr<const Dict>>();
}

Value items(Environment& environment, const Value& input, const Arguments& arguments) {
  const BoundArguments none(arguments, "the filter 'items'", {});
  Values pairs;
  if (!input.is_undefined()) {
    for (const auto& [key, value] : dict_of(input, "a dict for the filter 'items'").items) {
      pairs.push_back(pair(environment, key, value));
    }
  }
  return generator(environment, std::move(pairs));
}

Value dictsort(Environment& environment, const Value& input, const Arguments& arguments) {
  const BoundArguments bound(arguments, "the filter 'dictsort'",
                             {"case_sensitive", "by", "reverse"});
  require_defined(input);
  const std::string_view by = bound.has(1) ? bound.text(1) : "key";
  if (by != "key" && by != "value") fail("'key' or 'value' to sort a dict by");
  Values pairs;
  for (const auto& [key, value] : dict_of(input, "a dict for the filter 'dictsort'").items) {
    pairs.push_back(pair(environment, key, value));
  }
  const bool is_case_sensitive = bound.truth(0, false);
  const Map key = [&](const Value& entry) {
    const Value& part = entry.as<std::shared_ptr<Sequence>>()->items[by == "key" ? 0 : 1];
    return is_case_sensitive ? part : without_case(environment, part);
  };
  return make_sequence(
      environment.budget, SequenceKind::kList,
      sorted(environment, pairs, key, bound.truth(2, false) ? Direction::kDown : Direction::kUp));
}

Value join(Environment& environment, const Value& input, const Arguments& arguments) {
  const BoundArguments bound(arguments, "the filter 'join'", {"d", "attribute"});
  const std::string separator =
      bound.has(0) ? to_text(environment.budget, bound.at(0)) : std::string();
  const Map get = attribute_getter(environment, bound.get(1, Value::none()));
  std::string out;
  bool is_first = true;
  const auto sequence = iterate(environment.budget, input);
  for (const Value& item : sequence->items) {
    environment.budget.charge(separator.size() + kStepCost);
    if (!is_first) out += separator;
    is_first = false;
    out += to_text(environment.budget, get(item));
  }
  return Value::text(std::move(out));
}

// The rest of the arguments of map, select and their like.
Arguments arguments_from(Environment& environment, const Arguments& arguments,
                         std::size_t num_used) {
  environment.budget.charge(kItemCost * (arguments.positional.size() + arguments.named.size()));
  Arguments rest = arguments;
  rest.positional.erase(rest.positional.begin(),
                        rest.positional.begin() + static_cast<std::ptrdiff_t>(num_used));
  return rest;
}

std::string name_in(const Arguments& arguments, std::size_t i, const char* what) {
  const Value& name = arguments.positional[i];
  if (!name.is_text()) fail(what, "a " + type_name(name));
  return std::string(name.view());
}

Value map(Environment& environment, const Value& input, const Arguments& arguments) {
  if (!is_true(input)) return generator(environment, {});
  Map change;
  if (arguments.positional.empty()) {
    const BoundArguments bound(arguments, "the filter 'map'", {"attribute", "default"}, 1);
    change = attribute_getter(environment, bound.at(0), bound.get(1, Value::none()));
  } else {
    const std::string name = name_in(arguments, 0, "the name of a filter for 'map'");
    if (!is_filter(name)) fail("only filters that are supported", "'" + name + "'");
    change = [&environment, name, rest = arguments_from(environment, arguments, 1)](
                 const Value& item) { return call_filter(environment, name, item, rest); };
  }
  Values changed;
  for (const Value& item : items_of(environment, input)) changed.push_back(change(item));
  return generator(environment, std::move(changed));
}

enum class Keep { kPassing, kFailing };
enum class Tested { kItem, kAttribute };

template <Keep kKeep, Tested kTested>
Value select(Environment& environment, const Value& input, const Arguments& arguments) {
  if (!is_true(input)) return generator(environment, {});
  std::size_t num_used = 0;
  Map get = [](const Value& item) { return item; };
  if (kTested == Tested::kAttribute) {
    if (arguments.positional.empty()) fail("the name of an attribute to select by");
    get = attribute_getter(environment, arguments.positional[0]);
    num_used = 1;
  }
  std::string test;
  if (arguments.positional.size() > num_used) {
    test = name_in(arguments, num_used++, "the name of a test to select by");
    if (!is_test(test)) fail("only tests that are supported", "'" + test + "'");
  }
  const Arguments rest = arguments_from(environment, arguments, num_used);
  Values kept;
  for (const Value& item : items_of(environment, input)) {
    const Value tested = get(item);
    const bool passes = test.empty() ? is_true(tested) : call_test(environment, test, tested, rest);
    if (passes == (kKeep == Keep::kPassing)) kept.push_back(item);
  }
  return generator(environment, std::move(kept));
}

Value sort(Environment& environment, const Value& input, const Arguments& arguments) {
  const BoundArguments bound(arguments, "the filter 'sort'",
                             {"reverse", "case_sensitive", "attribute"});
  std::vector<Map> getters;
  const Value attribute = bound.get(2, Value::none());
  if (attribute.is_text()) {
    const std::string_view names = attribute.view();
    for (std::size_t at = 0; at <= names.size();) {
      const std::size_t comma = std::min(names.find(',', at), names.size());
      getters.push_back(
          attribute_getter(environment, Value::text(std::string(names.substr(at, comma - at)))));
      at = comma + 1;
    }
  } else {
    getters.push_back(attribute_getter(environment, attribute));
  }
  const bool is_case_sensitive = bound.truth(1, false);
  const Map key = [&](const Value& item) {
    Values parts;
    for (const Map& get : getters) {
      parts.push_back(is_case_sensitive ? get(item) : without_case(environment, get(item)));
    }
    return make_sequence(environment.budget, SequenceKind::kList, std::move(parts));
  };
  return make_sequence(environment.budget, SequenceKind::kList,
                       sorted(environment, items_of(environment, input), key,
                              bound.truth(0, false) ? Direction::kDown : Direction::kUp));
}

Value unique(Environment& environment, const Value& input, const Arguments& arguments) {
  const BoundArguments bound(arguments, "the filter 'unique'", {"case_sensitive", "attribute"});
  const Map get = attribute_getter(environment, bound.get(1, Value::none()));
  DictBuilder seen(environment.budget);
  for (const Value& item : items_of(environment, input)) {
    const Value key = bound.truth(0, false) ? get(item) : without_case(environment, get(item));
    seen.add(key, item);
  }
  const Value found = seen.finish();
  Values kept;
  for (const auto& entry : found.as<std::shared_ptr<const Dict>>()->items) {
    kept.push_back(entry.second);
  }
  return generator(environment, std::move(kept));
}

template <Direction kDirection>
Value extreme(Environment& environment, const Value& input, const Arguments& arguments) {
  const BoundArguments bound(arguments, "the filters 'min' and 'max'",
                             {"case_sensitive", "attribute"});
  const Map get = attribute_getter(environment, bound.get(1, Value::none()));
  const bool is_case_sensitive = bound.truth(0, false);
  Value best = Value::undefined("the least or greatest item of an empty sequence");
  Value best_key;
  bool is_first = true;
  for (const Value& item : items_of(environment, input)) {
    const Value key = is_case_sensitive ? get(item) : without_case(environment, get(item));
    const bool is_better =
        is_first || (kDirection == Direction::kUp ? less(environment.budget, best_key, key)
                                                  : less(environment.budget, key, best_key));
    is_first = false;
    if (!is_better) continue;
    best = item;
    best_key = key;
  }
  return best;
}

Value sum(Environment& environment, const Value& input, const Arguments& arguments) {
  const BoundArguments bound(arguments, "the filter 'sum'", {"attribute", "start"});
  const Map get = attribute_getter(environment, bound.get(0, Value::none()));
  Value total = bound.get(1, std::int64_t{0});
  if (total.is_text()) fail("a start of 'sum' that is not a string");
  for (const Value& item : items_of(environment, input)) {
    total = arithmetic(environment.budget, Operator::kAdd, total, get(item));
  }
  return total;
}

constexpr Filter kFilters[] = {
    {"count", length},
    {"d", otherwise},
    {"default", otherwise},
    {"dictsort", dictsort},
    {"first", first},
    {"items", items},
    {"join", join},
    {"last", last},
    {"length", length},
    {"list", list},
    {"map", map},
    {"max", extreme<Direction::kUp>},
    {"min", extreme<Direction::kDown>},
    {"reject", select<Keep::kFailing, Tested::kItem>},
    {"rejectattr", select<Keep::kFailing, Tested::kAttribute>},
    {"reverse", reverse},
    {"select", select<Keep::kPassing, Tested::kItem>},
    {"selectattr", select<Keep::kPassing, Tested::kAttribute>},
    {"sort", sort},
    {"sum", sum},
    {"unique", unique},
};

const Filter* find_filter(std::string_view name) {
  for (const std::span<const Filter> filters : {text_filters(), item_filters()}) {
    for (const Filter& filter : filters) {
      if (filter.name == name) return &filter;
    }
  }
  return nullptr;
}

}  // namespace

std::span<const Filter> item_filters() {
  return kFilters;
}

bool is_filter(std::string_view name) {
  return find_filter(name) != nullptr;
}

Value call_filter(Environment& environment, std::string_view name, const Value& input,
                  const Arguments& arguments) {
  environment.budget.charge(kStepCost);
  const Recursion recursion(environment);
  return find_filter(name)->call(environment, input, arguments);
}

}  // namespace tileweave::jinja
