// Tests: what may follow `is`, and what select and its like take.
#include "tileweave/models/chat/jinja_builtins.h"
#include "tileweave/models/chat/jinja_operators.h"
#include "tileweave/models/chat/jinja_print.h"
#include "tileweave/models/chat/jinja_text.h"

namespace tileweave::jinja {
namespace {

using Operands = const Value&;

struct Test {
  std::string_view name;
  bool (*call)(Environment&, Operands value, Operands argument);
  std::size_t num_arguments = 0;
};

bool is_sequence(Operands value) {
  if (value.is_undefined() || value.is_text()) return true;
  if (value.is<std::shared_ptr<const Dict>>()) return true;
  if (!value.is<std::shared_ptr<Sequence>>()) return false;
  const SequenceKind kind = value.as<std::shared_ptr<Sequence>>()->kind;
  return kind != SequenceKind::kView && kind != SequenceKind::kGenerator;
}

bool is_callable(Operands value) {
  return value.is_undefined() || value.is<std::shared_ptr<const Callable>>() || value.is<Loop*>();
}

bool is_multiple(Environment& environment, Operands value, Operands divisor, std::int64_t rest) {
  require_defined(value);
  if (!value.is_number()) fail("a number to test", "a " + type_name(value));
  return equal(environment.budget,
               arithmetic(environment.budget, Operator::kModulo, value, divisor), rest);
}

template <bool (*kHolds)(std::string_view)>
bool has_case(Environment& environment, Operands value, Operands) {
  const std::string text = to_text(environment.budget, value);
  environment.budget.charge(text.size() * 8);
  return kHolds(text);
}

bool is_same(Environment& environment, Operands a, Operands b) {
  if (a.any().index() != b.any().index()) return false;
  if (a.is<std::shared_ptr<Sequence>>()) {
    return a.as<std::shared_ptr<Sequence>>() == b.as<std::shared_ptr<Sequence>>();
  }
  if (a.is<std::shared_ptr<const Dict>>()) {
    return a.as<std::shared_ptr<const Dict>>() == b.as<std::shared_ptr<const Dict>>();
  }
  if (a.is_text() || a.is<std::int64_t>() || a.is<double>() || a.is_undefined()) {
    fail("none, booleans, lists or dicts for the test 'sameas'", "a " + type_name(a));
  }
  return equal(environment.budget, a, b);
}

template <Operator kOperator>
bool compared(Environment& environment, Operands a, Operands b) {
  return compare(environment.budget, kOperator, a, b);
}

constexpr Test kTests[] = {
    {"!=", compared<Operator::kNotEqual>, 1},
    {"<", compared<Operator::kLess>, 1},
    {"<=", compared<Operator::kLessEqual>, 1},
    {"==", compared<Operator::kEqual>, 1},
    {">", compared<Operator::kGreater>, 1},
    {">=", compared<Operator::kGreaterEqual>, 1},
    {"boolean", [](Environment&, Operands value, Operands) { return value.is<bool>(); }},
    {"callable", [](Environment&, Operands value, Operands) { return is_callable(value); }},
    {"defined", [](Environment&, Operands value, Operands) { return !value.is_undefined(); }},
    {"divisibleby",
     [](Environment& environment, Operands value, Operands divisor) {
       return is_multiple(environment, value, divisor, 0);
     },
     1},
    {"eq", compared<Operator::kEqual>, 1},
    {"equalto", compared<Operator::kEqual>, 1},
    {"escaped", [](Environment&, Operands value, Operands) { return value.is_safe(); }},
    {"even", [](Environment& environment, Operands value,
                Operands) { return is_multiple(environment, value, std::int64_t{2}, 0); }},
    {"false",
     [](Environment&, Operands value, Operands) { return value.is<bool>() && !value.as<bool>(); }},
    {"float", [](Environment&, Operands value, Operands) { return value.is<double>(); }},
    {"ge", compared<Operator::kGreaterEqual>, 1},
    {"greaterthan", compared<Operator::kGreater>, 1},
    {"gt", compared<Operator::kGreater>, 1},
    {"in", compared<Operator::kIn>, 1},
    {"integer", [](Environment&, Operands value, Operands) { return value.is<std::int64_t>(); }},
    {"iterable", [](Environment&, Operands value, Operands) { return is_iterable(value); }},
    {"le", compared<Operator::kLessEqual>, 1},
    {"lessthan", compared<Operator::kLess>, 1},
    {"lower", has_case<is_all_lower>},
    {"lt", compared<Operator::kLess>, 1},
    {"mapping", [](Environment&, Operands value,
                   Operands) { return value.is<std::shared_ptr<const Dict>>(); }},
    {"ne", compared<Operator::kNotEqual>, 1},
    {"none", [](Environment&, Operands value, Operands) { return value.is_none(); }},
    {"number", [](Environment&, Operands value, Operands) { return value.is_number(); }},
    {"odd", [](Environment& environment, Operands value,
               Operands) { return is_multiple(environment, value, std::int64_t{2}, 1); }},
    {"sameas", is_same, 1},
    {"sequence", [](Environment&, Operands value, Operands) { return is_sequence(value); }},
    {"string", [](Environment&, Operands value, Operands) { return value.is_text(); }},
    {"true",
     [](Environment&, Operands value, Operands) { return value.is<bool>() && value.as<bool>(); }},
    {"undefined", [](Environment&, Operands value, Operands) { return value.is_undefined(); }},
    {"upper", has_case<is_all_upper>},
};

const Test* find_test(std::string_view name) {
  for (const Test& test : kTests) {
    if (test.name == name) return &test;
  }
  return nullptr;
}

}  // namespace

bool is_test(std::string_view name) {
  return find_test(name) != nullptr;
}

bool call_test(Environment& environment, std::string_view name, const Value& input,
               const Arguments& arguments) {
  environment.budget.charge(kStepCost);
  const Test& test = *find_test(name);
  if (!arguments.named.empty() || arguments.positional.size() != test.num_arguments) {
    fail("the test '" + std::string(name) + "' with " + std::to_string(test.num_arguments) +
             " arguments",
         std::to_string(arguments.positional.size() + arguments.named.size()));
  }
  return test.call(environment, input,
                   arguments.positional.empty() ? Value() : arguments.positional[0]);
}

}  // namespace tileweave::jinja
