// The "model" of a tokenizer.json: byte pair encoding of one word. Internal to the tokenizer.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "tileweave/models/json/json_file.h"
#include "tileweave/models/tokenizer/merges.h"
#include "tileweave/models/tokenizer/vocabulary.h"

namespace tileweave {

class BpeModel {
 public:
  /// Throws Error for another kind of model, and for settings that are not supported (dropout, a
  /// prefix of continuing subwords, a suffix of words).
  static BpeModel read(const JsonNode& node);

  const Vocabulary& vocabulary() const { return vocabulary_; }

  /// Memory of one thread that encodes word after word.
  struct Memory {
    std::vector<std::int32_t> ids;
    MergeMemory merging;
  };
  /// Appends the word's ids. A character that the vocabulary cannot express and that has no
  /// fallback is left out, as in Hugging Face tokenizers.
  void encode(std::string_view word, Memory& memory, std::vector<std::int32_t>& ids) const;

 private:
  enum class Fallback : std::uint8_t { kNone, kBytes };
  enum class Unknowns : std::uint8_t { kOneByOne, kFused };
  enum class WholeWords : std::uint8_t { kByMerges, kFromVocabulary };
  struct Settings {
    Fallback fallback = Fallback::kNone;
    Unknowns unknowns = Unknowns::kOneByOne;
    WholeWords whole_words = WholeWords::kByMerges;
    std::optional<std::string> unknown_token;
  };

  BpeModel(Vocabulary vocabulary, MergeTable merges, Settings settings);
  std::int32_t unknown_id() const;
  bool append_bytes(std::string_view character, std::vector<std::int32_t>& ids) const;
  void split_into_characters(std::string_view word, std::vector<std::int32_t>& ids) const;

  Vocabulary vocabulary_;
  MergeTable merges_;
  Settings settings_;
  std::vector<std::int32_t> id_of_character_;  // of the first few hundred; -1: none
  std::vector<std::int32_t> id_of_byte_;       // of "<0x00>" to "<0xFF>"; -1: none
};

}  // namespace tileweave
