#include "tileweave/models/tokenizer/pre_tokenizer.h"

#include <string_view>
#include <utility>

#include "tileweave/models/tokenizer/byte_alphabet.h"
#include "tileweave/models/tokenizer/normalizer.h"
#include "tileweave/models/tokenizer/unicode.h"
#include "tileweave/models/tokenizer/utf8.h"

namespace tileweave {
namespace {

// How GPT-2 finds words; ByteLevel uses it where "use_regex" is not false.
constexpr const char* kGpt2Words =
    R"('s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+)";

bool flag(const JsonNode& node, std::string_view key, bool otherwise) {
  const auto member = node.find(key);
  return member ? member->boolean() : otherwise;
}

SplitBehavior read_behavior(const JsonNode& node) {
  const std::string& name = node.string();
  if (name == "Removed") return SplitBehavior::kRemoved;
  if (name == "Isolated") return SplitBehavior::kIsolated;
  if (name == "MergedWithPrevious") return SplitBehavior::kMergedWithPrevious;
  if (name == "MergedWithNext") return SplitBehavior::kMergedWithNext;
  if (name == "Contiguous") return SplitBehavior::kContiguous;
  node.refuse("Removed, Isolated, MergedWithPrevious, MergedWithNext or Contiguous");
}

// Rewrites every piece of `pieces` into a new buffer: `rewrite(view, place, out)` appends to it.
template <typename Rewrite>
void rewrite_pieces(Pieces& pieces, const Rewrite& rewrite) {
  std::string text;
  text.reserve(pieces.text.size() + pieces.pieces.size());
  for (Piece& piece : pieces.pieces) {
    const std::size_t begin = text.size();
    rewrite(pieces.view(piece), piece.place, text);
    piece.begin = begin;
    piece.end = text.size();
  }
  pieces.text = std::move(text);
}

}  // namespace

Metaspace Metaspace::read(const JsonNode& node) {
  Metaspace metaspace;
  const JsonNode replacement = node.at("replacement");
  metaspace.replacement = replacement.string();
  if (metaspace.replacement.empty() ||
      code_point_at(metaspace.replacement, 0).length != metaspace.replacement.size()) {
    replacement.refuse("one character");
  }
  const bool adds_prefix = flag(node, "add_prefix_space", true);
  if (const auto scheme = node.find("prepend_scheme")) {
    const std::string& name = scheme->string();
    if (name == "always") {
      metaspace.prepend = PrependScheme::kAlways;
    } else if (name == "first") {
      metaspace.prepend = PrependScheme::kFirst;
    } else if (name == "never") {
      metaspace.prepend = PrependScheme::kNever;
    } else {
      scheme->refuse("always, first or never");
    }
    if (!adds_prefix && metaspace.prepend != PrependScheme::kNever) {
      scheme->refuse("never, as add_prefix_space is false");
    }
  } else {
    metaspace.prepend = adds_prefix ? PrependScheme::kAlways : PrependScheme::kNever;
  }
  metaspace.cut = flag(node, "split", true) ? Cut::kBeforeReplacement : Cut::kNone;
  return metaspace;
}

PreTokenizer PreTokenizer::read(const JsonNode& node) {
  PreTokenizer pre_tokenizer;
  pre_tokenizer.add(node);
  return pre_tokenizer;
}

void PreTokenizer::add(const JsonNode& node) {
  const JsonNode type = node.at("type");
  const std::string& name = type.string();
  if (name == "Sequence") {
    const JsonNode parts = node.at("pretokenizers");
    for (std::size_t i = 0; i < parts.length(); ++i) add(parts.element(i));
  } else if (name == "ByteLevel") {
    ByteLevel step;
    step.prefix = node.at("add_prefix_space").boolean() ? ByteLevel::Prefix::kSpace
                                                        : ByteLevel::Prefix::kNone;
    if (flag(node, "use_regex", true)) {
      step.words = Pattern::regex(Regex(kGpt2Words, "read " + node.file()));
    }
    steps_.emplace_back(std::move(step));
  } else if (name == "Split") {
    const SplitBehavior behavior = read_behavior(node.at("behavior"));
    const SplitSense sense =
        flag(node, "invert", false) ? SplitSense::kInverted : SplitSense::kAsIs;
    steps_.emplace_back(Split{read_pattern(node.at("pattern")), {behavior, sense}});
  } else if (name == "Digits") {
    const bool one_by_one = flag(node, "individual_digits", false);
    steps_.emplace_back(SplitCharacters{
        &is_numeric,
        {.behavior = one_by_one ? SplitBehavior::kIsolated : SplitBehavior::kContiguous}});
  } else if (name == "WhitespaceSplit") {
    steps_.emplace_back(SplitCharacters{&is_white_space, {.behavior = SplitBehavior::kRemoved}});
  } else if (name == "Metaspace") {
    steps_.emplace_back(Metaspace::read(node));
  } else {
    type.refuse(
        "a pre-tokenizer this library knows (Sequence, ByteLevel, Split, Digits, "
        "WhitespaceSplit, Metaspace)");
  }
}

void PreTokenizer::apply(Pieces& pieces) const {
  for (const Step& step : steps_) {
    std::visit([&pieces](const auto& known) { run(known, pieces); }, step);
  }
}

void PreTokenizer::run(const Split& step, Pieces& pieces) {
  split_at_pattern(pieces, step.pattern, step.rule);
}

void PreTokenizer::run(const SplitCharacters& step, Pieces& pieces) {
  split_at_characters(pieces, step.test, step.rule);
}

void PreTokenizer::run(const ByteLevel& step, Pieces& pieces) {
  if (step.prefix == ByteLevel::Prefix::kSpace) {
    rewrite_pieces(pieces, [](std::string_view text, PiecePlace /*place*/, std::string& out) {
      if (!text.starts_with(' ')) out += ' ';
      out += text;
    });
  }
  if (step.words) split_at_pattern(pieces, *step.words, {});
  rewrite_pieces(pieces, [](std::string_view text, PiecePlace /*place*/, std::string& out) {
    for (const char c : text) {
      append_utf8(out, kByteAlphabet.letter(static_cast<unsigned char>(c)));
    }
  });
}

void PreTokenizer::run(const Metaspace& step, Pieces& pieces) {
  rewrite_pieces(pieces, [&step](std::string_view text, PiecePlace place, std::string& out) {
    const bool may_prepend =
        step.prepend == PrependScheme::kAlways ||
        (step.prepend == PrependScheme::kFirst && place == PiecePlace::kTextStart);
    if (may_prepend && !text.starts_with(' ') && !text.starts_with(step.replacement)) {
      out += step.replacement;
    }
    for (const char c : text) {
      if (c == ' ') {
        out += step.replacement;
      } else {
        out += c;
      }
    }
  });
  if (step.cut == Metaspace::Cut::kBeforeReplacement) {
    split_at_pattern(pieces, Pattern::literal(step.replacement),
                     {.behavior = SplitBehavior::kMergedWithNext});
  }
}

}  // namespace tileweave
