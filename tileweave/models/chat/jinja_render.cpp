// Statements.
#include <algorithm>

#include "tileweave/models/chat/jinja_print.h"
#include "tileweave/models/chat/jinja_renderer.h"

namespace tileweave::jinja {

Renderer::Renderer(const RenderSettings& settings, const Dict& variables)
    : environment_{Budget(settings.work), settings.now, {}, 0},
      output_bytes_(settings.output_bytes),
      root_(nullptr) {
  for (const auto& [name, value] : variables.items)
    root_.values.insert_or_assign(name.view(), value);
}

std::string Renderer::render(const Body& body) {
  std::string output;
  output_ = &output;
  run(body);
  return output;
}

Renderer::Flow Renderer::run(const Body& body) {
  const Recursion recursion(environment_);
  for (const StatementPtr& statement : body) {
    const Flow flow = run(*statement);
    if (flow != Flow::kOn) return flow;
  }
  return Flow::kOn;
}

Renderer::Flow Renderer::run(const Statement& statement) {
  line_ = statement.line;
  environment_.budget.charge(kStepCost);
  switch (statement.kind) {
    case StatementKind::kData:
      write(statement.text);
      break;
    case StatementKind::kOutput:
      for (const ExpressionPtr& expression : statement.expressions) write(evaluate(*expression));
      break;
    case StatementKind::kIf:
      return run_if(statement);
    case StatementKind::kFor:
      return run_for(statement);
    case StatementKind::kSet:
      run_set(statement);
      break;
    case StatementKind::kSetBlock:
      run_set_block(statement);
      break;
    case StatementKind::kFilterBlock:
      run_filter_block(statement);
      break;
    case StatementKind::kMacro:
      define_macro(statement);
      break;
    case StatementKind::kCallBlock:
      run_call_block(statement);
      break;
    case StatementKind::kWith:
      return run_with(statement);
    case StatementKind::kGeneration:
      return run_in_scope(statement.body);
    case StatementKind::kBreak:
      return Flow::kBreak;
    case StatementKind::kContinue:
      return Flow::kContinue;
  }
  return Flow::kOn;
}

Renderer::Flow Renderer::run_if(const Statement& statement) {
  for (const Branch& branch : statement.branches) {
    if (is_true(evaluate(*branch.condition))) return run(branch.body);
  }
  return run(statement.body);
}

Renderer::Flow Renderer::run_for(const Statement& statement) {
  const Value iterable = evaluate(*statement.expressions[0]);
  line_ = statement.line;
  const std::shared_ptr<const Sequence> items = iterate(environment_.budget, iterable);
  const Target& target = statement.targets[0];
  std::size_t next = 0;
  Scope* outer = scope_;
  // Lazy: the condition of an item is asked for when the loop comes to it, or looks ahead.
  const auto passes = [&](const Value& item) {
    const OpenScope scope(*this, outer);
    assign(target, item);
    return is_true(evaluate(*statement.condition));
  };
  const auto fetch = [&]() -> std::optional<Value> {
    while (next < items->items.size()) {
      environment_.budget.charge(kStepCost);
      const Value& item = items->items[next++];
      if (!statement.condition || passes(item)) return item;
    }
    return std::nullopt;
  };

  Loop* loop = nullptr;
  if (statement.mentions.loop) {
    environment_.budget.charge(kObjectCost);
    const auto length = statement.condition ? std::nullopt : std::optional(items->items.size());
    loops_.push_back(std::make_unique<Loop>(fetch, length));
    loop = loops_.back().get();
  }
  bool is_empty = true;
  for (;;) {
    std::optional<Value> item;
    if (loop == nullptr) {
      item = fetch();
    } else if (loop->advance()) {
      item = loop->item();
    }
    if (!item) break;
    is_empty = false;
    const OpenScope scope(*this, outer);
    if (loop != nullptr) scope_->values.insert_or_assign("loop", Value(loop));
    line_ = statement.line;
    assign(target, *item);
    if (run(statement.body) == Flow::kBreak) break;
  }
  if (loop != nullptr) loop->finish();
  return is_empty && !statement.otherwise.empty() ? run_in_scope(statement.otherwise) : Flow::kOn;
}

Renderer::Flow Renderer::run_in_scope(const Body& body) {
  const OpenScope scope(*this, scope_);
  return run(body);
}

void Renderer::run_set(const Statement& statement) {
  const Value value = evaluate(*statement.expressions[0]);
  line_ = statement.line;
  assign(statement.targets[0], value);
}

void Renderer::run_set_block(const Statement& statement) {
  assign(statement.targets[0], filtered(statement, capture(statement.body)));
}

void Renderer::run_filter_block(const Statement& statement) {
  const Value text = filtered(statement, capture(statement.body));
  if (!text.is_text()) fail("a text from the filters of a block", "a " + type_name(text));
  write(text);
}

// The text of a block through the block's filters, if it has any.
Value Renderer::filtered(const Statement& statement, std::string text) {
  Value value = Value::text(std::move(text));
  if (statement.expressions.empty()) return value;
  const Value* before = std::exchange(block_text_, &value);
  Value result = evaluate(*statement.expressions[0]);
  block_text_ = before;
  return result;
}

Renderer::Flow Renderer::run_with(const Statement& statement) {
  Values values;  // all of them see the scope outside
  for (const ExpressionPtr& expression : statement.expressions) {
    values.push_back(evaluate(*expression));
  }
  const OpenScope scope(*this, scope_);
  for (std::size_t i = 0; i < values.size(); ++i) assign(statement.targets[i], values[i]);
  return run(statement.body);
}

void Renderer::run_call_block(const Statement& statement) {
  const Value caller = macro_value(statement, "caller");
  write(evaluate_call(*statement.expressions[0], &caller));
}

void Renderer::define_macro(const Statement& statement) {
  scope_->values.insert_or_assign(statement.name, macro_value(statement, statement.name));
}

Value Renderer::macro_value(const Statement& statement, std::string name) {
  environment_.budget.charge(kObjectCost);
  for (Scope* scope = scope_; scope != nullptr && !scope->is_kept; scope = scope->parent) {
    scope->is_kept = true;
  }
  auto macro = std::make_shared<Callable>();
  macro->kind = CallableKind::kMacro;
  macro->name = std::move(name);
  macro->macro = &statement;
  macro->scope = scope_;
  return Value(std::shared_ptr<const Callable>(std::move(macro)));
}

void Renderer::assign(const Target& target, const Value& value) {
  environment_.budget.charge(kStepCost);
  switch (target.kind) {
    case Target::Kind::kName:
      environment_.budget.charge(kItemCost);
      scope_->values.insert_or_assign(target.name, value);
      return;
    case Target::Kind::kAttribute: {
      const Value* object = find_variable(target.name);
      if (object == nullptr || !object->is<Namespace*>()) {
        fail("a namespace whose attribute is set",
             "'" + target.name + "', " +
                 (object == nullptr ? "which is not defined" : "a " + type_name(*object)));
      }
      if (target.attribute.starts_with('_')) {
        fail("names of a namespace that do not start with '_'", "'" + target.attribute + "'");
      }
      environment_.budget.charge(kItemCost);
      object->as<Namespace*>()->attributes.insert_or_assign(target.attribute, value);
      return;
    }
    case Target::Kind::kTuple:
      break;
  }
  const auto items = iterate(environment_.budget, value);
  if (items->items.size() != target.parts.size()) {
    fail(std::to_string(target.parts.size()) + " values to unpack",
         std::to_string(items->items.size()));
  }
  for (std::size_t i = 0; i < target.parts.size(); ++i) assign(target.parts[i], items->items[i]);
}

void Renderer::write(std::string_view text) {
  environment_.budget.charge(text.size());
  if (text.size() > output_bytes_ - std::min(output_bytes_, output_->size())) {
    fail("an output of at most " + std::to_string(output_bytes_) + " bytes");
  }
  *output_ += text;
}

void Renderer::write(const Value& value) {
  if (value.is_text()) {
    write(value.view());
  } else {
    write(to_text(environment_.budget, value));
  }
}

std::string Renderer::capture(const Body& body) {
  std::string text;
  std::string* before = std::exchange(output_, &text);
  run_in_scope(body);
  output_ = before;
  return text;
}

}  // namespace tileweave::jinja
