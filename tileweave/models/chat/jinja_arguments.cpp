// How arguments reach the parameters of builtins.
#include "tileweave/models/chat/jinja_builtins.h"
#include "tileweave/models/chat/jinja_print.h"

namespace tileweave::jinja {

BoundArguments::BoundArguments(const Arguments& arguments, const std::string& what,
                               std::initializer_list<const char*> parameters,
                               std::size_t num_required)
    : what_(what), values_(parameters.size(), nullptr) {
  if (arguments.positional.size() > parameters.size()) {
    fail(what_ + " with at most " + std::to_string(parameters.size()) + " arguments",
         std::to_string(arguments.positional.size()));
  }
  for (std::size_t i = 0; i < arguments.positional.size(); ++i) {
    values_[i] = &arguments.positional[i];
  }
  for (const auto& [name, value] : arguments.named) {
    std::size_t i = 0;
    for (const char* parameter : parameters) {
      if (name == parameter) break;
      ++i;
    }
    if (i == parameters.size()) {
      fail(what_ + " with the parameters that it has", "'" + name + "'");
    }
    if (values_[i] != nullptr) fail(what_ + " with each argument once", "'" + name + "' twice");
    values_[i] = &value;
  }
  std::size_t i = 0;
  for (const char* parameter : parameters) {
    if (i < num_required && values_[i] == nullptr) {
      fail(what_ + " with the argument '" + parameter + "'", "none");
    }
    ++i;
  }
}

std::string_view BoundArguments::text(std::size_t i) const {
  require_defined(at(i));
  if (!at(i).is_text()) fail("a string as an argument of " + what_, "a " + type_name(at(i)));
  return at(i).view();
}

std::int64_t BoundArguments::integer(std::size_t i, std::int64_t otherwise) const {
  if (!has(i)) return otherwise;
  require_defined(at(i));
  if (!at(i).is_integer()) fail("an integer as an argument of " + what_, "a " + type_name(at(i)));
  return at(i).integer();
}

Value as_text(Environment& environment, const Value& value) {
  return value.is_text() ? value : Value::text(to_text(environment.budget, value));
}

Value text_like(const Value& like, std::string text) {
  return like.is_safe() ? Value::safe_text(std::move(text)) : Value::text(std::move(text));
}

}  // namespace tileweave::jinja
