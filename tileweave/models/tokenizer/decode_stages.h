// The stages of a decoder, one class for each kind. Internal to the tokenizer.
//
// Each owns the stage behind it. ByteLevel and Fuse make one token of all; what follows them sees
// that token in parts, and holds parts back only where its rule needs more to decide.
#pragma once

#include <cstddef>
#include <memory>
#include <string>
#include <string_view>

#include "tileweave/models/tokenizer/decoder.h"

namespace tileweave {

using NextStage = std::unique_ptr<DecodeStage>;

/// The last one.
class TextStage final : public DecodeStage {
 public:
  explicit TextStage(std::string& text) : text_(text) {}
  void append(std::string_view part) override { text_ += part; }
  void end_token() override {}
  void finish() override {}

 private:
  std::string& text_;
};

/// Blanks between tokens.
class JoinStage final : public DecodeStage {
 public:
  explicit JoinStage(NextStage next) : next_(std::move(next)) {}
  void append(std::string_view part) override;
  void end_token() override;
  void finish() override { next_->finish(); }

 private:
  NextStage next_;
  bool is_inside_ = false;
  bool is_first_ = true;
};

class FuseStage final : public DecodeStage {
 public:
  explicit FuseStage(NextStage next) : next_(std::move(next)) {}
  void append(std::string_view part) override { next_->append(part); }
  void end_token() override {}
  void finish() override;

 private:
  NextStage next_;
};

/// Letters of the byte alphabet become bytes; a token with other letters stays as it is. Bytes that
/// are no UTF-8 become U+FFFD.
class ByteLevelStage final : public DecodeStage {
 public:
  explicit ByteLevelStage(NextStage next) : next_(std::move(next)) {}
  void append(std::string_view part) override { token_ += part; }
  void end_token() override;
  void finish() override;

 private:
  void hand_on_characters();

  NextStage next_;
  std::string token_;
  std::string bytes_;  // not handed on yet: the beginning of a character
};

/// Runs of tokens "<0xHH>" become the text that their bytes are, or one U+FFFD for each.
class ByteFallbackStage final : public DecodeStage {
 public:
  explicit ByteFallbackStage(NextStage next) : next_(std::move(next)) {}
  void append(std::string_view part) override { token_ += part; }
  void end_token() override;
  void finish() override;

 private:
  void end_run();

  NextStage next_;
  std::string token_;
  std::string run_;
};

class ReplaceStage final : public DecodeStage {
 public:
  ReplaceStage(const Pattern& pattern, std::string_view content, NextStage next)
      : search_(pattern), content_(content), next_(std::move(next)) {}
  void append(std::string_view part) override { token_ += part; }
  void end_token() override;
  void finish() override { next_->finish(); }

 private:
  PatternSearch search_;
  std::string_view content_;
  NextStage next_;
  std::string token_;
};

/// Takes up to `start` characters from the front of each token and up to `stop` from its end, as
/// far as they are `content`.
class StripStage final : public DecodeStage {
 public:
  struct Rule {
    std::string_view content;
    std::size_t start;
    std::size_t stop;
  };
  StripStage(Rule rule, NextStage next) : rule_(rule), next_(std::move(next)) {}
  void append(std::string_view part) override;
  void end_token() override;
  void finish() override { next_->finish(); }

 private:
  Rule rule_;
  NextStage next_;
  std::size_t taken_ = 0;  // from the front of this token
  bool is_front_ = true;   // nothing but `content` was seen yet, and less than `start` of it
  std::size_t held_ = 0;   // characters `content` that may be its end
};

/// The replacement becomes a blank, and nothing in the first token where text is prepended.
class MetaspaceStage final : public DecodeStage {
 public:
  MetaspaceStage(const Metaspace& metaspace, NextStage next)
      : metaspace_(metaspace), next_(std::move(next)) {}
  void append(std::string_view part) override;
  void end_token() override;
  void finish() override { next_->finish(); }

 private:
  const Metaspace& metaspace_;
  NextStage next_;
  bool is_first_ = true;
};

}  // namespace tileweave
