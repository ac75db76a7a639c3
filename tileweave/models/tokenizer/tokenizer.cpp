#include "tileweave/models/tokenizer/tokenizer.h"

#include <algorithm>
#include <utility>

#include "tileweave/core/error.h"
#include "tileweave/core/format.h"
#include "tileweave/models/json/json_file.h"
#include "tileweave/models/tokenizer/added_tokens.h"
#include "tileweave/models/tokenizer/bpe_model.h"
#include "tileweave/models/tokenizer/decoder.h"
#include "tileweave/models/tokenizer/normalizer.h"
#include "tileweave/models/tokenizer/post_processor.h"
#include "tileweave/models/tokenizer/pre_tokenizer.h"

namespace tileweave {

struct TokenizerParts {
  Normalizer normalizer;
  PreTokenizer pre_tokenizer;
  BpeModel model;
  AddedTokens added;
  PostProcessor post_processor;
  Decoder decoder;

  std::optional<std::string_view> token(std::int32_t id) const {
    if (const AddedToken* token = added.find(id)) return token->content;
    return model.vocabulary().token(id);
  }
};

namespace {

// The named part of the file; a part that is missing or null is what the default makes it.
template <typename Part>
Part read_part(const JsonNode& root, std::string_view key) {
  const auto node = root.find(key);
  return node ? Part::read(*node) : Part();
}

std::unique_ptr<const TokenizerParts> read_parts(const JsonFile& file) {
  const JsonNode root = file.root();
  if (const auto version = root.find("version"); version && version->string() != "1.0") {
    version->refuse("1.0");
  }
  Normalizer normalizer = read_part<Normalizer>(root, "normalizer");
  BpeModel model = BpeModel::read(root.at("model"));
  const auto added_node = root.find("added_tokens");
  AddedTokens added =
      added_node ? AddedTokens::read(*added_node, model.vocabulary(), normalizer) : AddedTokens();
  auto parts = std::make_unique<const TokenizerParts>(TokenizerParts{
      .normalizer = std::move(normalizer),
      .pre_tokenizer = read_part<PreTokenizer>(root, "pre_tokenizer"),
      .model = std::move(model),
      .added = std::move(added),
      .post_processor = read_part<PostProcessor>(root, "post_processor"),
      .decoder = read_part<Decoder>(root, "decoder"),
  });
  for (const std::int32_t id : parts->post_processor.special_ids()) {
    if (!parts->token(id)) {
      root.at("post_processor").refuse("one that adds known tokens", "id " + std::to_string(id));
    }
  }
  return parts;
}

// Encodes stretches of one text, one after the other.
class Encoder {
 public:
  explicit Encoder(const TokenizerParts& parts) : parts_(parts) {}

  std::vector<std::int32_t> encode(std::string_view text) {
    for (const auto& part : parts_.added.split(text, AddedToken::Search::kGivenText)) {
      if (part.token != nullptr) {
        ids_.push_back(part.token->id);
      } else {
        encode_given(text.substr(part.begin, part.end - part.begin), place_of(part.begin));
      }
    }
    return std::move(ids_);
  }

 private:
  static PiecePlace place_of(std::size_t begin) {
    return begin == 0 ? PiecePlace::kTextStart : PiecePlace::kInside;
  }

  void encode_given(std::string_view text, PiecePlace place) {
    NormalText normal{std::string(text), place};
    parts_.normalizer.apply(normal);
    const std::string_view whole = normal.text;
    for (const auto& part : parts_.added.split(whole, AddedToken::Search::kNormalizedText)) {
      if (part.token != nullptr) {
        ids_.push_back(part.token->id);
      } else {
        encode_normalized(whole.substr(part.begin, part.end - part.begin),
                          part.begin == 0 ? normal.place : PiecePlace::kInside);
      }
    }
  }

  void encode_normalized(std::string_view text, PiecePlace place) {
    Pieces pieces{std::string(text), {{0, text.size(), place}}};
    parts_.pre_tokenizer.apply(pieces);
    for (const Piece& piece : pieces.pieces) {
      parts_.model.encode(pieces.view(piece), memory_, ids_);
    }
  }

  const TokenizerParts& parts_;
  BpeModel::Memory memory_;
  std::vector<std::int32_t> ids_;
};

void feed(const TokenizerParts& parts, std::int32_t id, DecodeSpecial special,
          DecodeStage& stages) {
  if (id < 0) throw Error("decode ids", "ids that are not negative", std::to_string(id));
  if (const AddedToken* token = parts.added.find(id)) {
    const bool is_special = token->kind == AddedToken::Kind::kSpecial;
    if (is_special && special == DecodeSpecial::kSkip) return;
    stages.append(token->form);
  } else if (const auto known = parts.model.vocabulary().token(id)) {
    stages.append(*known);
  } else {
    return;
  }
  stages.end_token();
}

}  // namespace

Tokenizer::Tokenizer(std::unique_ptr<const TokenizerParts> parts) : parts_(std::move(parts)) {}
Tokenizer::~Tokenizer() = default;
Tokenizer::Tokenizer(Tokenizer&&) noexcept = default;
Tokenizer& Tokenizer::operator=(Tokenizer&&) noexcept = default;

Tokenizer Tokenizer::open(const std::string& path) {
  return Tokenizer(read_parts(JsonFile::read(path)));
}

Tokenizer Tokenizer::parse(std::string_view json, const std::string& name) {
  return Tokenizer(read_parts(JsonFile::parse(json, name)));
}

std::vector<std::int32_t> Tokenizer::encode(std::string_view text, SpecialTokens special) const {
  const std::size_t valid = valid_utf8_prefix(text);
  if (valid != text.size()) {
    throw Error("encode text", "UTF-8",
                in_quotes(text.substr(valid, 1)) + " at byte " + std::to_string(valid));
  }
  return parts_->post_processor.apply(Encoder(*parts_).encode(text), special);
}

std::string Tokenizer::decode(std::span<const std::int32_t> ids, DecodeSpecial special) const {
  std::string text;
  const std::unique_ptr<DecodeStage> stages = parts_->decoder.stages(text);
  for (const std::int32_t id : ids) feed(*parts_, id, special, *stages);
  stages->finish();
  return text;
}

std::int32_t Tokenizer::size() const {
  return std::max(parts_->model.vocabulary().size(), parts_->added.largest_id() + 1);
}

std::optional<std::int32_t> Tokenizer::id_of(std::string_view token) const {
  if (const AddedToken* added = parts_->added.find(token)) return added->id;
  return parts_->model.vocabulary().id_of(token);
}

std::optional<std::string_view> Tokenizer::token(std::int32_t id) const {
  return parts_->token(id);
}

bool Tokenizer::is_special(std::int32_t id) const {
  const AddedToken* token = parts_->added.find(id);
  return token != nullptr && token->kind == AddedToken::Kind::kSpecial;
}

TextStream::TextStream(const Tokenizer& tokenizer, DecodeSpecial special)
    : parts_(tokenizer.parts_.get()),
      special_(special),
      text_(std::make_unique<std::string>()),
      stages_(parts_->decoder.stages(*text_)) {}
TextStream::~TextStream() = default;
TextStream::TextStream(TextStream&&) noexcept = default;
TextStream& TextStream::operator=(TextStream&&) noexcept = default;

std::string TextStream::push(std::int32_t id) {
  feed(*parts_, id, special_, *stages_);
  return std::exchange(*text_, {});
}

std::string TextStream::finish() {
  stages_->finish();
  return std::exchange(*text_, {});
}

}  // namespace tileweave
