// Turns text into token ids and back, as a model's tokenizer.json says.
//
// Reads byte-level BPE (GPT-2, Llama 3, Qwen2, Qwen3, SmolLM2) and BPE with byte fallback (Llama
// 2); ids equal those of Hugging Face tokenizers. "truncation" and "padding" are not obeyed: text
// is never shortened. What the file holds and this library does not know is refused by name. const
// methods may be called by any number of threads. Everything throws Error: unreadable or malformed
// files, naming file and key, and text that is not UTF-8, naming the byte.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace tileweave {

/// Whether encode() puts the post-processor's special tokens around the text.
enum class SpecialTokens : std::uint8_t { kAdd, kNone };
/// Whether decode() writes special tokens or leaves them out.
enum class DecodeSpecial : std::uint8_t { kKeep, kSkip };

class DecodeStage;
struct TokenizerParts;

class Tokenizer {
 public:
  /// Reads a tokenizer.json.
  static Tokenizer open(const std::string& path);
  /// The same of its text; `name` stands for the file in errors.
  static Tokenizer parse(std::string_view json, const std::string& name);
  ~Tokenizer();
  Tokenizer(Tokenizer&&) noexcept;
  Tokenizer& operator=(Tokenizer&&) noexcept;

  /// The special tokens of the file that stand in the text become their ids whatever `special` is.
  std::vector<std::int32_t> encode(std::string_view text, SpecialTokens special) const;
  /// Bytes that make no UTF-8 become U+FFFD. Ids that name no token (models often have room for
  /// more) give no text; negative ones throw.
  std::string decode(std::span<const std::int32_t> ids, DecodeSpecial special) const;

  /// Largest id + 1.
  std::int32_t size() const;
  std::optional<std::int32_t> id_of(std::string_view token) const;
  /// The token as the vocabulary writes it, not as text. Valid as long as the tokenizer.
  std::optional<std::string_view> token(std::int32_t id) const;
  bool is_special(std::int32_t id) const;

 private:
  friend class TextStream;
  explicit Tokenizer(std::unique_ptr<const TokenizerParts> parts);
  std::unique_ptr<const TokenizerParts> parts_;
};

/// Decodes ids one by one, for text that is shown while it is made. What push() returns is whole
/// characters; all of it and what finish() returns is what decode() makes of the same ids. The
/// tokenizer must outlive the stream, but may be moved.
class TextStream {
 public:
  TextStream(const Tokenizer& tokenizer, DecodeSpecial special);
  ~TextStream();
  TextStream(TextStream&&) noexcept;
  TextStream& operator=(TextStream&&) noexcept;

  /// The text that is certain now; often none.
  std::string push(std::int32_t id);
  /// The rest; the stream must not be used any more.
  std::string finish();

 private:
  const TokenizerParts* parts_;
  DecodeSpecial special_;
  std::unique_ptr<std::string> text_;  // where the last stage writes
  std::unique_ptr<DecodeStage> stages_;
};

}  // namespace tileweave
