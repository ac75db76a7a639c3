// The values of a template: Python's none, bool, int, float, str, list, tuple, dict, and what Jinja
// adds to them (undefined, namespaces, loops, macros).
//
// Values are cheap to copy and, namespaces and loops aside, never change. Namespaces, loops and
// scopes are owned by the renderer and referred to by pointer: they may refer to each other in
// circles. A container knows how deep it nests, so that no walk over it can overflow the stack.
#pragma once

#include <concepts>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <variant>
#include <vector>

#include "tileweave/models/chat/jinja_fault.h"

namespace tileweave::jinja {

struct Undefined {
  std::shared_ptr<const std::string> why;  // said when it is used as a value
};
struct None {};
struct Text {
  std::shared_ptr<const std::string> bytes;
  bool is_safe = false;  // Jinja's Markup: `+` escapes what it is added to
};
struct Sequence;
struct Dict;
struct Callable;
struct Namespace;
class Loop;

class Value {
 public:
  using Any =
      std::variant<Undefined, None, bool, std::int64_t, double, Text, std::shared_ptr<Sequence>,
                   std::shared_ptr<const Dict>, std::shared_ptr<const Callable>, Namespace*, Loop*>;

  Value() = default;
  template <class T>
  requires(std::constructible_from<Any, T> && !std::same_as<T, Value>) Value(T value)
      : any_(std::move(value)) {}  // NOLINT: every alternative is a value

  static Value undefined(std::string why);
  static Value none() { return Value(None{}); }
  static Value text(std::string bytes);
  static Value safe_text(std::string bytes);

  template <class T>
  bool is() const {
    return std::holds_alternative<T>(any_);
  }
  template <class T>
  const T& as() const {
    return std::get<T>(any_);
  }
  const Any& any() const { return any_; }

  bool is_undefined() const { return is<Undefined>(); }
  bool is_none() const { return is<None>(); }
  bool is_text() const { return is<Text>(); }
  bool is_number() const { return is<bool>() || is<std::int64_t>() || is<double>(); }
  bool is_integer() const { return is<bool>() || is<std::int64_t>(); }  // bool is one, as in Python

  std::string_view view() const { return *as<Text>().bytes; }
  bool is_safe() const { return is_text() && as<Text>().is_safe; }
  std::int64_t integer() const {
    return is<bool>() ? static_cast<std::int64_t>(as<bool>()) : as<std::int64_t>();
  }
  double number() const { return is<double>() ? as<double>() : static_cast<double>(integer()); }

 private:
  Any any_;
};

using Values = std::vector<Value>;

enum class SequenceKind {
  kList,
  kTuple,
  kRange,      // range(): prints as range(a, b)
  kView,       // dict.items(), keys(), values(): has a length, no subscripts
  kGenerator,  // what lazy filters give: no length, always true, read once
};

struct Sequence {
  SequenceKind kind = SequenceKind::kList;
  Values items;
  int depth = 1;
  std::size_t num_read = 0;  // of a generator
  std::string printed;       // of a range; what a view prints before its items
};

struct Dict {
  std::vector<std::pair<Value, Value>> items;                 // in order of insertion
  std::unordered_map<std::string, std::size_t> index_of_key;  // by key_of()
  int depth = 1;
};

struct Namespace {
  std::unordered_map<std::string, Value> attributes;
};

struct Statement;
struct Scope;

enum class CallableKind { kMacro, kMethod, kFunction };

struct Callable {
  CallableKind kind = CallableKind::kFunction;
  std::string name;
  Value self;                        // of a method
  const Statement* macro = nullptr;  // of a macro, or of the body that caller() renders
  Scope* scope = nullptr;            // where the macro was defined
  int depth = 1;
};

/// Builds lists, tuples and dicts; every element is charged.
Value make_sequence(Budget& budget, SequenceKind kind, Values items, std::string printed = {});
class DictBuilder {
 public:
  explicit DictBuilder(Budget& budget) : budget_(budget), dict_(std::make_shared<Dict>()) {}
  void set(const Value& key, Value value);
  void add(const Value& key, Value value);  // keeps the value that a key has
  Value finish();

 private:
  Value& slot(const Value& key, const Value& value, bool& is_new);

  Budget& budget_;
  std::shared_ptr<Dict> dict_;
};

/// The value of `key`, or nullptr.
const Value* find(Budget& budget, const Dict& dict, const Value& key);
const Value* find(const Dict& dict, std::string_view key);

/// What equal keys have in common (1, 1.0 and true are one key). Faults when it can be no key.
std::string key_of(Budget& budget, const Value& value);

/// "str", "dict", ...: Python's name of the type.
std::string type_name(const Value& value);

/// Python's bool(value), value == value and value < value.
bool is_true(const Value& value);
bool equal(Budget& budget, const Value& a, const Value& b);
bool less(Budget& budget, const Value& a, const Value& b);

/// The number of items, as len(value); faults where Python has none.
std::size_t length_of(const Value& value);

/// The items that a loop over `value` sees: elements, keys of a dict, characters. A generator is
/// read to its end.
std::shared_ptr<const Sequence> iterate(Budget& budget, const Value& value);
bool is_iterable(const Value& value);

/// Faults with the sentence of an undefined value.
void require_defined(const Value& value);

int depth_of(const Value& value);

}  // namespace tileweave::jinja
