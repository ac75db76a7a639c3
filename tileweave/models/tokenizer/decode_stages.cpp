#include "tileweave/models/tokenizer/decode_stages.h"

#include <optional>

#include "tileweave/core/format.h"
#include "tileweave/models/tokenizer/byte_alphabet.h"
#include "tileweave/models/tokenizer/utf8.h"

namespace tileweave {
namespace {

// The bytes that a token of the byte alphabet stands for; none if it has other letters.
std::optional<std::string> bytes_of(std::string_view token) {
  std::string bytes;
  for (std::size_t at = 0; at < token.size();) {
    const CodePoint c = code_point_at(token, at);
    const std::optional<unsigned char> byte = kByteAlphabet.byte(c.value);
    if (!byte) return std::nullopt;
    bytes.push_back(static_cast<char>(*byte));
    at += c.length;
  }
  return bytes;
}

std::optional<unsigned> hexadecimal(char digit) {
  if (digit >= '0' && digit <= '9') return static_cast<unsigned>(digit - '0');
  if (digit >= 'A' && digit <= 'F') return static_cast<unsigned>(digit - 'A' + 10);
  if (digit >= 'a' && digit <= 'f') return static_cast<unsigned>(digit - 'a' + 10);
  return std::nullopt;
}

// The byte that "<0x41>" names.
std::optional<char> named_byte(std::string_view token) {
  if (token.size() != 6 || !token.starts_with("<0x") || !token.ends_with('>')) return std::nullopt;
  const auto high = hexadecimal(token[3]);
  const auto low = hexadecimal(token[4]);
  if (!high || !low) return std::nullopt;
  return static_cast<char>(*high << 4 | *low);
}

}  // namespace

void JoinStage::append(std::string_view part) {
  if (!is_inside_ && !is_first_) next_->append(" ");
  is_inside_ = true;
  is_first_ = false;
  next_->append(part);
}

void JoinStage::end_token() {
  if (!is_inside_) append("");
  is_inside_ = false;
}

void FuseStage::finish() {
  next_->end_token();
  next_->finish();
}

void ByteLevelStage::end_token() {
  const std::optional<std::string> bytes = bytes_of(token_);
  bytes_ += bytes ? *bytes : token_;
  token_.clear();
  hand_on_characters();
}

void ByteLevelStage::hand_on_characters() {
  std::size_t begin = 0;  // of valid text that was not handed on
  std::size_t at = 0;
  Utf8Part part{Utf8Kind::kCharacter, 0};
  while (at < bytes_.size()) {
    part = scan_utf8(bytes_, at);
    if (part.kind == Utf8Kind::kUnfinished) break;
    if (part.kind == Utf8Kind::kInvalid) {
      next_->append(std::string_view(bytes_).substr(begin, at - begin));
      next_->append(kReplacementCharacter);
      begin = at + part.length;
    }
    at += part.length;
  }
  next_->append(std::string_view(bytes_).substr(begin, at - begin));
  bytes_.erase(0, at);
}

void ByteLevelStage::finish() {
  if (!bytes_.empty()) next_->append(kReplacementCharacter);
  bytes_.clear();
  next_->end_token();
  next_->finish();
}

void ByteFallbackStage::end_token() {
  if (const auto byte = named_byte(token_)) {
    run_.push_back(*byte);
  } else {
    end_run();
    next_->append(token_);
    next_->end_token();
  }
  token_.clear();
}

void ByteFallbackStage::end_run() {
  if (run_.empty()) return;
  if (valid_utf8_prefix(run_) == run_.size()) {
    next_->append(run_);
    next_->end_token();
  } else {
    for (std::size_t i = 0; i < run_.size(); ++i) {
      next_->append(kReplacementCharacter);
      next_->end_token();
    }
  }
  run_.clear();
}

void ByteFallbackStage::finish() {
  end_run();
  next_->finish();
}

void ReplaceStage::end_token() {
  next_->append(replace_matches(token_, search_.find_all(token_), content_));
  next_->end_token();
  token_.clear();
}

void StripStage::append(std::string_view part) {
  while (is_front_ && !part.empty()) {
    if (taken_ < rule_.start && part.starts_with(rule_.content)) {
      ++taken_;
      part.remove_prefix(rule_.content.size());
    } else {
      is_front_ = false;
    }
  }
  if (rule_.stop == 0) {
    next_->append(part);
    return;
  }
  for (std::size_t at = 0; at < part.size();) {
    const std::string_view character = part.substr(at, code_point_at(part, at).length);
    at += character.size();
    if (character == rule_.content && held_ < rule_.stop) {
      ++held_;
    } else if (character == rule_.content) {
      next_->append(character);  // as many stay held
    } else {
      for (; held_ > 0; --held_) next_->append(rule_.content);
      next_->append(character);
    }
  }
}

void StripStage::end_token() {
  taken_ = 0;
  held_ = 0;
  is_front_ = true;
  next_->end_token();
}

void MetaspaceStage::append(std::string_view part) {
  const bool drops = is_first_ && metaspace_.prepend != PrependScheme::kNever;
  const std::string& replacement = metaspace_.replacement;
  for (std::size_t found = part.find(replacement); found != std::string_view::npos;
       found = part.find(replacement)) {
    next_->append(part.substr(0, found));
    if (!drops) next_->append(" ");
    part.remove_prefix(found + replacement.size());
  }
  next_->append(part);
}

void MetaspaceStage::end_token() {
  is_first_ = false;
  next_->end_token();
}

}  // namespace tileweave
