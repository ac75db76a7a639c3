#include "tileweave/models/tokenizer/added_tokens.h"

#include <algorithm>
#include <functional>
#include <utility>

#include "tileweave/core/error.h"
#include "tileweave/core/format.h"
#include "tileweave/models/tokenizer/unicode.h"
#include "tileweave/models/tokenizer/utf8.h"

namespace tileweave {
namespace {

bool flag(const JsonNode& node, std::string_view key) {
  const auto member = node.find(key);
  return member && member->boolean();
}

AddedToken read_token(const JsonNode& node, const Normalizer& normalizer) {
  AddedToken token;
  token.content = node.at("content").string();
  token.id = static_cast<std::int32_t>(node.at("id").integer(0, kLargestTokenId));
  token.form = token.content;
  if (flag(node, "normalized")) {
    token.search = AddedToken::Search::kNormalizedText;
    NormalText text{token.content, PiecePlace::kTextStart};
    normalizer.apply(text);
    token.form = std::move(text.text);
  }
  if (flag(node, "single_word")) token.words = AddedToken::Words::kWholeOnly;
  if (flag(node, "lstrip")) token.left = AddedToken::Blanks::kSwallowed;
  if (flag(node, "rstrip")) token.right = AddedToken::Blanks::kSwallowed;
  if (flag(node, "special")) token.kind = AddedToken::Kind::kSpecial;
  return token;
}

bool is_whole_word(std::string_view text, std::size_t begin, std::size_t end) {
  const bool joins_left = begin > 0 && is_word_character(code_point_before(text, begin).value);
  const bool joins_right = end < text.size() && is_word_character(code_point_at(text, end).value);
  return !joins_left && !joins_right;
}

std::size_t skip_blanks_left(std::string_view text, std::size_t begin) {
  while (begin > 0) {
    const CodePoint c = code_point_before(text, begin);
    if (!is_white_space(c.value)) break;
    begin -= c.length;
  }
  return begin;
}

std::size_t skip_blanks_right(std::string_view text, std::size_t end) {
  while (end < text.size()) {
    const CodePoint c = code_point_at(text, end);
    if (!is_white_space(c.value)) break;
    end += c.length;
  }
  return end;
}

}  // namespace

AddedTokens AddedTokens::read(const JsonNode& node, const Vocabulary& vocabulary,
                              const Normalizer& normalizer) {
  AddedTokens added;
  const std::size_t length = node.length();
  for (std::size_t i = 0; i < length; ++i) {
    const JsonNode element = node.element(i);
    AddedToken token = read_token(element, normalizer);
    if (token.content.empty()) continue;
    const auto known = vocabulary.id_of(token.content);
    if (known && *known != token.id) {
      element.refuse(
          "id " + std::to_string(*known) + ", as in model.vocab, for " + in_quotes(token.content),
          std::to_string(token.id));
    }
    const auto other = vocabulary.token(token.id);
    if (other && *other != token.content) {
      element.refuse("of an id that is not " + in_quotes(*other) + " in model.vocab",
                     std::to_string(token.id) + " for " + in_quotes(token.content));
    }
    if (const AddedToken* twin = added.find(token.id); twin && twin->content != token.content) {
      element.refuse("of an id that is not " + in_quotes(twin->content) + " already",
                     std::to_string(token.id) + " for " + in_quotes(token.content));
    }
    if (const AddedToken* twin = added.find(token.content); twin && twin->id != token.id) {
      element.refuse(
          "id " + std::to_string(twin->id) + ", as before, for " + in_quotes(token.content),
          std::to_string(token.id));
    }
    added.add(std::move(token));
  }
  added.index_forms(node);
  return added;
}

// A token that comes again replaces the first one.
void AddedTokens::add(AddedToken token) {
  largest_id_ = std::max(largest_id_, token.id);
  const auto [place, is_new] = by_id_.emplace(token.id, tokens_.size());
  if (is_new) {
    by_content_.emplace(token.content, tokens_.size());
    tokens_.push_back(std::move(token));
  } else {
    tokens_[place->second] = std::move(token);
  }
}

void AddedTokens::index_forms(const JsonNode& node) {
  for (std::size_t i = 0; i < tokens_.size(); ++i) {
    const AddedToken& token = tokens_[i];
    if (token.form.empty()) continue;  // its normalized form never stands in text
    const bool is_normalized = token.search == AddedToken::Search::kNormalizedText;
    Forms& forms = is_normalized ? normalized_ : given_;
    const auto [place, is_new] = forms.indices.emplace(token.form, i);
    if (!is_new) {
      node.refuse("tokens that differ in their normalized form",
                  in_quotes(tokens_[place->second].content) + " and " + in_quotes(token.content));
    }
    forms.lengths[static_cast<unsigned char>(token.form[0])].push_back(token.form.size());
  }
  for (Forms* forms : {&given_, &normalized_}) {
    for (std::vector<std::size_t>& lengths : forms->lengths) {
      std::sort(lengths.begin(), lengths.end(), std::greater<>());
      lengths.erase(std::unique(lengths.begin(), lengths.end()), lengths.end());
    }
  }
}

const AddedToken* AddedTokens::find(std::int32_t id) const {
  const auto found = by_id_.find(id);
  return found == by_id_.end() ? nullptr : &tokens_[found->second];
}

const AddedToken* AddedTokens::find(std::string_view content) const {
  const auto found = by_content_.find(std::string(content));
  return found == by_content_.end() ? nullptr : &tokens_[found->second];
}

const AddedTokens::Forms& AddedTokens::forms(AddedToken::Search search) const {
  return search == AddedToken::Search::kNormalizedText ? normalized_ : given_;
}

std::vector<AddedTokens::Part> AddedTokens::split(std::string_view text,
                                                  AddedToken::Search search) const {
  const Forms& candidates = forms(search);
  std::vector<Part> parts;
  std::size_t last_end = 0;
  for (std::size_t at = 0; at < text.size() && !candidates.indices.empty();) {
    const AddedToken* token = nullptr;
    for (const std::size_t length : candidates.lengths[static_cast<unsigned char>(text[at])]) {
      if (length > text.size() - at) continue;
      const auto found = candidates.indices.find(text.substr(at, length));
      if (found == candidates.indices.end()) continue;
      token = &tokens_[found->second];
      break;
    }
    if (token == nullptr) {
      ++at;
      continue;
    }
    std::size_t begin = at;
    std::size_t end = at + token->form.size();
    at = end;
    if (token->words == AddedToken::Words::kWholeOnly && !is_whole_word(text, begin, end)) continue;
    if (token->left == AddedToken::Blanks::kSwallowed) {
      begin = skip_blanks_left(text, begin);
    }
    if (token->right == AddedToken::Blanks::kSwallowed) end = skip_blanks_right(text, end);
    if (last_end < begin) parts.push_back({last_end, begin, nullptr});
    parts.push_back({begin, end, token});
    last_end = end;
  }
  if (last_end < text.size()) parts.push_back({last_end, text.size(), nullptr});
  return parts;
}

}  // namespace tileweave
