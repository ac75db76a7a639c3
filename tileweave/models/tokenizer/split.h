// Splits pieces of text where something matches. Internal to the tokenizer.
//
// Matches cut a piece into segments, the matches themselves and what lies between; the behavior
// then says which segments become pieces of their own, which join a neighbour and which go.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "tileweave/models/tokenizer/pattern.h"
#include "tileweave/models/tokenizer/pieces.h"

namespace tileweave {

/// Of "a-b", split at "-": a|b, a|-|b, a-|b, a|-b; kContiguous is kIsolated with neighbouring
/// matches in one piece.
enum class SplitBehavior : std::uint8_t {
  kRemoved,
  kIsolated,
  kMergedWithPrevious,
  kMergedWithNext,
  kContiguous,
};

/// kInverted: what lies between the matches counts as matched, and the other way round.
enum class SplitSense : std::uint8_t { kAsIs, kInverted };

struct SplitRule {
  SplitBehavior behavior = SplitBehavior::kIsolated;
  SplitSense sense = SplitSense::kAsIs;
};

/// Appends the pieces of one piece; `matches` are relative to its beginning, in order.
void split_piece(const Piece& piece, std::span<const TextRange> matches, SplitRule rule,
                 std::vector<Piece>& out);

/// Splits every piece at the pattern's matches.
void split_at_pattern(Pieces& pieces, const Pattern& pattern, SplitRule rule);

/// Splits every piece at the characters that the function picks.
using CharacterTest = bool (*)(char32_t);
void split_at_characters(Pieces& pieces, CharacterTest test, SplitRule rule);

}  // namespace tileweave
