// value.name, value[key], and the attributes of a loop.
#include "tileweave/models/chat/jinja_builtins.h"
#include "tileweave/models/chat/jinja_operators.h"
#include "tileweave/models/chat/jinja_text.h"

namespace tileweave::jinja {
namespace {

Value bound_method(Environment& environment, const Value& self, const std::string& name) {
  environment.budget.charge(kItemCost);
  if (changes_its_object(self, name)) {
    return Value::undefined("'" + name + "' of a " + type_name(self) + ", which would change it");
  }
  auto method = std::make_shared<Callable>();
  method->kind = CallableKind::kMethod;
  method->name = name;
  method->self = self;
  method->depth = depth_of(self) + 1;
  return Value(std::shared_ptr<const Callable>(std::move(method)));
}

Value no_attribute(const Value& value, const std::string& name) {
  return Value::undefined("'" + name + "', which a " + type_name(value) + " does not have");
}

Value attribute_of_object(Environment& environment, const Value& value, const std::string& name) {
  if (value.is<Loop*>()) return value.as<Loop*>()->attribute(name);
  if (value.is<Namespace*>()) {
    const auto& attributes = value.as<Namespace*>()->attributes;
    const auto found = attributes.find(name);
    if (found != attributes.end()) return found->second;
  }
  if (has_method(value, name)) return bound_method(environment, value, name);
  return no_attribute(value, name);
}

}  // namespace

Value attribute_of(Environment& environment, const Value& value, const std::string& name) {
  environment.budget.charge(kStepCost);
  require_defined(value);
  // Methods come before keys, as in Jinja: {"items": 1}.items is the method.
  if (value.is<std::shared_ptr<const Dict>>() && !has_method(value, name)) {
    const Value* found = find(*value.as<std::shared_ptr<const Dict>>(), name);
    return found != nullptr ? *found : no_attribute(value, name);
  }
  return attribute_of_object(environment, value, name);
}

Value item_of(Environment& environment, const Value& value, const Value& key) {
  environment.budget.charge(kStepCost);
  require_defined(value);
  if (value.is<std::shared_ptr<const Dict>>()) {
    const bool is_container = key.is<std::shared_ptr<const Dict>>() ||
                              (key.is<std::shared_ptr<Sequence>>() &&
                               key.as<std::shared_ptr<Sequence>>()->kind != SequenceKind::kTuple);
    if (!is_container) {
      const Value* found = find(environment.budget, *value.as<std::shared_ptr<const Dict>>(), key);
      if (found != nullptr) return *found;
    }
  } else if (key.is_integer()) {
    const bool has_order =
        value.is_text() ||
        (value.is<std::shared_ptr<Sequence>>() &&
         value.as<std::shared_ptr<Sequence>>()->kind != SequenceKind::kView &&
         value.as<std::shared_ptr<Sequence>>()->kind != SequenceKind::kGenerator);
    if (has_order) {
      if (auto found = at_index(environment.budget, value, key.integer())) return *found;
      return Value::undefined("item " + std::to_string(key.integer()) + " of a " +
                              type_name(value) + " without it");
    }
  }
  if (key.is_text()) return attribute_of_object(environment, value, std::string(key.view()));
  return Value::undefined("an item of a " + type_name(value) + " that it does not have");
}

bool Loop::advance() {
  std::optional<Value> next = std::move(peek());
  has_peeked_ = false;
  next_.reset();
  if (!next) return false;
  ++index0_;
  previous_ = std::move(current_);
  current_ = std::move(*next);
  return true;
}

std::optional<Value>& Loop::peek() {
  if (!has_peeked_) {
    has_peeked_ = true;
    if (num_replayed_ < read_ahead_.size()) {
      next_ = read_ahead_[num_replayed_++];
    } else {
      next_ = source_();
    }
  }
  return next_;
}

std::int64_t Loop::length() {
  if (!length_) {
    const std::size_t num_known =
        static_cast<std::size_t>(index0_ + 1) + (has_peeked_ && next_ ? 1 : 0);
    if (!has_peeked_ || next_) {
      while (std::optional<Value> item = source_()) read_ahead_.push_back(std::move(*item));
    }
    length_ = num_known + read_ahead_.size();
  }
  return static_cast<std::int64_t>(*length_);
}

Value Loop::attribute(const std::string& name) {
  if (name == "index0") return index0_;
  if (name == "index") return index0_ + 1;
  if (name == "first") return index0_ == 0;
  if (name == "last") return !peek().has_value();
  if (name == "length") return length();
  if (name == "revindex0") return length() - index0_ - 1;
  if (name == "revindex") return length() - index0_;
  if (name == "depth0") return std::int64_t{0};
  if (name == "depth") return std::int64_t{1};
  if (name == "previtem") {
    return index0_ == 0 ? Value::undefined("the item before the first of a loop") : previous_;
  }
  if (name == "nextitem") {
    const std::optional<Value>& next = peek();
    return next ? *next : Value::undefined("the item after the last of a loop");
  }
  if (name == "cycle" || name == "changed") {
    auto method = std::make_shared<Callable>();
    method->kind = CallableKind::kMethod;
    method->name = name;
    method->self = this;
    return Value(std::shared_ptr<const Callable>(std::move(method)));
  }
  return Value::undefined("'" + name + "', which a loop does not have");
}

Value Loop::call(Environment& environment, std::string_view method, const Arguments& arguments) {
  if (!arguments.named.empty()) fail("the methods of a loop with positional arguments");
  const Values& values = arguments.positional;
  if (method == "cycle") {
    if (values.empty()) fail("items for 'cycle' to choose from");
    return values[static_cast<std::size_t>(index0_) % values.size()];
  }
  const bool is_same = last_changed_ && last_changed_->size() == values.size() && [&] {
    for (std::size_t i = 0; i < values.size(); ++i) {
      if (!equal(environment.budget, (*last_changed_)[i], values[i])) return false;
    }
    return true;
  }();
  if (!is_same) last_changed_ = values;
  return !is_same;
}

}  // namespace tileweave::jinja
