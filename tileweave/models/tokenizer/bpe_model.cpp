#include "tileweave/models/tokenizer/bpe_model.h"

#include <cstdio>
#include <utility>

#include "tileweave/core/error.h"
#include "tileweave/core/format.h"
#include "tileweave/models/tokenizer/utf8.h"

namespace tileweave {
namespace {

// Covers ASCII and the alphabet of byte-level vocabularies.
constexpr char32_t kTabulatedCharacters = 0x180;

bool flag(const JsonNode& node, std::string_view key) {
  const auto member = node.find(key);
  return member && member->boolean();
}

void require_empty(const JsonNode& node, std::string_view key) {
  const auto member = node.find(key);
  if (member && !member->string().empty()) member->refuse("empty, anything else is not supported");
}

struct MergeNames {
  std::string_view left;
  std::string_view right;
};

// "a b" or ["a", "b"].
MergeNames names_of(const JsonNode& merges, std::size_t index) {
  const nlohmann::json& value = merges.json()[index];
  if (value.is_string()) {
    const std::string_view text = value.get_ref<const std::string&>();
    const std::size_t blank = text.find(' ');
    if (blank != std::string_view::npos && text.find(' ', blank + 1) == std::string_view::npos) {
      return {text.substr(0, blank), text.substr(blank + 1)};
    }
  } else if (value.is_array() && value.size() == 2 && value[0].is_string() &&
             value[1].is_string()) {
    return {value[0].get_ref<const std::string&>(), value[1].get_ref<const std::string&>()};
  }
  merges.element(index).refuse("two tokens, \"a b\" or [\"a\", \"b\"]");
}

bool is_version_line(const nlohmann::json& value) {
  return value.is_string() && value.get_ref<const std::string&>().starts_with("#version");
}

MergeTable read_merges(const JsonNode& node, const Vocabulary& vocabulary) {
  const std::size_t length = node.length();
  MergeTable table(length);
  std::string joined;
  std::uint32_t rank = 0;
  for (std::size_t i = 0; i < length; ++i) {
    if (is_version_line(node.json()[i])) continue;
    const MergeNames names = names_of(node, i);
    joined.assign(names.left);
    joined += names.right;
    const auto id = [&](std::string_view token) {
      if (const auto found = vocabulary.id_of(token)) return *found;
      node.element(i).refuse("of tokens and to give a token of the vocabulary", in_quotes(token));
    };
    const std::int32_t left = id(names.left);
    const std::int32_t right = id(names.right);
    table.set(left, right, {rank++, id(joined)});
  }
  return table;
}

}  // namespace

BpeModel BpeModel::read(const JsonNode& node) {
  // Files of the first years don't name the type.
  if (const auto type = node.require_object().find("type"); type && type->string() != "BPE") {
    type->refuse("BPE, the one model of tokens this library knows");
  }
  if (const auto dropout = node.find("dropout"); dropout && dropout->number(0, 1) != 0) {
    dropout->refuse("null or 0, as tokens are not chosen by chance");
  }
  require_empty(node, "continuing_subword_prefix");
  require_empty(node, "end_of_word_suffix");
  Settings settings;
  if (flag(node, "byte_fallback")) settings.fallback = Fallback::kBytes;
  if (flag(node, "fuse_unk")) settings.unknowns = Unknowns::kFused;
  if (flag(node, "ignore_merges")) settings.whole_words = WholeWords::kFromVocabulary;
  if (const auto unknown = node.find("unk_token")) settings.unknown_token = unknown->string();
  Vocabulary vocabulary = Vocabulary::read(node.at("vocab"));
  MergeTable merges = read_merges(node.at("merges"), vocabulary);
  return {std::move(vocabulary), std::move(merges), std::move(settings)};
}

BpeModel::BpeModel(Vocabulary vocabulary, MergeTable merges, Settings settings)
    : vocabulary_(std::move(vocabulary)),
      merges_(std::move(merges)),
      settings_(std::move(settings)) {
  for (char32_t c = 0; c < kTabulatedCharacters; ++c) {
    std::string character;
    append_utf8(character, c);
    id_of_character_.push_back(vocabulary_.id_of(character).value_or(-1));
  }
  for (unsigned byte = 0; byte < 256; ++byte) {
    char name[sizeof "<0x00>"];
    std::snprintf(name, sizeof name, "<0x%02X>", byte);
    id_of_byte_.push_back(vocabulary_.id_of(name).value_or(-1));
  }
}

std::int32_t BpeModel::unknown_id() const {
  const auto id = vocabulary_.id_of(*settings_.unknown_token);
  if (!id) {
    throw Error("encode text", "model.unk_token to be in the vocabulary",
                in_quotes(*settings_.unknown_token));
  }
  return *id;
}

bool BpeModel::append_bytes(std::string_view character, std::vector<std::int32_t>& ids) const {
  for (const char c : character) {
    if (id_of_byte_[static_cast<unsigned char>(c)] < 0) return false;
  }
  for (const char c : character) ids.push_back(id_of_byte_[static_cast<unsigned char>(c)]);
  return true;
}

void BpeModel::split_into_characters(std::string_view word, std::vector<std::int32_t>& ids) const {
  constexpr std::int32_t kNone = -1;
  std::int32_t pending = kNone;  // an unknown token that later ones may join
  for (std::size_t at = 0; at < word.size();) {
    const CodePoint c = code_point_at(word, at);
    const std::string_view character = word.substr(at, c.length);
    at += c.length;
    const std::int32_t id = c.value < kTabulatedCharacters
                                ? id_of_character_[c.value]
                                : vocabulary_.id_of(character).value_or(-1);
    if (id >= 0) {
      if (pending != kNone) ids.push_back(pending);
      pending = kNone;
      ids.push_back(id);
      continue;
    }
    if (settings_.fallback == Fallback::kBytes && append_bytes(character, ids)) continue;
    if (!settings_.unknown_token) continue;
    if (pending != kNone && settings_.unknowns == Unknowns::kOneByOne) ids.push_back(pending);
    pending = unknown_id();
  }
  if (pending != kNone) ids.push_back(pending);
}

void BpeModel::encode(std::string_view word, Memory& memory, std::vector<std::int32_t>& ids) const {
  if (settings_.whole_words == WholeWords::kFromVocabulary) {
    if (const auto id = vocabulary_.id_of(word)) {
      ids.push_back(*id);
      return;
    }
  }
  memory.ids.clear();
  split_into_characters(word, memory.ids);
  merge(merges_, memory.ids, memory.merging);
  ids.insert(ids.end(), memory.ids.begin(), memory.ids.end());
}

}  // namespace tileweave
