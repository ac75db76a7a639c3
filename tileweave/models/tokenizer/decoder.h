// The "decoder" of a tokenizer.json: tokens to text. Internal to the tokenizer.
//
// A Decoder is what the file says, shared by threads. It makes chains of stages, one chain for each
// text that is decoded; a stage hands on what is certain as soon as it is.
#pragma once

#include <cstddef>
#include <memory>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "tileweave/models/json/json_file.h"
#include "tileweave/models/tokenizer/pattern.h"
#include "tileweave/models/tokenizer/pre_tokenizer.h"

namespace tileweave {

/// Receives tokens, each in parts that hold whole characters, and hands text to the next stage.
class DecodeStage {
 public:
  virtual ~DecodeStage() = default;
  virtual void append(std::string_view part) = 0;
  virtual void end_token() = 0;
  /// No token follows.
  virtual void finish() = 0;
};

class Decoder {
 public:
  /// Writes tokens as they are, with blanks between them.
  Decoder();
  /// Throws Error for a kind that is not known, or is malformed.
  static Decoder read(const JsonNode& node);

  /// Stages that append to `text`. The decoder and the text must outlive them.
  std::unique_ptr<DecodeStage> stages(std::string& text) const;

 private:
  struct Join {};
  struct ByteLevel {};
  struct ByteFallback {};
  struct Fuse {};
  struct Replace {
    Pattern pattern;
    std::string content;
  };
  struct Strip {
    std::string content;  // one character
    std::size_t start;
    std::size_t stop;
  };
  using Step = std::variant<Join, ByteLevel, ByteFallback, Fuse, Replace, Strip, Metaspace>;
  struct MakeStage;

  void add(const JsonNode& node);

  std::vector<Step> steps_;
};

}  // namespace tileweave
