#include "tileweave/models/tokenizer/split.h"

#include <algorithm>
#include <utility>

#include "tileweave/models/tokenizer/utf8.h"

namespace tileweave {
namespace {

enum class SegmentKind : std::uint8_t { kBetween, kMatch };

struct Segment {
  TextRange range;
  SegmentKind kind;
};

SegmentKind opposite(SegmentKind kind) {
  return kind == SegmentKind::kMatch ? SegmentKind::kBetween : SegmentKind::kMatch;
}

std::vector<Segment> segments_of(std::size_t size, std::span<const TextRange> matches,
                                 SplitSense sense) {
  std::vector<Segment> segments;
  segments.reserve(2 * matches.size() + 1);
  std::size_t last_end = 0;
  for (const TextRange& match : matches) {
    if (last_end != match.begin) {
      segments.push_back({{last_end, match.begin}, SegmentKind::kBetween});
    }
    segments.push_back({match, SegmentKind::kMatch});
    last_end = match.end;
  }
  if (last_end != size) segments.push_back({{last_end, size}, SegmentKind::kBetween});
  if (sense == SplitSense::kInverted) {
    for (Segment& segment : segments) segment.kind = opposite(segment.kind);
  }
  return segments;
}

// A match joins what is before it unless that is a match as well.
std::vector<TextRange> merge_with_previous(std::span<const Segment> segments) {
  std::vector<TextRange> ranges;
  SegmentKind previous = SegmentKind::kBetween;
  for (const Segment& segment : segments) {
    const bool joins =
        segment.kind == SegmentKind::kMatch && previous != SegmentKind::kMatch && !ranges.empty();
    if (joins) {
      ranges.back().end = segment.range.end;
    } else {
      ranges.push_back(segment.range);
    }
    previous = segment.kind;
  }
  return ranges;
}

// A match joins what is behind it unless that is a match as well.
std::vector<TextRange> merge_with_next(std::span<const Segment> segments) {
  std::vector<TextRange> ranges;  // from right to left
  SegmentKind next = SegmentKind::kBetween;
  for (std::size_t i = segments.size(); i-- > 0;) {
    const Segment& segment = segments[i];
    if (segment.kind == SegmentKind::kMatch && next != SegmentKind::kMatch && !ranges.empty()) {
      ranges.back().begin = segment.range.begin;
    } else {
      ranges.push_back(segment.range);
    }
    next = segment.kind;
  }
  std::reverse(ranges.begin(), ranges.end());
  return ranges;
}

std::vector<TextRange> merge_same_kind(std::span<const Segment> segments) {
  std::vector<TextRange> ranges;
  SegmentKind previous = SegmentKind::kBetween;
  for (const Segment& segment : segments) {
    if (segment.kind == previous && !ranges.empty()) {
      ranges.back().end = segment.range.end;
    } else {
      ranges.push_back(segment.range);
    }
    previous = segment.kind;
  }
  return ranges;
}

std::vector<TextRange> keep(std::span<const Segment> segments, SplitBehavior behavior) {
  std::vector<TextRange> ranges;
  for (const Segment& segment : segments) {
    if (behavior == SplitBehavior::kIsolated || segment.kind == SegmentKind::kBetween) {
      ranges.push_back(segment.range);
    }
  }
  return ranges;
}

std::vector<TextRange> kept_ranges(std::span<const Segment> segments, SplitBehavior behavior) {
  switch (behavior) {
    case SplitBehavior::kMergedWithPrevious:
      return merge_with_previous(segments);
    case SplitBehavior::kMergedWithNext:
      return merge_with_next(segments);
    case SplitBehavior::kContiguous:
      return merge_same_kind(segments);
    case SplitBehavior::kRemoved:
    case SplitBehavior::kIsolated:
      break;
  }
  return keep(segments, behavior);
}

void append_piece(const Piece& whole, std::size_t begin, std::size_t end, std::vector<Piece>& out) {
  if (begin == end) return;
  out.push_back(
      {whole.begin + begin, whole.begin + end, begin == 0 ? whole.place : PiecePlace::kInside});
}

}  // namespace

void split_piece(const Piece& piece, std::span<const TextRange> matches, SplitRule rule,
                 std::vector<Piece>& out) {
  const std::size_t size = piece.end - piece.begin;
  if (rule.behavior == SplitBehavior::kIsolated) {  // the usual one, and the sense doesn't matter
    std::size_t last_end = 0;
    for (const TextRange& match : matches) {
      append_piece(piece, last_end, match.begin, out);
      append_piece(piece, match.begin, match.end, out);
      last_end = match.end;
    }
    append_piece(piece, last_end, size, out);
    return;
  }
  const std::vector<Segment> segments = segments_of(size, matches, rule.sense);
  for (const TextRange& range : kept_ranges(segments, rule.behavior)) {
    append_piece(piece, range.begin, range.end, out);
  }
}

void split_at_pattern(Pieces& pieces, const Pattern& pattern, SplitRule rule) {
  PatternSearch search(pattern);
  std::vector<Piece> out;
  out.reserve(pieces.pieces.size());
  for (const Piece& piece : pieces.pieces) {
    split_piece(piece, search.find_all(pieces.view(piece)), rule, out);
  }
  pieces.pieces = std::move(out);
}

void split_at_characters(Pieces& pieces, CharacterTest test, SplitRule rule) {
  std::vector<TextRange> matches;
  std::vector<Piece> out;
  out.reserve(pieces.pieces.size());
  for (const Piece& piece : pieces.pieces) {
    matches.clear();
    const std::string_view text = pieces.view(piece);
    for (std::size_t at = 0; at < text.size();) {
      const CodePoint c = code_point_at(text, at);
      if (test(c.value)) matches.push_back({at, at + c.length});
      at += c.length;
    }
    split_piece(piece, matches, rule, out);
  }
  pieces.pieces = std::move(out);
}

}  // namespace tileweave
