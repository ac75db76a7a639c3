// The "added_tokens" of a tokenizer.json: tokens that are found in text before it is split into
// words. Internal to the tokenizer.
//
// Tokens that are not "normalized" are looked for in the text as it was given; the others, in their
// own normalized form, in what the normalizer made of the rest. Where several begin at one place
// the longest counts.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "tileweave/models/json/json_file.h"
#include "tileweave/models/tokenizer/normalizer.h"
#include "tileweave/models/tokenizer/vocabulary.h"

namespace tileweave {

struct AddedToken {
  std::string content;
  /// As it stands in normalized text; the same as content unless the token is "normalized".
  std::string form;
  std::int32_t id = -1;
  enum class Search : std::uint8_t { kGivenText, kNormalizedText } search = Search::kGivenText;
  enum class Words : std::uint8_t { kAnywhere, kWholeOnly } words = Words::kAnywhere;
  enum class Blanks : std::uint8_t { kStay, kSwallowed } left = Blanks::kStay, right = Blanks::kStay;
  enum class Kind : std::uint8_t { kOrdinary, kSpecial } kind = Kind::kOrdinary;
};

class AddedTokens {
 public:
  AddedTokens() = default;
  AddedTokens(AddedTokens&&) = default;
  AddedTokens& operator=(AddedTokens&&) = default;
  AddedTokens(const AddedTokens&) = delete;
  AddedTokens& operator=(const AddedTokens&) = delete;

  /// Throws Error when an id contradicts the vocabulary or belongs to two tokens.
  static AddedTokens read(const JsonNode& node, const Vocabulary& vocabulary,
                          const Normalizer& normalizer);

  const AddedToken* find(std::int32_t id) const;
  const AddedToken* find(std::string_view content) const;
  /// -1 when there is none.
  std::int32_t largest_id() const { return largest_id_; }

  /// A stretch of text: one of the tokens, or text between them when `token` is null. The stretches
  /// of tokens that swallow the same blanks overlap.
  struct Part {
    std::size_t begin;
    std::size_t end;
    const AddedToken* token;
  };
  /// Cuts text at those tokens that are looked for there; no parts are empty.
  std::vector<Part> split(std::string_view text, AddedToken::Search search) const;

 private:
  struct Forms {
    std::unordered_map<std::string_view, std::size_t> indices;
    std::array<std::vector<std::size_t>, 256> lengths;  // by first byte, the longest first
  };
  void add(AddedToken token);
  void index_forms(const JsonNode& node);
  const Forms& forms(AddedToken::Search search) const;

  std::vector<AddedToken> tokens_;
  std::unordered_map<std::int32_t, std::size_t> by_id_;
  std::unordered_map<std::string, std::size_t> by_content_;
  Forms given_;
  Forms normalized_;
  std::int32_t largest_id_ = -1;
};

}  // namespace tileweave
