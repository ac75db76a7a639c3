#include "tileweave/models/tokenizer/pattern.h"

#include <utility>

namespace tileweave {

Pattern Pattern::literal(std::string text) {
  // The empty string matches between all characters, as the empty regular expression does.
  if (text.empty()) return regex(Regex("", "split text"));
  Pattern pattern;
  pattern.literal_ = std::move(text);
  return pattern;
}

Pattern Pattern::regex(Regex regex) {
  Pattern pattern;
  pattern.regex_.emplace(std::move(regex));
  return pattern;
}

std::string replace_matches(std::string_view text, const std::vector<TextRange>& matches,
                            std::string_view content) {
  std::string out;
  std::size_t last_end = 0;
  for (const TextRange& match : matches) {
    out += text.substr(last_end, match.begin - last_end);
    out += content;
    last_end = match.end;
  }
  out += text.substr(last_end);
  return out;
}

PatternSearch::PatternSearch(const Pattern& pattern) : pattern_(pattern) {
  if (pattern.regex_) regex_.emplace(*pattern.regex_);
}

const std::vector<TextRange>& PatternSearch::find_all(std::string_view text) {
  if (regex_ && !text.empty()) return regex_->find_all(text);
  matches_.clear();
  if (text.empty()) return matches_;
  const std::string& literal = pattern_.literal_;
  for (std::size_t at = text.find(literal); at != std::string_view::npos;
       at = text.find(literal, at + literal.size())) {
    matches_.push_back({at, at + literal.size()});
  }
  return matches_;
}

}  // namespace tileweave
