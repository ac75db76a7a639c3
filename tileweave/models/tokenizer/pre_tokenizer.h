// The "pre_tokenizer" of a tokenizer.json: splits normalized text into words, inside which alone
// tokens are merged. Internal to the tokenizer.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "tileweave/models/json/json_file.h"
#include "tileweave/models/tokenizer/pattern.h"
#include "tileweave/models/tokenizer/pieces.h"
#include "tileweave/models/tokenizer/split.h"

namespace tileweave {

/// Metaspace: blanks become a visible character, often U+2581, and text gets one in front.
enum class PrependScheme : std::uint8_t { kAlways, kFirst, kNever };
struct Metaspace {
  std::string replacement;  // one character
  PrependScheme prepend = PrependScheme::kAlways;
  enum class Cut : std::uint8_t { kNone, kBeforeReplacement } cut = Cut::kBeforeReplacement;

  /// Also the decoder of that name.
  static Metaspace read(const JsonNode& node);
};

class PreTokenizer {
 public:
  /// Leaves text in one piece.
  PreTokenizer() = default;
  /// Throws Error for a kind that is not known, or is malformed.
  static PreTokenizer read(const JsonNode& node);

  void apply(Pieces& pieces) const;

 private:
  struct ByteLevel {
    enum class Prefix : std::uint8_t { kNone, kSpace } prefix = Prefix::kNone;
    std::optional<Pattern> words;
  };
  struct Split {
    Pattern pattern;
    SplitRule rule;
  };
  struct SplitCharacters {
    CharacterTest test;
    SplitRule rule;
  };
  using Step = std::variant<ByteLevel, Split, SplitCharacters, Metaspace>;

  void add(const JsonNode& node);
  static void run(const ByteLevel& step, Pieces& pieces);
  static void run(const Split& step, Pieces& pieces);
  static void run(const SplitCharacters& step, Pieces& pieces);
  static void run(const Metaspace& step, Pieces& pieces);

  std::vector<Step> steps_;
};

}  // namespace tileweave
