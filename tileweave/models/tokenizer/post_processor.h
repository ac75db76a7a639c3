// The "post_processor" of a tokenizer.json: the special tokens around one text. Internal to the
// tokenizer.
#pragma once

#include <cstdint>
#include <vector>

#include "tileweave/models/json/json_file.h"
#include "tileweave/models/tokenizer/tokenizer.h"

namespace tileweave {

class PostProcessor {
 public:
  /// Adds nothing.
  PostProcessor() = default;
  /// Throws Error for a kind that is not known, or is malformed.
  static PostProcessor read(const JsonNode& node);

  std::vector<std::int32_t> apply(std::vector<std::int32_t> ids, SpecialTokens special) const;
  std::vector<std::int32_t> special_ids() const;

 private:
  // Special tokens, or the text itself.
  struct Part {
    enum class Kind : std::uint8_t { kText, kSpecial } kind;
    std::vector<std::int32_t> ids;
  };
  void add(const JsonNode& node);
  void add_template(const JsonNode& node);

  std::vector<Part> parts_;  // none: the text alone
};

}  // namespace tileweave
