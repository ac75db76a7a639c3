// The tables of filters, one per file of them; is_filter and call_filter look into both.
#pragma once

#include <span>
#include <string_view>

#include "tileweave/models/chat/jinja_builtins.h"

namespace tileweave::jinja {

struct Filter {
  std::string_view name;
  Value (*call)(Environment&, const Value& input, const Arguments&);
};

std::span<const Filter> text_filters();
std::span<const Filter> item_filters();

}  // namespace tileweave::jinja
