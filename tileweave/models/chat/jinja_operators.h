// The operators of expressions, with Python's meaning.
//
// Integers are 64-bit: what would not fit is a Fault, never a wrong number. Results are charged
// before they are built.
#pragma once

#include <optional>
#include <string>

#include "tileweave/models/chat/jinja_value.h"

namespace tileweave::jinja {

enum class Operator {
  kAdd,
  kSubtract,
  kMultiply,
  kDivide,
  kFloorDivide,
  kModulo,
  kPower,
  kEqual,
  kNotEqual,
  kLess,
  kLessEqual,
  kGreater,
  kGreaterEqual,
  kIn,
  kNotIn,
};

/// The operator as templates write it: "+", "not in".
const char* spelling(Operator op);

Value arithmetic(Budget& budget, Operator op, const Value& a, const Value& b);
bool compare(Budget& budget, Operator op, const Value& a, const Value& b);
Value negate(const Value& value);
Value positive(const Value& value);

/// `item in container`.
bool contains(Budget& budget, const Value& container, const Value& item);

/// value[begin:end:step]; an absent bound is one that was left out.
struct SliceBounds {
  std::optional<std::int64_t> begin;
  std::optional<std::int64_t> end;
  std::optional<std::int64_t> step;
};
Value slice(Budget& budget, const Value& value, const SliceBounds& bounds);

/// value[index] for a string or sequence; nullopt where Python raises IndexError.
std::optional<Value> at_index(Budget& budget, const Value& value, std::int64_t index);

}  // namespace tileweave::jinja
