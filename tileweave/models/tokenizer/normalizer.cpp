#include "tileweave/models/tokenizer/normalizer.h"

#include <algorithm>
#include <string_view>
#include <utility>

#include "tileweave/models/tokenizer/utf8.h"

namespace tileweave {

Pattern read_pattern(const JsonNode& node) {
  if (const auto text = node.require_object().find("String")) {
    return Pattern::literal(text->string());
  }
  if (const auto expression = node.find("Regex")) {
    return Pattern::regex(
        Regex(expression->string(), "read " + node.file() + ": " + expression->path()));
  }
  node.refuse("an object with the key String or Regex");
}

Normalizer Normalizer::read(const JsonNode& node) {
  Normalizer normalizer;
  normalizer.add(node);
  return normalizer;
}

void Normalizer::add(const JsonNode& node) {
  const JsonNode type = node.at("type");
  const std::string& name = type.string();
  if (name == "Sequence") {
    const JsonNode parts = node.at("normalizers");
    for (std::size_t i = 0; i < parts.length(); ++i) add(parts.element(i));
  } else if (name == "NFC") {
    steps_.emplace_back(NormalForm::kNfc);
  } else if (name == "NFD") {
    steps_.emplace_back(NormalForm::kNfd);
  } else if (name == "NFKC") {
    steps_.emplace_back(NormalForm::kNfkc);
  } else if (name == "NFKD") {
    steps_.emplace_back(NormalForm::kNfkd);
  } else if (name == "Lowercase") {
    steps_.emplace_back(LowerCase{});
  } else if (name == "Prepend") {
    steps_.emplace_back(Prepend{node.at("prepend").string()});
  } else if (name == "Replace") {
    steps_.emplace_back(Replace{read_pattern(node.at("pattern")), node.at("content").string()});
  } else if (name == "Strip") {
    Strip strip;
    if (node.at("strip_left").boolean()) strip.sides.push_back(Side::kLeft);
    if (node.at("strip_right").boolean()) strip.sides.push_back(Side::kRight);
    steps_.emplace_back(std::move(strip));
  } else {
    type.refuse(
        "a normalizer this library knows (Sequence, NFC, NFD, NFKC, NFKD, Lowercase, "
        "Prepend, Replace, Strip)");
  }
}

void Normalizer::apply(NormalText& text) const {
  for (const Step& step : steps_) {
    std::visit([&text](const auto& known) { run(known, text); }, step);
  }
}

void Normalizer::run(NormalForm form, NormalText& text) {
  text.text = normalize(text.text, form);
}

void Normalizer::run(const LowerCase& /*step*/, NormalText& text) {
  std::string lower;
  lower.reserve(text.text.size());
  for (std::size_t at = 0; at < text.text.size();) {
    const CodePoint c = code_point_at(text.text, at);
    append_lower_case(lower, c.value);
    at += c.length;
  }
  text.text = std::move(lower);
}

void Normalizer::run(const Prepend& step, NormalText& text) {
  if (!text.text.empty()) text.text.insert(0, step.content);
}

void Normalizer::run(const Replace& step, NormalText& text) {
  PatternSearch search(step.pattern);
  const std::vector<TextRange>& matches = search.find_all(text.text);
  if (matches.empty()) return;
  // What replaces several characters stands for the last of them.
  const TextRange& first = matches.front();
  const bool takes_start = first.begin == 0 && first.end > 0 &&
                           (step.content.empty() || first.end > code_point_at(text.text, 0).length);
  if (takes_start) text.place = PiecePlace::kInside;
  text.text = replace_matches(text.text, matches, step.content);
}

void Normalizer::run(const Strip& step, NormalText& text) {
  for (const Side side : step.sides) {
    std::size_t begin = 0;
    std::size_t end = text.text.size();
    while (side == Side::kLeft && begin < end) {
      const CodePoint c = code_point_at(text.text, begin);
      if (!is_white_space(c.value)) break;
      begin += c.length;
    }
    while (side == Side::kRight && begin < end) {
      const CodePoint c = code_point_before(text.text, end);
      if (!is_white_space(c.value)) break;
      end -= c.length;
    }
    if (begin > 0) text.place = PiecePlace::kInside;
    text.text = text.text.substr(begin, end - begin);
  }
}

}  // namespace tileweave
