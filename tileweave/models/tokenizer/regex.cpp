#include "tileweave/models/tokenizer/regex.h"

#include <oniguruma.h>

#include <algorithm>
#include <cstdio>
#include <iterator>
#include <utility>

#include "tileweave/core/error.h"
#include "tileweave/core/format.h"
#include "tileweave/models/tokenizer/late_characters.h"
#include "tileweave/models/tokenizer/utf8.h"

namespace tileweave {
namespace {

// A search that backtracks more often than this counts as hostile. An ordinary expression needs a
// few steps for each character of the longest match that it tries.
unsigned long most_backtracks(std::size_t text_size) {
  constexpr unsigned long kAlways = 200'000;
  constexpr unsigned long kOfACharacter = 32;
  return kAlways + kOfACharacter * text_size;
}

const OnigUChar* as_onig(const char* text) {
  return reinterpret_cast<const OnigUChar*>(text);
}

std::string complaint(int code, OnigErrorInfo* info) {
  OnigUChar text[ONIG_MAX_ERROR_MESSAGE_LEN];
  const int length = onig_error_code_to_str(text, code, info);
  return {reinterpret_cast<const char*>(text), static_cast<std::size_t>(length)};
}

void append_range(std::string& out, const CodePointRange& range) {
  char text[sizeof "\\x{10FFFF}-\\x{10FFFF}"];
  std::snprintf(text, sizeof text, "\\x{%X}-\\x{%X}", static_cast<unsigned>(range.first),
                static_cast<unsigned>(range.last));
  out += text;
}

// The class of what the engine knows of a property and of characters that are younger than it.
template <std::size_t kSize>
std::string class_of(std::string_view property, const CodePointRange (&late)[kSize]) {
  std::string text = "[";
  text += property;
  for (const CodePointRange& range : late) append_range(text, range);
  return text + "]";
}

// The expression with \p{L}, \p{N} and \p{M} as of Unicode 16. A class may stand inside a class.
std::string with_late_characters(std::string_view expression) {
  const std::pair<std::string_view, std::string> classes[] = {
      {"\\p{L}", class_of("\\p{L}", kLateLetters)},
      {"\\p{N}", class_of("\\p{N}", kLateNumbers)},
      {"\\p{M}", class_of("\\p{M}", kLateMarks)}};
  std::string out;
  for (std::size_t at = 0; at < expression.size();) {
    const std::string_view rest = expression.substr(at);
    const auto* known = std::find_if(std::begin(classes), std::end(classes),
                                     [rest](const auto& c) { return rest.starts_with(c.first); });
    if (known != std::end(classes)) {
      out += known->second;
      at += known->first.size();
    } else {
      const std::size_t length = rest[0] == '\\' ? std::min<std::size_t>(2, rest.size()) : 1;
      out += rest.substr(0, length);
      at += length;
    }
  }
  return out;
}

// The library wants to be told once, before its first use.
void initialize_engine() {
  static const int result = [] {
    OnigEncoding encodings[] = {ONIG_ENCODING_UTF8};
    return onig_initialize(encodings, 1);
  }();
  require(result == ONIG_NORMAL, "start the regular expression engine", "success",
          "code " + std::to_string(result));
}

}  // namespace

struct Regex::Program {
  ~Program() { onig_free(compiled); }
  regex_t* compiled = nullptr;
  std::string expression;
};

Regex::Regex(const std::string& expression, const std::string& operation)
    : program_(std::make_unique<Program>()) {
  initialize_engine();
  program_->expression = expression;
  const std::string extended = with_late_characters(expression);
  const OnigUChar* begin = as_onig(extended.data());
  OnigErrorInfo info{};
  const int code = onig_new(&program_->compiled, begin, begin + extended.size(), ONIG_OPTION_NONE,
                            ONIG_ENCODING_UTF8, ONIG_SYNTAX_DEFAULT, &info);
  if (code != ONIG_NORMAL) {
    program_->compiled = nullptr;
    throw Error(operation, "a regular expression",
                in_quotes(expression) + " (" + complaint(code, &info) + ")");
  }
}

Regex::~Regex() = default;
Regex::Regex(Regex&&) noexcept = default;
Regex& Regex::operator=(Regex&&) noexcept = default;

struct RegexSearch::Memory {
  Memory() : region(onig_region_new()), limits(onig_new_match_param()) {}
  ~Memory() {
    onig_region_free(region, 1);
    onig_free_match_param(limits);
  }
  Memory(const Memory&) = delete;
  Memory& operator=(const Memory&) = delete;

  OnigRegion* region;
  OnigMatchParam* limits;
};

RegexSearch::RegexSearch(const Regex& regex)
    : program_(*regex.program_), memory_(std::make_unique<Memory>()) {
  require(memory_->region != nullptr && memory_->limits != nullptr, "split text", "memory", "none");
}

RegexSearch::~RegexSearch() = default;

const std::vector<TextRange>& RegexSearch::find_all(std::string_view text) {
  matches_.clear();
  const unsigned long limit = most_backtracks(text.size());
  onig_set_retry_limit_in_match_of_match_param(memory_->limits, limit);
  onig_set_retry_limit_in_search_of_match_param(memory_->limits, 2 * limit);
  const OnigUChar* begin = as_onig(text.data());
  const OnigUChar* end = begin + text.size();
  const auto fail = [this](const std::string& expected, const std::string& got) {
    throw Error("split text",
                "the regular expression " + in_quotes(program_.expression) + " to " + expected,
                got);
  };
  std::size_t from = 0;
  std::size_t last_end = 0;
  // An empty match right behind a match that was not empty is passed over, once.
  bool skips_next_empty = false;
  while (from <= text.size()) {
    onig_region_clear(memory_->region);
    const int code = onig_search_with_param(program_.compiled, begin, end, begin + from, end,
                                            memory_->region, ONIG_OPTION_NONE, memory_->limits);
    if (code == ONIG_MISMATCH) break;
    if (code < 0) fail("end within its limits", complaint(code, nullptr));
    const TextRange match{static_cast<std::size_t>(memory_->region->beg[0]),
                          static_cast<std::size_t>(memory_->region->end[0])};
    if (match.begin > match.end || match.begin < last_end) {
      fail("match from left to right", "a match that runs backwards");
    }
    from = last_end = match.end;
    if (match.begin == match.end) {
      from += match.end < text.size() ? code_point_at(text, match.end).length : 1;
      if (std::exchange(skips_next_empty, false)) continue;
    } else {
      skips_next_empty = true;
    }
    matches_.push_back(match);
  }
  return matches_;
}

}  // namespace tileweave
