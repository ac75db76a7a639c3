// Expressions and calls.
#include <algorithm>

#include "tileweave/models/chat/jinja_operators.h"
#include "tileweave/models/chat/jinja_print.h"
#include "tileweave/models/chat/jinja_renderer.h"
#include "tileweave/models/chat/jinja_text.h"

namespace tileweave::jinja {
namespace {

// Python: an index is an integer, none is an absent bound.
std::optional<std::int64_t> bound_of(const Value& value) {
  require_defined(value);
  if (value.is_none()) return std::nullopt;
  if (!value.is_integer()) fail("integers as the bounds of a slice", "a " + type_name(value));
  return value.integer();
}

}  // namespace

Value Renderer::evaluate(const Expression& expression) {
  const Recursion recursion(environment_);
  environment_.budget.charge(kStepCost);
  line_ = expression.line;
  switch (expression.kind) {
    case ExpressionKind::kConstant:
      return expression.constant;
    case ExpressionKind::kName:
      return evaluate_name(expression);
    case ExpressionKind::kList:
    case ExpressionKind::kTuple:
      return evaluate_items(expression);
    case ExpressionKind::kDict:
      return evaluate_dict(expression);
    case ExpressionKind::kSlice:
      return evaluate_slice(expression);
    case ExpressionKind::kCall:
      return evaluate_call(expression, nullptr);
    case ExpressionKind::kFilter:
    case ExpressionKind::kTest:
      return evaluate_filter(expression);
    case ExpressionKind::kAnd: {
      Value left = evaluate(*expression.children[0]);
      return is_true(left) ? evaluate(*expression.children[1]) : left;
    }
    case ExpressionKind::kOr: {
      Value left = evaluate(*expression.children[0]);
      return is_true(left) ? left : evaluate(*expression.children[1]);
    }
    case ExpressionKind::kComparison:
      return evaluate_comparison(expression);
    case ExpressionKind::kConcatenation:
      return evaluate_concatenation(expression);
    case ExpressionKind::kConditional:
      return evaluate_conditional(expression);
    case ExpressionKind::kBlockText:
      return *block_text_;
    default:
      return evaluate_operator(expression);
  }
}

const Value* Renderer::find_variable(std::string_view name) const {
  for (const Scope* scope = scope_; scope != nullptr; scope = scope->parent) {
    const auto found = scope->values.find(name);
    if (found != scope->values.end()) return &found->second;
  }
  return nullptr;
}

Value Renderer::evaluate_name(const Expression& expression) {
  if (const Value* found = find_variable(expression.name)) return *found;
  if (!is_function(expression.name)) {
    return Value::undefined("'" + expression.name + "', which is not defined");
  }
  auto function = std::make_shared<Callable>();
  function->name = expression.name;
  return Value(std::shared_ptr<const Callable>(std::move(function)));
}

Value Renderer::evaluate_items(const Expression& expression) {
  Values items;
  for (const ExpressionPtr& child : expression.children) items.push_back(evaluate(*child));
  const bool is_list = expression.kind == ExpressionKind::kList;
  return make_sequence(environment_.budget, is_list ? SequenceKind::kList : SequenceKind::kTuple,
                       std::move(items));
}

Value Renderer::evaluate_dict(const Expression& expression) {
  DictBuilder builder(environment_.budget);
  for (std::size_t i = 0; i < expression.children.size(); i += 2) {
    const Value key = evaluate(*expression.children[i]);
    Value value = evaluate(*expression.children[i + 1]);
    line_ = expression.line;
    builder.set(key, std::move(value));
  }
  return builder.finish();
}

Value Renderer::evaluate_slice(const Expression& expression) {
  const Value object = evaluate(*expression.children[0]);
  const auto bound = [&](std::size_t i) -> std::optional<std::int64_t> {
    return expression.children[i] ? bound_of(evaluate(*expression.children[i])) : std::nullopt;
  };
  SliceBounds bounds;
  bounds.begin = bound(1);
  bounds.end = bound(2);
  bounds.step = bound(3);
  line_ = expression.line;
  return slice(environment_.budget, object, bounds);
}

Value Renderer::evaluate_comparison(const Expression& expression) {
  Value left = evaluate(*expression.children[0]);
  for (std::size_t i = 0; i < expression.operators.size(); ++i) {
    Value right = evaluate(*expression.children[i + 1]);
    line_ = expression.line;
    if (!compare(environment_.budget, expression.operators[i], left, right)) return false;
    left = std::move(right);
  }
  return true;
}

Value Renderer::evaluate_concatenation(const Expression& expression) {
  std::string text;
  for (const ExpressionPtr& child : expression.children) {
    text += to_text(environment_.budget, evaluate(*child));
  }
  return Value::text(std::move(text));
}

Value Renderer::evaluate_conditional(const Expression& expression) {
  if (is_true(evaluate(*expression.children[1]))) return evaluate(*expression.children[0]);
  if (expression.children[2]) return evaluate(*expression.children[2]);
  return Value::undefined("the value of an if without else whose condition is false");
}

// Attributes, subscripts, signs, not and arithmetic.
Value Renderer::evaluate_operator(const Expression& expression) {
  const Value first = evaluate(*expression.children[0]);
  const Value second = expression.children.size() > 1 ? evaluate(*expression.children[1]) : Value();
  line_ = expression.line;
  switch (expression.kind) {
    case ExpressionKind::kAttribute:
      return attribute_of(environment_, first, expression.name);
    case ExpressionKind::kSubscript:
      return item_of(environment_, first, second);
    case ExpressionKind::kNegative:
      return negate(first);
    case ExpressionKind::kPositive:
      return positive(first);
    case ExpressionKind::kNot:
      return !is_true(first);
    default:
      return arithmetic(environment_.budget, expression.operators[0], first, second);
  }
}

Value Renderer::evaluate_filter(const Expression& expression) {
  const Value input = evaluate(*expression.children[0]);
  const Arguments arguments = evaluate_arguments(expression);
  line_ = expression.line;
  if (expression.kind == ExpressionKind::kTest) {
    return call_test(environment_, expression.name, input, arguments);
  }
  return call_filter(environment_, expression.name, input, arguments);
}

Arguments Renderer::evaluate_arguments(const Expression& expression) {
  Arguments arguments;
  for (std::size_t i = 1; i < expression.children.size(); ++i) {
    arguments.positional.push_back(evaluate(*expression.children[i]));
  }
  for (const auto& [name, value] : expression.named) {
    arguments.named.emplace_back(name, evaluate(*value));
  }
  return arguments;
}

Value Renderer::evaluate_call(const Expression& expression, const Value* caller) {
  const Value callee = evaluate(*expression.children[0]);
  Arguments arguments = evaluate_arguments(expression);
  if (caller != nullptr) arguments.named.emplace_back("caller", *caller);
  line_ = expression.line;
  return call(callee, arguments);
}

Value Renderer::call(const Value& callee, const Arguments& arguments) {
  require_defined(callee);
  if (!callee.is<std::shared_ptr<const Callable>>()) {
    fail("a macro, a method or a function to call", "a " + type_name(callee));
  }
  const Callable& callable = *callee.as<std::shared_ptr<const Callable>>();
  switch (callable.kind) {
    case CallableKind::kMacro:
      return call_macro(callable, arguments);
    case CallableKind::kMethod:
      return call_method(environment_, callable, arguments);
    case CallableKind::kFunction:
      break;
  }
  return call_function(environment_, callable.name, arguments);
}

Value Renderer::call_macro(const Callable& macro, const Arguments& arguments) {
  const Recursion recursion(environment_);
  std::string text;
  std::string* before = std::exchange(output_, &text);
  {
    const OpenScope scope(*this, macro.scope);
    bind_parameters(*macro.macro, arguments);
    run(macro.macro->body);
  }
  output_ = before;
  return Value::text(std::move(text));
}

void Renderer::bind_parameters(const Statement& macro, const Arguments& arguments) {
  const std::size_t num_positional = std::min(arguments.positional.size(), macro.parameters.size());
  for (std::size_t i = 0; i < num_positional; ++i) {
    scope_->values.insert_or_assign(macro.parameters[i].name, arguments.positional[i]);
  }
  bind_extra(macro, arguments);
  const auto begin = macro.parameters.begin() + static_cast<std::ptrdiff_t>(num_positional);
  std::vector<const Parameter*> missing;
  for (auto parameter = begin; parameter != macro.parameters.end(); ++parameter) {
    const auto given =
        std::find_if(arguments.named.begin(), arguments.named.end(),
                     [&](const auto& named) { return named.first == parameter->name; });
    if (given != arguments.named.end()) {
      scope_->values.insert_or_assign(parameter->name, given->second);
    } else {
      missing.push_back(&*parameter);
    }
  }
  for (const Parameter* parameter : missing) {  // a default may refer to the others
    Value value = parameter->otherwise
                      ? evaluate(*parameter->otherwise)
                      : Value::undefined("the parameter '" + parameter->name + "', not given");
    scope_->values.insert_or_assign(parameter->name, std::move(value));
  }
}

// What is left over: varargs, kwargs and caller, where the macro mentions them.
void Renderer::bind_extra(const Statement& macro, const Arguments& arguments) {
  const auto num_parameters = static_cast<std::ptrdiff_t>(macro.parameters.size());
  const auto num_positional = static_cast<std::ptrdiff_t>(arguments.positional.size());
  if (macro.mentions.varargs) {
    Values rest;
    if (num_positional > num_parameters) {
      rest.assign(arguments.positional.begin() + num_parameters, arguments.positional.end());
    }
    scope_->values.insert_or_assign(
        "varargs", make_sequence(environment_.budget, SequenceKind::kTuple, std::move(rest)));
  } else if (num_positional > num_parameters) {
    fail("a call of '" + macro.name + "' with at most " + std::to_string(num_parameters) +
             " arguments",
         std::to_string(num_positional));
  }
  DictBuilder kwargs(environment_.budget);
  for (const auto& [name, value] : arguments.named) {
    std::size_t at = 0;
    while (at < macro.parameters.size() && macro.parameters[at].name != name) ++at;
    const bool is_parameter = at < macro.parameters.size();
    if (is_parameter && at >= arguments.positional.size()) continue;
    if (!is_parameter && name == "caller" && macro.mentions.caller) {
      scope_->values.insert_or_assign("caller", value);
    } else if (macro.mentions.kwargs) {
      kwargs.set(Value::text(name), value);
    } else {
      fail("a call of '" + macro.name + "' with the parameters that it has", "'" + name + "'");
    }
  }
  if (macro.mentions.kwargs) scope_->values.insert_or_assign("kwargs", kwargs.finish());
}

}  // namespace tileweave::jinja
