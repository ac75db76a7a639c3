// What templates can use by name: filters, tests, methods, attributes and functions.
//
// All of them take their arguments as Python binds them and mean what Python and Jinja mean; what
// is known but not supported is a Fault, never a different answer. Environment is what they share
// with the renderer during one rendering.
#pragma once

#include <chrono>
#include <functional>
#include <initializer_list>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "tileweave/models/chat/jinja_value.h"

namespace tileweave::jinja {

struct Environment {
  Budget budget;
  std::chrono::local_seconds now;
  std::vector<std::unique_ptr<Namespace>> namespaces;
  int num_recursions = 0;
};

/// One call within others; bounds how deep they go.
class Recursion {
 public:
  explicit Recursion(Environment& environment) : environment_(environment) {
    if (environment_.num_recursions >= kMaxRecursions) {
      fail("calls and expressions nested at most " + std::to_string(kMaxRecursions) + " deep");
    }
    ++environment_.num_recursions;
  }
  ~Recursion() { --environment_.num_recursions; }
  Recursion(const Recursion&) = delete;
  Recursion& operator=(const Recursion&) = delete;

 private:
  static constexpr int kMaxRecursions = 1000;
  Environment& environment_;
};

struct Arguments {
  Values positional;
  std::vector<std::pair<std::string, Value>> named;
};

/// Arguments given to the parameters of a builtin; faults on too many, unknown and missing ones.
class BoundArguments {
 public:
  BoundArguments(const Arguments& arguments, const std::string& what,
                 std::initializer_list<const char*> parameters, std::size_t num_required = 0);

  bool has(std::size_t i) const { return values_[i] != nullptr; }
  /// The argument, or `otherwise` where it is absent.
  Value get(std::size_t i, const Value& otherwise) const { return has(i) ? at(i) : otherwise; }
  const Value& at(std::size_t i) const { return *values_[i]; }
  bool truth(std::size_t i, bool otherwise) const { return has(i) ? is_true(at(i)) : otherwise; }
  std::string_view text(std::size_t i) const;
  std::int64_t integer(std::size_t i, std::int64_t otherwise) const;

 private:
  std::string what_;
  std::vector<const Value*> values_;
};

bool is_filter(std::string_view name);
Value call_filter(Environment& environment, std::string_view name, const Value& input,
                  const Arguments& arguments);

bool is_test(std::string_view name);
bool call_test(Environment& environment, std::string_view name, const Value& input,
               const Arguments& arguments);

/// range, namespace, dict, raise_exception, strftime_now.
bool is_function(std::string_view name);
/// Jinja's functions that are not supported: lipsum, cycler, joiner.
bool is_refused_function(std::string_view name);
Value call_function(Environment& environment, std::string_view name, const Arguments& arguments);

/// value.name and value[key]; undefined where there is none.
Value attribute_of(Environment& environment, const Value& value, const std::string& name);
Value item_of(Environment& environment, const Value& value, const Value& key);

/// Whether Python's type of `value` has a method of that name, supported or not.
bool has_method(const Value& value, std::string_view name);
bool changes_its_object(const Value& value, std::string_view name);
Value call_method(Environment& environment, const Callable& method, const Arguments& arguments);

/// `time` as Python's strftime writes it.
std::string format_time(Budget& budget, std::string_view format, std::chrono::local_seconds time);

/// One run of a for statement, as its body sees it by the name `loop`.
class Loop {
 public:
  using Source = std::function<std::optional<Value>()>;

  explicit Loop(Source source, std::optional<std::size_t> length)
      : source_(std::move(source)), length_(length) {}

  /// Goes to the next item; false: there is none.
  bool advance();
  const Value& item() const { return current_; }
  /// The loop is over: nothing is read from its source any more.
  void finish() {
    source_ = [] { return std::nullopt; };
  }

  Value attribute(const std::string& name);
  Value call(Environment& environment, std::string_view method, const Arguments& arguments);

 private:
  std::optional<Value>& peek();
  std::int64_t length();

  Source source_;
  std::optional<std::size_t> length_;
  std::int64_t index0_ = -1;
  Value previous_;
  Value current_;
  bool has_peeked_ = false;
  std::optional<Value> next_;
  Values read_ahead_;  // by length()
  std::size_t num_replayed_ = 0;
  std::optional<Values> last_changed_;
};

/// str(value) that keeps a safe string safe, and `text` as safe as `like`.
Value as_text(Environment& environment, const Value& value);
Value text_like(const Value& like, std::string text);

/// text.replace(old, fresh, count); a negative count means all.
std::string replaced(Budget& budget, std::string_view text, std::string_view old,
                     std::string_view fresh, std::int64_t count);

}  // namespace tileweave::jinja
