// Byte pair encoding's merges: which two neighbouring tokens become one, and in which order.
// Internal to the tokenizer.
//
// Among all neighbours of a word that may merge, the pair of the lowest rank goes first, of equal
// ones the leftmost, until none is left. Two ways to do that give the same tokens: a scan for the
// minimum, for the short words that text is made of, and a heap, whose time grows as n log n.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

namespace tileweave {

class MergeTable {
 public:
  struct Merge {
    std::uint32_t rank = kNone;
    std::int32_t id = -1;  // of the token that the two become
  };
  static constexpr std::uint32_t kNone = 0xFFFFFFFF;

  explicit MergeTable(std::size_t expected);
  /// A pair that is set again gets the later rank.
  void set(std::int32_t left, std::int32_t right, Merge merge);
  /// rank kNone when the two don't merge.
  Merge find(std::int32_t left, std::int32_t right) const;

 private:
  struct Slot {
    std::uint64_t pair = kFree;
    Merge merge;
  };
  // No two ids make this pair, because ids are not negative.
  static constexpr std::uint64_t kFree = ~std::uint64_t{0};
  std::size_t slot_of(std::uint64_t pair) const;

  std::vector<Slot> slots_;  // open addressing, a power of two, at most half full
  int shift_;
};

/// Memory that merging reuses from word to word.
struct MergeMemory {
  struct Symbol {
    std::int32_t id;
    std::int32_t previous;
    std::int32_t next;
  };
  struct Candidate {
    std::uint32_t rank;
    std::int32_t place;
    std::int32_t id;
  };
  std::vector<std::uint32_t> ranks;
  std::vector<std::int32_t> merged;
  std::vector<Symbol> symbols;
  std::vector<Candidate> heap;
};

/// Merge `ids` in place; the same result.
void merge_by_scan(const MergeTable& table, std::vector<std::int32_t>& ids, MergeMemory& memory);
void merge_by_heap(const MergeTable& table, std::vector<std::int32_t>& ids, MergeMemory& memory);
/// Whichever is faster for the length.
void merge(const MergeTable& table, std::vector<std::int32_t>& ids, MergeMemory& memory);

}  // namespace tileweave
