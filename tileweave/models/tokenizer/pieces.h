// Text on its way through a pre-tokenizer: a buffer and the parts of it that are split further.
// Internal to the tokenizer.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace tileweave {

/// Whether a piece begins where the text that the user gave begins; the "first" scheme of Metaspace
/// asks for it.
enum class PiecePlace : std::uint8_t { kTextStart, kInside };

struct Piece {
  std::size_t begin;
  std::size_t end;
  PiecePlace place;
};

/// Pieces are never empty, do not overlap and are in order; bytes between them are dropped.
struct Pieces {
  std::string text;
  std::vector<Piece> pieces;

  std::string_view view(const Piece& piece) const {
    return std::string_view(text).substr(piece.begin, piece.end - piece.begin);
  }
};

}  // namespace tileweave
