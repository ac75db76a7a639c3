// The files of data/, which scripts/goldens/tokenizer_kinds.py made with Hugging Face tokenizers.
#pragma once

#include <cstdint>
#include <nlohmann/json.hpp>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "tileweave/models/tokenizer/tokenizer.h"

namespace tileweave {

/// One per kind of tokenizer.json.
inline constexpr const char* kKinds[] = {
    "gpt2",           "llama3",           "qwen2",          "qwen3", "smollm2",
    "llama2_prepend", "llama2_metaspace", "words_metaspace"};
/// Those that keep every byte of the text.
inline constexpr const char* kByteLevelKinds[] = {"gpt2", "llama3", "qwen2", "qwen3", "smollm2"};

std::string data_path(const std::string& name);
nlohmann::json read_data(const std::string& name);
/// strings.json's "strings".
const std::vector<std::string>& golden_strings();

/// What Hugging Face tokenizers answers for one string.
struct GoldenAnswer {
  std::vector<std::int32_t> ids;
  std::vector<std::int32_t> bare;  // without the post-processor's special tokens
  std::string kept;                // decoded
  std::string skipped;             // decoded without special tokens
};
/// Nothing where the package gives no answer.
std::optional<GoldenAnswer> golden_answer(const nlohmann::json& answer, const std::string& text);

/// Decodes through a TextStream; expects that every part of it is UTF-8 by itself.
std::string decode_streamed(const Tokenizer& tokenizer, std::span<const std::int32_t> ids,
                            DecodeSpecial special);

}  // namespace tileweave
