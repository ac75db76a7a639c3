// A regular expression over UTF-8 text in the dialect that tokenizer.json files use: Oniguruma's.
//
// A Regex may be shared by any number of threads, a RegexSearch belongs to one of them and to a
// Regex that outlives it. Matching is by backtracking, so hostile expressions could take very long:
// a search that exceeds the engine's limits throws Error.
#pragma once

#include <cstddef>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

namespace tileweave {

struct TextRange {
  std::size_t begin;
  std::size_t end;
};

class Regex {
 public:
  /// Throws Error with `operation` and the engine's complaint when the expression is malformed.
  Regex(const std::string& expression, const std::string& operation);
  ~Regex();
  Regex(Regex&&) noexcept;
  Regex& operator=(Regex&&) noexcept;

 private:
  friend class RegexSearch;
  struct Program;
  std::unique_ptr<Program> program_;
};

class RegexSearch {
 public:
  explicit RegexSearch(const Regex& regex);
  ~RegexSearch();
  RegexSearch(const RegexSearch&) = delete;
  RegexSearch& operator=(const RegexSearch&) = delete;

  /// The matches that do not overlap, from left to right. `text` is valid UTF-8, and the whole
  /// text: looking ahead or behind ends at its ends. The answer lives until the next call.
  const std::vector<TextRange>& find_all(std::string_view text);

 private:
  struct Memory;
  const Regex::Program& program_;
  std::unique_ptr<Memory> memory_;
  std::vector<TextRange> matches_;
};

}  // namespace tileweave
