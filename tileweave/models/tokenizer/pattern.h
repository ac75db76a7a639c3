// What a component looks for in text: a string as it is, or a regular expression. Internal to the
// tokenizer. A Pattern is shared by threads, a PatternSearch belongs to one.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "tileweave/models/tokenizer/regex.h"

namespace tileweave {

class Pattern {
 public:
  static Pattern literal(std::string text);
  static Pattern regex(Regex regex);

 private:
  friend class PatternSearch;
  std::string literal_;
  std::optional<Regex> regex_;  // instead of the literal when there is one
};

class PatternSearch {
 public:
  explicit PatternSearch(const Pattern& pattern);
  /// Matches that do not overlap, from left to right; none in empty text. Valid until the next
  /// call.
  const std::vector<TextRange>& find_all(std::string_view text);

 private:
  const Pattern& pattern_;
  std::optional<RegexSearch> regex_;
  std::vector<TextRange> matches_;
};

/// `text` with its matches replaced by `content`.
std::string replace_matches(std::string_view text, const std::vector<TextRange>& matches,
                            std::string_view content);

}  // namespace tileweave
