#include "tileweave/models/tokenizer/decoder.h"

#include <utility>

#include "tileweave/models/tokenizer/decode_stages.h"
#include "tileweave/models/tokenizer/normalizer.h"
#include "tileweave/models/tokenizer/utf8.h"

namespace tileweave {
namespace {

// More than any file strips, few enough to be held back.
constexpr std::int64_t kMostStripped = 1024;

std::size_t read_count(const JsonNode& node, std::string_view key) {
  return static_cast<std::size_t>(node.at(key).integer(0, kMostStripped));
}

}  // namespace

// Makes the stage of a step in front of `next`.
struct Decoder::MakeStage {
  NextStage next;

  NextStage operator()(const Join& /*step*/) {
    return std::make_unique<JoinStage>(std::move(next));
  }
  NextStage operator()(const ByteLevel& /*step*/) {
    return std::make_unique<ByteLevelStage>(std::move(next));
  }
  NextStage operator()(const ByteFallback& /*step*/) {
    return std::make_unique<ByteFallbackStage>(std::move(next));
  }
  NextStage operator()(const Fuse& /*step*/) {
    return std::make_unique<FuseStage>(std::move(next));
  }
  NextStage operator()(const Replace& step) {
    return std::make_unique<ReplaceStage>(step.pattern, step.content, std::move(next));
  }
  NextStage operator()(const Strip& step) {
    const StripStage::Rule rule{step.content, step.start, step.stop};
    return std::make_unique<StripStage>(rule, std::move(next));
  }
  NextStage operator()(const Metaspace& step) {
    return std::make_unique<MetaspaceStage>(step, std::move(next));
  }
};

Decoder::Decoder() {
  steps_.emplace_back(Join{});
}

Decoder Decoder::read(const JsonNode& node) {
  Decoder decoder;
  decoder.steps_.clear();
  decoder.add(node);
  return decoder;
}

void Decoder::add(const JsonNode& node) {
  const JsonNode type = node.at("type");
  const std::string& name = type.string();
  if (name == "Sequence") {
    const JsonNode parts = node.at("decoders");
    for (std::size_t i = 0; i < parts.length(); ++i) add(parts.element(i));
  } else if (name == "ByteLevel") {
    steps_.emplace_back(ByteLevel{});
  } else if (name == "ByteFallback") {
    steps_.emplace_back(ByteFallback{});
  } else if (name == "Fuse") {
    steps_.emplace_back(Fuse{});
  } else if (name == "Replace") {
    steps_.emplace_back(Replace{read_pattern(node.at("pattern")), node.at("content").string()});
  } else if (name == "Strip") {
    const JsonNode content = node.at("content");
    const std::string& character = content.string();
    if (character.empty() || code_point_at(character, 0).length != character.size()) {
      content.refuse("one character");
    }
    steps_.emplace_back(Strip{character, read_count(node, "start"), read_count(node, "stop")});
  } else if (name == "Metaspace") {
    steps_.emplace_back(Metaspace::read(node));
  } else {
    type.refuse(
        "a decoder this library knows (Sequence, ByteLevel, ByteFallback, Fuse, Replace, "
        "Strip, Metaspace)");
  }
}

std::unique_ptr<DecodeStage> Decoder::stages(std::string& text) const {
  NextStage stage = std::make_unique<TextStage>(text);
  for (std::size_t i = steps_.size(); i-- > 0;) {
    stage = std::visit(MakeStage{std::move(stage)}, steps_[i]);
  }
  return stage;
}

}  // namespace tileweave
