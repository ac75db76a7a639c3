#include "tileweave/models/chat/jinja_operators.h"

#include <algorithm>
#include <cmath>

#include "tileweave/models/chat/jinja_print.h"
#include "tileweave/models/chat/jinja_text.h"

namespace tileweave::jinja {
namespace {

constexpr std::uint64_t kMaxLength = std::uint64_t{1} << 31;

[[noreturn]] void fail_operands(Operator op, const Value& a, const Value& b) {
  fail(std::string("operands that '") + spelling(op) + "' takes",
       "a " + type_name(a) + " and a " + type_name(b));
}

void require_fit(bool overflows) {
  if (overflows) fail("integers that fit 64 bits");
}

// `compute` says whether it overflows and gives the result.
template <class Compute>
std::int64_t fitting(const Compute& compute) {
  std::int64_t result = 0;
  require_fit(compute(result));
  return result;
}

void require_divisor(bool is_zero) {
  if (is_zero) fail("a divisor other than zero");
}

std::int64_t integer_power(std::int64_t base, std::int64_t exponent) {
  std::int64_t result = 1;
  bool overflows = false;
  for (; exponent > 0; exponent >>= 1) {
    if ((exponent & 1) != 0) overflows = overflows || __builtin_mul_overflow(result, base, &result);
    // The square of the last round is not used.
    if (exponent > 1) overflows = overflows || __builtin_mul_overflow(base, base, &base);
    if (overflows) break;
  }
  require_fit(overflows);
  return result;
}

Value integers(Operator op, std::int64_t a, std::int64_t b) {
  const auto subtract = [](std::int64_t from, std::int64_t number) {
    return fitting([&](std::int64_t& to) { return __builtin_sub_overflow(from, number, &to); });
  };
  switch (op) {
    case Operator::kAdd:
      return fitting([&](std::int64_t& to) { return __builtin_add_overflow(a, b, &to); });
    case Operator::kSubtract:
      return subtract(a, b);
    case Operator::kMultiply:
      return fitting([&](std::int64_t& to) { return __builtin_mul_overflow(a, b, &to); });
    case Operator::kDivide:
      require_divisor(b == 0);
      return static_cast<double>(a) / static_cast<double>(b);
    case Operator::kFloorDivide:
      require_divisor(b == 0);
      if (b == -1) return subtract(0, a);
      return a / b - (a % b != 0 && ((a < 0) != (b < 0)) ? 1 : 0);
    case Operator::kModulo:
      require_divisor(b == 0);
      if (b == -1) return std::int64_t{0};
      return a % b + (a % b != 0 && ((a < 0) != (b < 0)) ? b : 0);
    default:
      break;
  }
  if (b >= 0) return integer_power(a, b);
  require_divisor(a == 0);
  return std::pow(static_cast<double>(a), static_cast<double>(b));
}

double float_modulo(double a, double b) {
  double rest = std::fmod(a, b);
  if (rest == 0) return std::copysign(0.0, b);
  return (b < 0) != (rest < 0) ? rest + b : rest;
}

double float_floor_divide(double a, double b) {
  const double rest = std::fmod(a, b);
  double quotient = (a - rest) / b;
  if (rest != 0 && (b < 0) != (rest < 0)) quotient -= 1;
  if (quotient == 0) return std::copysign(0.0, a / b);
  const double floor = std::floor(quotient);
  return quotient - floor > 0.5 ? floor + 1 : floor;
}

double float_power(double a, double b) {
  if (a == 0 && b < 0) require_divisor(true);
  const double result = std::pow(a, b);
  if (std::isnan(result) && !std::isnan(a) && !std::isnan(b)) fail("a power that is a real number");
  if (std::isinf(result) && std::isfinite(a) && std::isfinite(b)) fail("a power that fits a float");
  return result;
}

Value floats(Operator op, double a, double b) {
  switch (op) {
    case Operator::kAdd:
      return a + b;
    case Operator::kSubtract:
      return a - b;
    case Operator::kMultiply:
      return a * b;
    case Operator::kDivide:
      require_divisor(b == 0);
      return a / b;
    case Operator::kFloorDivide:
      require_divisor(b == 0);
      return float_floor_divide(a, b);
    case Operator::kModulo:
      require_divisor(b == 0);
      return float_modulo(a, b);
    default:
      return float_power(a, b);
  }
}

Value joined_text(Budget& budget, const Value& a, const Value& b) {
  budget.charge(a.view().size() + b.view().size());
  const bool is_safe = a.is_safe() || b.is_safe();
  const auto part = [&](const Value& value) {
    return is_safe && !value.is_safe() ? escape_html(value.view()) : std::string(value.view());
  };
  if (!is_safe) return Value::text(std::string(a.view()).append(b.view()));
  return Value::safe_text(part(a) + part(b));
}

bool is_plain(const Value& value, SequenceKind kind) {
  return value.is<std::shared_ptr<Sequence>>() &&
         value.as<std::shared_ptr<Sequence>>()->kind == kind;
}

const Values& items_of(const Value& value) {
  return value.as<std::shared_ptr<Sequence>>()->items;
}

Value joined_items(Budget& budget, const Value& a, const Value& b) {
  budget.charge(kItemCost * (items_of(a).size() + items_of(b).size()));
  Values items = items_of(a);
  items.insert(items.end(), items_of(b).begin(), items_of(b).end());
  return make_sequence(budget, a.as<std::shared_ptr<Sequence>>()->kind, std::move(items));
}

std::uint64_t checked_repetitions(std::uint64_t length, std::int64_t times) {
  const std::uint64_t count = times < 0 ? 0 : static_cast<std::uint64_t>(times);
  if (length != 0 && count > kMaxLength / length) fail("a repetition of a bounded length");
  return count;
}

Value repeated(Budget& budget, const Value& value, std::int64_t times) {
  if (value.is_text()) {
    const std::uint64_t count = checked_repetitions(value.view().size(), times);
    budget.charge(count + count * value.view().size());
    std::string text;
    if (!value.view().empty()) {
      for (std::uint64_t i = 0; i < count; ++i) text += value.view();
    }
    return value.is_safe() ? Value::safe_text(std::move(text)) : Value::text(std::move(text));
  }
  const Values& source = items_of(value);
  const std::uint64_t count = checked_repetitions(source.size(), times);
  budget.charge(count + kItemCost * count * source.size());
  Values items;
  if (!source.empty()) {
    for (std::uint64_t i = 0; i < count; ++i) {
      items.insert(items.end(), source.begin(), source.end());
    }
  }
  return make_sequence(budget, value.as<std::shared_ptr<Sequence>>()->kind, std::move(items));
}

bool can_repeat(const Value& value) {
  return value.is_text() || is_plain(value, SequenceKind::kList) ||
         is_plain(value, SequenceKind::kTuple);
}

// Python's slice.indices: where to start, how many to take.
struct Walk {
  std::int64_t start;
  std::int64_t count;
  std::int64_t step;
};

Walk walk_of(const SliceBounds& bounds, std::int64_t length) {
  const std::int64_t step = bounds.step.value_or(1);
  if (step == 0) fail("a slice whose step is not zero");
  if (step == INT64_MIN) fail("integers that fit 64 bits");
  const std::int64_t lowest = step < 0 ? -1 : 0;
  const std::int64_t highest = step < 0 ? length - 1 : length;
  const auto bounded = [&](std::optional<std::int64_t> bound, std::int64_t otherwise) {
    if (!bound) return otherwise;
    const std::int64_t position = *bound < 0 ? *bound + length : *bound;
    return std::clamp(position, lowest, highest);
  };
  const std::int64_t begin = bounded(bounds.begin, step < 0 ? highest : lowest);
  const std::int64_t end = bounded(bounds.end, step < 0 ? lowest : highest);
  const std::int64_t span = step < 0 ? begin - end : end - begin;
  const std::int64_t stride = step < 0 ? -step : step;
  return {begin, span <= 0 ? 0 : (span - 1) / stride + 1, step};
}

Value slice_of_text(Budget& budget, const Value& value, const SliceBounds& bounds) {
  const std::string_view text = value.view();
  budget.charge(text.size() * 9);
  std::vector<std::size_t> starts;
  for (std::size_t at = 0; at < text.size(); next_code_point(text, at)) starts.push_back(at);
  starts.push_back(text.size());
  const Walk walk = walk_of(bounds, static_cast<std::int64_t>(starts.size()) - 1);
  std::string out;
  for (std::int64_t i = 0; i < walk.count; ++i) {
    const auto at = static_cast<std::size_t>(walk.start + i * walk.step);
    out += text.substr(starts[at], starts[at + 1] - starts[at]);
  }
  return value.is_safe() ? Value::safe_text(std::move(out)) : Value::text(std::move(out));
}

}  // namespace

const char* spelling(Operator op) {
  switch (op) {
    case Operator::kAdd:
      return "+";
    case Operator::kSubtract:
      return "-";
    case Operator::kMultiply:
      return "*";
    case Operator::kDivide:
      return "/";
    case Operator::kFloorDivide:
      return "//";
    case Operator::kModulo:
      return "%";
    case Operator::kPower:
      return "**";
    case Operator::kEqual:
      return "==";
    case Operator::kNotEqual:
      return "!=";
    case Operator::kLess:
      return "<";
    case Operator::kLessEqual:
      return "<=";
    case Operator::kGreater:
      return ">";
    case Operator::kGreaterEqual:
      return ">=";
    case Operator::kIn:
      return "in";
    case Operator::kNotIn:
      return "not in";
  }
  return "?";
}

Value arithmetic(Budget& budget, Operator op, const Value& a, const Value& b) {
  require_defined(a);
  if (op == Operator::kModulo && a.is_text()) {
    if (a.is_safe()) fail("no % on a safe string");
    return Value::text(format_percent(budget, a.view(), b));
  }
  require_defined(b);
  if (a.is_integer() && b.is_integer()) return integers(op, a.integer(), b.integer());
  if (a.is_number() && b.is_number()) return floats(op, a.number(), b.number());
  if (op == Operator::kAdd) {
    if (a.is_text() && b.is_text()) return joined_text(budget, a, b);
    for (const SequenceKind kind : {SequenceKind::kList, SequenceKind::kTuple}) {
      if (is_plain(a, kind) && is_plain(b, kind)) return joined_items(budget, a, b);
    }
  }
  if (op == Operator::kMultiply) {
    if (can_repeat(a) && b.is_integer()) return repeated(budget, a, b.integer());
    if (can_repeat(b) && a.is_integer()) return repeated(budget, b, a.integer());
  }
  fail_operands(op, a, b);
}

bool compare(Budget& budget, Operator op, const Value& a, const Value& b) {
  switch (op) {
    case Operator::kEqual:
      return equal(budget, a, b);
    case Operator::kNotEqual:
      return !equal(budget, a, b);
    case Operator::kLess:
      return less(budget, a, b);
    case Operator::kGreater:
      return less(budget, b, a);
    case Operator::kLessEqual:
      return less(budget, a, b) || equal(budget, a, b);
    case Operator::kGreaterEqual:
      return less(budget, b, a) || equal(budget, a, b);
    case Operator::kIn:
      return contains(budget, b, a);
    default:
      return !contains(budget, b, a);
  }
}

Value negate(const Value& value) {
  require_defined(value);
  if (value.is_integer()) return integers(Operator::kSubtract, 0, value.integer());
  if (value.is<double>()) return -value.as<double>();
  fail("a number after '-'", "a " + type_name(value));
}

Value positive(const Value& value) {
  require_defined(value);
  if (value.is_integer()) return value.integer();
  if (value.is<double>()) return value;
  fail("a number after '+'", "a " + type_name(value));
}

bool contains(Budget& budget, const Value& container, const Value& item) {
  if (container.is_text()) {
    if (!item.is_text()) fail("a string to look for in a string", "a " + type_name(item));
    budget.charge(container.view().size());
    return find_text(container.view(), item.view()) != kNowhere;
  }
  if (container.is<std::shared_ptr<const Dict>>()) {
    return find(budget, *container.as<std::shared_ptr<const Dict>>(), item) != nullptr;
  }
  if (!is_iterable(container)) fail("a value to look into with 'in'", "a " + type_name(container));
  const auto sequence = iterate(budget, container);
  return std::any_of(sequence->items.begin(), sequence->items.end(),
                     [&](const Value& candidate) { return equal(budget, candidate, item); });
}

Value slice(Budget& budget, const Value& value, const SliceBounds& bounds) {
  require_defined(value);
  if (value.is_text()) return slice_of_text(budget, value, bounds);
  if (!is_plain(value, SequenceKind::kList) && !is_plain(value, SequenceKind::kTuple) &&
      !is_plain(value, SequenceKind::kRange)) {
    fail("a string or a list to slice", "a " + type_name(value));
  }
  const Sequence& sequence = *value.as<std::shared_ptr<Sequence>>();
  const Walk walk = walk_of(bounds, static_cast<std::int64_t>(sequence.items.size()));
  budget.charge(kItemCost * static_cast<std::uint64_t>(walk.count));
  Values items;
  for (std::int64_t i = 0; i < walk.count; ++i) {
    items.push_back(sequence.items[static_cast<std::size_t>(walk.start + i * walk.step)]);
  }
  return make_sequence(budget, sequence.kind, std::move(items));
}

std::optional<Value> at_index(Budget& budget, const Value& value, std::int64_t index) {
  if (value.is_text()) {
    const auto length = static_cast<std::int64_t>(count_code_points(value.view()));
    budget.charge(value.view().size());
    if (index < -length || index >= length) return std::nullopt;
    const SliceBounds one{index, index == -1 ? std::nullopt : std::optional(index + 1), 1};
    return slice_of_text(budget, value, one);
  }
  const Values& items = items_of(value);
  const auto length = static_cast<std::int64_t>(items.size());
  if (index < -length || index >= length) return std::nullopt;
  return items[static_cast<std::size_t>(index < 0 ? index + length : index)];
}

}  // namespace tileweave::jinja
