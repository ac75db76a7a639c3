// The "normalizer" of a tokenizer.json: rewrites text before it is split. Internal to the
// tokenizer.
#pragma once

#include <cstdint>
#include <string>
#include <variant>
#include <vector>

#include "tileweave/models/json/json_file.h"
#include "tileweave/models/tokenizer/pattern.h"
#include "tileweave/models/tokenizer/pieces.h"
#include "tileweave/models/tokenizer/unicode.h"

namespace tileweave {

struct NormalText {
  std::string text;
  PiecePlace place;  // kInside also when the first character of the text was taken away
};

class Normalizer {
 public:
  /// Changes nothing.
  Normalizer() = default;
  /// Throws Error for a kind that is not known, or is malformed.
  static Normalizer read(const JsonNode& node);

  void apply(NormalText& text) const;

 private:
  struct LowerCase {};
  struct Prepend {
    std::string content;
  };
  struct Replace {
    Pattern pattern;
    std::string content;
  };
  enum class Side : std::uint8_t { kLeft, kRight };
  struct Strip {
    std::vector<Side> sides;
  };
  using Step = std::variant<NormalForm, LowerCase, Prepend, Replace, Strip>;

  void add(const JsonNode& node);
  static void run(NormalForm form, NormalText& text);
  static void run(const LowerCase& step, NormalText& text);
  static void run(const Prepend& step, NormalText& text);
  static void run(const Replace& step, NormalText& text);
  static void run(const Strip& step, NormalText& text);

  std::vector<Step> steps_;
};

/// Reads {"String": "..."} or {"Regex": "..."}.
Pattern read_pattern(const JsonNode& node);

}  // namespace tileweave
