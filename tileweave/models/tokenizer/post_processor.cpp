#include "tileweave/models/tokenizer/post_processor.h"

#include <utility>

#include "tileweave/models/tokenizer/vocabulary.h"

namespace tileweave {
namespace {

std::vector<std::int32_t> ids_of_special_token(const JsonNode& tokens, const JsonNode& piece) {
  const JsonNode id = piece.at("id");
  const auto token = tokens.find(id.string());
  if (!token) id.refuse("a key of special_tokens");
  const JsonNode list = token->at("ids");
  std::vector<std::int32_t> ids;
  for (std::size_t i = 0; i < list.length(); ++i) {
    ids.push_back(static_cast<std::int32_t>(list.element(i).integer(0, kLargestTokenId)));
  }
  return ids;
}

}  // namespace

PostProcessor PostProcessor::read(const JsonNode& node) {
  PostProcessor processor;
  processor.add(node);
  return processor;
}

void PostProcessor::add(const JsonNode& node) {
  const JsonNode type = node.at("type");
  const std::string& name = type.string();
  if (name == "Sequence") {
    const JsonNode parts = node.at("processors");
    for (std::size_t i = 0; i < parts.length(); ++i) add(parts.element(i));
  } else if (name == "TemplateProcessing") {
    if (!parts_.empty()) type.refuse("the only template of the post-processor");
    add_template(node);
  } else if (name != "ByteLevel") {  // which moves offsets only
    type.refuse("a post-processor this library knows (Sequence, ByteLevel, TemplateProcessing)");
  }
}

void PostProcessor::add_template(const JsonNode& node) {
  const JsonNode single = node.at("single");
  const JsonNode tokens = node.at("special_tokens");
  tokens.require_object();
  for (std::size_t i = 0; i < single.length(); ++i) {
    const JsonNode piece = single.element(i);
    if (const auto sequence = piece.find("Sequence")) {
      const JsonNode id = sequence->at("id");
      if (id.string() != "A") id.refuse("A, the only text of a single template");
      parts_.push_back({Part::Kind::kText, {}});
    } else if (const auto special = piece.find("SpecialToken")) {
      parts_.push_back({Part::Kind::kSpecial, ids_of_special_token(tokens, *special)});
    } else {
      piece.refuse("an object with the key Sequence or SpecialToken");
    }
  }
  if (parts_.empty()) single.refuse("an array that is not empty");
}

std::vector<std::int32_t> PostProcessor::apply(std::vector<std::int32_t> ids,
                                               SpecialTokens special) const {
  if (parts_.empty()) return ids;
  std::vector<std::int32_t> out;
  for (const Part& part : parts_) {
    if (part.kind == Part::Kind::kText) {
      out.insert(out.end(), ids.begin(), ids.end());
    } else if (special == SpecialTokens::kAdd) {
      out.insert(out.end(), part.ids.begin(), part.ids.end());
    }
  }
  return out;
}

std::vector<std::int32_t> PostProcessor::special_ids() const {
  std::vector<std::int32_t> ids;
  for (const Part& part : parts_) ids.insert(ids.end(), part.ids.begin(), part.ids.end());
  return ids;
}

}  // namespace tileweave
