#include "tileweave/models/chat/jinja_value.h"

#include <algorithm>
#include <bit>
#include <cmath>

#include "tileweave/models/chat/jinja_text.h"

namespace tileweave::jinja {
namespace {

int checked_depth(int depth) {
  if (depth > kMaxNesting) {
    fail("lists and dicts nested at most " + std::to_string(kMaxNesting) + " deep");
  }
  return depth;
}

std::size_t items_left(const Sequence& sequence) {
  return sequence.items.size() - std::min(sequence.num_read, sequence.items.size());
}

bool equal_items(Budget& budget, const Values& a, const Values& b) {
  if (a.size() != b.size()) return false;
  for (std::size_t i = 0; i < a.size(); ++i) {
    if (!equal(budget, a[i], b[i])) return false;
  }
  return true;
}

bool equal_dicts(Budget& budget, const Dict& a, const Dict& b) {
  if (a.items.size() != b.items.size()) return false;
  for (const auto& [key, value] : a.items) {
    const Value* other = find(budget, b, key);
    if (other == nullptr || !equal(budget, value, *other)) return false;
  }
  return true;
}

bool equal_numbers(const Value& a, const Value& b) {
  if (a.is_integer() && b.is_integer()) return a.integer() == b.integer();
  return a.number() == b.number();
}

bool same_object(const Value& a, const Value& b) {
  if (a.is<Namespace*>()) return a.as<Namespace*>() == b.as<Namespace*>();
  if (a.is<Loop*>()) return a.as<Loop*>() == b.as<Loop*>();
  return a.as<std::shared_ptr<const Callable>>() == b.as<std::shared_ptr<const Callable>>();
}

bool less_items(Budget& budget, const Values& a, const Values& b) {
  const std::size_t common = std::min(a.size(), b.size());
  for (std::size_t i = 0; i < common; ++i) {
    if (!equal(budget, a[i], b[i])) return less(budget, a[i], b[i]);
  }
  return a.size() < b.size();
}

}  // namespace

Value Value::undefined(std::string why) {
  return Value(Undefined{std::make_shared<const std::string>(std::move(why))});
}

Value Value::text(std::string bytes) {
  return Value(Text{std::make_shared<const std::string>(std::move(bytes)), false});
}

Value Value::safe_text(std::string bytes) {
  return Value(Text{std::make_shared<const std::string>(std::move(bytes)), true});
}

int depth_of(const Value& value) {
  if (value.is<std::shared_ptr<Sequence>>()) return value.as<std::shared_ptr<Sequence>>()->depth;
  if (value.is<std::shared_ptr<const Dict>>()) {
    return value.as<std::shared_ptr<const Dict>>()->depth;
  }
  if (value.is<std::shared_ptr<const Callable>>()) {
    return value.as<std::shared_ptr<const Callable>>()->depth;
  }
  return 0;
}

Value make_sequence(Budget& budget, SequenceKind kind, Values items, std::string printed) {
  budget.charge(kItemCost * (items.size() + 1));
  int depth = 0;
  for (const Value& item : items) depth = std::max(depth, depth_of(item));
  const int own_depth = checked_depth(depth + 1);
  return Value(std::make_shared<Sequence>(
      Sequence{kind, std::move(items), own_depth, 0, std::move(printed)}));
}

Value& DictBuilder::slot(const Value& key, const Value& value, bool& is_new) {
  budget_.charge(kItemCost * 2);
  dict_->depth =
      checked_depth(std::max(dict_->depth, 1 + std::max(depth_of(key), depth_of(value))));
  const auto [place, inserted] =
      dict_->index_of_key.try_emplace(key_of(budget_, key), dict_->items.size());
  is_new = inserted;
  if (inserted) dict_->items.emplace_back(key, Value());
  return dict_->items[place->second].second;
}

void DictBuilder::set(const Value& key, Value value) {
  bool is_new = false;
  slot(key, value, is_new) = std::move(value);
}

void DictBuilder::add(const Value& key, Value value) {
  bool is_new = false;
  Value& place = slot(key, value, is_new);
  if (is_new) place = std::move(value);
}

Value DictBuilder::finish() {
  std::shared_ptr<const Dict> done = std::move(dict_);
  return Value(std::move(done));
}

const Value* find(Budget& budget, const Dict& dict, const Value& key) {
  const auto found = dict.index_of_key.find(key_of(budget, key));
  return found == dict.index_of_key.end() ? nullptr : &dict.items[found->second].second;
}

const Value* find(const Dict& dict, std::string_view key) {
  const auto found = dict.index_of_key.find("s" + std::string(key));
  return found == dict.index_of_key.end() ? nullptr : &dict.items[found->second].second;
}

std::string key_of(Budget& budget, const Value& value) {
  budget.charge(kStepCost);
  if (value.is_text()) {
    budget.charge(value.view().size());
    return "s" + std::string(value.view());
  }
  if (value.is_none()) return "n";
  if (value.is_undefined()) return "u";
  if (value.is_integer()) return "i" + std::to_string(value.integer());
  if (value.is<double>()) {
    const double number = value.as<double>();
    if (number == std::floor(number) && std::abs(number) < 9e18) {
      return "i" + std::to_string(static_cast<std::int64_t>(number));
    }
    return "f" + std::to_string(std::bit_cast<std::uint64_t>(number));
  }
  if (value.is<std::shared_ptr<Sequence>>()) {
    const Sequence& sequence = *value.as<std::shared_ptr<Sequence>>();
    if (sequence.kind == SequenceKind::kTuple) {
      std::string key = "t";
      for (const Value& item : sequence.items) {
        const std::string part = key_of(budget, item);
        budget.charge(part.size());
        key += std::to_string(part.size()) + ":" + part;
      }
      return key;
    }
  }
  fail("a key that is a string, a number, none or a tuple of them", "a " + type_name(value));
}

std::string type_name(const Value& value) {
  struct Name {
    std::string operator()(const Undefined&) const { return "undefined value"; }
    std::string operator()(const None&) const { return "none"; }
    std::string operator()(bool) const { return "bool"; }
    std::string operator()(std::int64_t) const { return "int"; }
    std::string operator()(double) const { return "float"; }
    std::string operator()(const Text&) const { return "str"; }
    std::string operator()(const std::shared_ptr<Sequence>& sequence) const {
      switch (sequence->kind) {
        case SequenceKind::kList:
          return "list";
        case SequenceKind::kTuple:
          return "tuple";
        case SequenceKind::kRange:
          return "range";
        case SequenceKind::kView:
          return "view of a dict";
        case SequenceKind::kGenerator:
          break;
      }
      return "generator";
    }
    std::string operator()(const std::shared_ptr<const Dict>&) const { return "dict"; }
    std::string operator()(const std::shared_ptr<const Callable>& callable) const {
      return callable->kind == CallableKind::kMacro ? "macro" : "function";
    }
    std::string operator()(Namespace*) const { return "namespace"; }
    std::string operator()(Loop*) const { return "loop"; }
  };
  return std::visit(Name{}, value.any());
}

bool is_true(const Value& value) {
  struct Truth {
    bool operator()(const Undefined&) const { return false; }
    bool operator()(const None&) const { return false; }
    bool operator()(bool truth) const { return truth; }
    bool operator()(std::int64_t number) const { return number != 0; }
    bool operator()(double number) const { return number != 0; }
    bool operator()(const Text& text) const { return !text.bytes->empty(); }
    bool operator()(const std::shared_ptr<Sequence>& sequence) const {
      return sequence->kind == SequenceKind::kGenerator || !sequence->items.empty();
    }
    bool operator()(const std::shared_ptr<const Dict>& dict) const { return !dict->items.empty(); }
    bool operator()(const std::shared_ptr<const Callable>&) const { return true; }
    bool operator()(Namespace*) const { return true; }
    bool operator()(Loop*) const { return true; }
  };
  return std::visit(Truth{}, value.any());
}

bool equal(Budget& budget, const Value& a, const Value& b) {
  budget.charge(kStepCost);
  if (a.is_number() && b.is_number()) return equal_numbers(a, b);
  if (a.any().index() != b.any().index()) return false;
  if (a.is_text()) {
    budget.charge(std::min(a.view().size(), b.view().size()));
    return a.view() == b.view();
  }
  if (a.is_undefined() || a.is_none()) return true;
  if (a.is<std::shared_ptr<Sequence>>()) {
    const auto& left = a.as<std::shared_ptr<Sequence>>();
    const auto& right = b.as<std::shared_ptr<Sequence>>();
    if (left == right) return true;
    if (left->kind != right->kind || left->kind == SequenceKind::kGenerator) return false;
    if (left->kind == SequenceKind::kView) fail("no comparison of the views of dicts");
    return equal_items(budget, left->items, right->items);
  }
  if (a.is<std::shared_ptr<const Dict>>()) {
    return equal_dicts(budget, *a.as<std::shared_ptr<const Dict>>(),
                       *b.as<std::shared_ptr<const Dict>>());
  }
  return same_object(a, b);
}

bool less(Budget& budget, const Value& a, const Value& b) {
  budget.charge(kStepCost);
  require_defined(a);
  require_defined(b);
  if (a.is_integer() && b.is_integer()) return a.integer() < b.integer();
  if (a.is_number() && b.is_number()) return a.number() < b.number();
  if (a.is_text() && b.is_text()) {
    budget.charge(std::min(a.view().size(), b.view().size()));
    return a.view() < b.view();  // the order of UTF-8 bytes is the order of code points
  }
  if (a.is<std::shared_ptr<Sequence>>() && b.is<std::shared_ptr<Sequence>>()) {
    const auto& left = a.as<std::shared_ptr<Sequence>>();
    const auto& right = b.as<std::shared_ptr<Sequence>>();
    if (left->kind == right->kind &&
        (left->kind == SequenceKind::kList || left->kind == SequenceKind::kTuple)) {
      return less_items(budget, left->items, right->items);
    }
  }
  fail("values that have an order", "a " + type_name(a) + " and a " + type_name(b));
}

std::size_t length_of(const Value& value) {
  if (value.is_undefined()) return 0;
  if (value.is_text()) return count_code_points(value.view());
  if (value.is<std::shared_ptr<const Dict>>()) {
    return value.as<std::shared_ptr<const Dict>>()->items.size();
  }
  if (value.is<std::shared_ptr<Sequence>>()) {
    const Sequence& sequence = *value.as<std::shared_ptr<Sequence>>();
    if (sequence.kind != SequenceKind::kGenerator) return sequence.items.size();
  }
  fail("a value with a length", "a " + type_name(value));
}

bool is_iterable(const Value& value) {
  return value.is_undefined() || value.is_text() || value.is<std::shared_ptr<Sequence>>() ||
         value.is<std::shared_ptr<const Dict>>();
}

std::shared_ptr<const Sequence> iterate(Budget& budget, const Value& value) {
  if (value.is<std::shared_ptr<Sequence>>()) {
    const auto& sequence = value.as<std::shared_ptr<Sequence>>();
    if (sequence->kind != SequenceKind::kGenerator) return sequence;
    budget.charge(kItemCost * items_left(*sequence));
    auto rest = std::make_shared<Sequence>();
    rest->depth = sequence->depth;
    for (; sequence->num_read < sequence->items.size(); ++sequence->num_read) {
      rest->items.push_back(sequence->items[sequence->num_read]);
    }
    return rest;
  }
  auto items = std::make_shared<Sequence>();
  if (value.is_undefined()) return items;
  if (value.is_text()) {
    const std::string_view text = value.view();
    budget.charge(kItemCost * text.size());
    for (std::size_t at = 0; at < text.size();) {
      const std::size_t start = at;
      next_code_point(text, at);
      items->items.push_back(Value::text(std::string(text.substr(start, at - start))));
    }
    return items;
  }
  if (value.is<std::shared_ptr<const Dict>>()) {
    const Dict& dict = *value.as<std::shared_ptr<const Dict>>();
    budget.charge(kItemCost * dict.items.size());
    items->depth = dict.depth;
    for (const auto& item : dict.items) items->items.push_back(item.first);
    return items;
  }
  fail("a value to loop over", "a " + type_name(value));
}

void require_defined(const Value& value) {
  if (!value.is_undefined()) return;
  const auto& why = value.as<Undefined>().why;
  fail("a value that is defined", why ? *why : "an undefined value");
}

}  // namespace tileweave::jinja
