#include "tileweave/models/tokenizer/merges.h"

#include <algorithm>
#include <bit>

namespace tileweave {
namespace {

// Beyond this many symbols the heap is faster.
constexpr std::size_t kLongestScan = 48;

std::uint64_t pair_of(std::int32_t left, std::int32_t right) {
  return static_cast<std::uint64_t>(static_cast<std::uint32_t>(left)) << 32 |
         static_cast<std::uint32_t>(right);
}

// For std::push_heap, which keeps the greatest in front: lowest rank, then leftmost.
bool comes_later(const MergeMemory::Candidate& a, const MergeMemory::Candidate& b) {
  return a.rank != b.rank ? a.rank > b.rank : a.place > b.place;
}

}  // namespace

MergeTable::MergeTable(std::size_t expected)
    : slots_(std::bit_ceil(2 * expected + 2)), shift_(64 - std::countr_zero(slots_.size())) {}

std::size_t MergeTable::slot_of(std::uint64_t pair) const {
  constexpr std::uint64_t kGoldenRatio = 0x9E3779B97F4A7C15;
  auto slot = static_cast<std::size_t>((pair * kGoldenRatio) >> shift_);
  while (slots_[slot].pair != pair && slots_[slot].pair != kFree) {
    slot = (slot + 1) & (slots_.size() - 1);
  }
  return slot;
}

void MergeTable::set(std::int32_t left, std::int32_t right, Merge merge) {
  const std::uint64_t pair = pair_of(left, right);
  slots_[slot_of(pair)] = {pair, merge};
}

MergeTable::Merge MergeTable::find(std::int32_t left, std::int32_t right) const {
  return slots_[slot_of(pair_of(left, right))].merge;
}

void merge_by_scan(const MergeTable& table, std::vector<std::int32_t>& ids, MergeMemory& memory) {
  // ranks[i], merged[i]: of symbol i and its right neighbour.
  std::vector<std::uint32_t>& ranks = memory.ranks;
  std::vector<std::int32_t>& merged = memory.merged;
  if (ids.size() < 2) return;
  ranks.resize(ids.size() - 1);
  merged.resize(ids.size() - 1);
  const auto look_up = [&](std::size_t i) {
    const MergeTable::Merge found = table.find(ids[i], ids[i + 1]);
    ranks[i] = found.rank;
    merged[i] = found.id;
  };
  for (std::size_t i = 0; i + 1 < ids.size(); ++i) look_up(i);
  while (!ranks.empty()) {
    const auto lowest = std::min_element(ranks.begin(), ranks.end());
    if (*lowest == MergeTable::kNone) return;
    const auto offset = lowest - ranks.begin();
    const auto place = static_cast<std::size_t>(offset);
    ids[place] = merged[place];
    ids.erase(ids.begin() + offset + 1);
    ranks.erase(lowest);
    merged.erase(merged.begin() + offset);
    if (place < ranks.size()) look_up(place);
    if (place > 0) look_up(place - 1);
  }
}

void merge_by_heap(const MergeTable& table, std::vector<std::int32_t>& ids, MergeMemory& memory) {
  std::vector<MergeMemory::Symbol>& symbols = memory.symbols;
  std::vector<MergeMemory::Candidate>& heap = memory.heap;
  const auto size = static_cast<std::int32_t>(ids.size());
  symbols.clear();
  heap.clear();
  for (std::int32_t i = 0; i < size; ++i) {
    symbols.push_back({ids[static_cast<std::size_t>(i)], i - 1, i + 1 < size ? i + 1 : -1});
  }
  const auto symbol = [&symbols](std::int32_t place) -> MergeMemory::Symbol& {
    return symbols[static_cast<std::size_t>(place)];
  };
  // Proposes the merge of a symbol and its right neighbour, if there is one.
  const auto propose = [&](std::int32_t place) {
    const MergeTable::Merge found = table.find(symbol(place).id, symbol(symbol(place).next).id);
    if (found.rank != MergeTable::kNone) heap.push_back({found.rank, place, found.id});
    return found.rank != MergeTable::kNone;
  };
  for (std::int32_t i = 0; i + 1 < size; ++i) propose(i);
  std::make_heap(heap.begin(), heap.end(), comes_later);
  while (!heap.empty()) {
    std::pop_heap(heap.begin(), heap.end(), comes_later);
    const MergeMemory::Candidate top = heap.back();
    heap.pop_back();
    MergeMemory::Symbol& left = symbol(top.place);
    if (left.id < 0 || left.next < 0) continue;  // it was merged away, or its neighbour was
    MergeMemory::Symbol& right = symbol(left.next);
    const MergeTable::Merge now = table.find(left.id, right.id);
    if (now.rank != top.rank) continue;  // one of the two is not what it was
    left.id = top.id;
    left.next = right.next;
    right.id = -1;
    if (left.next >= 0) symbol(left.next).previous = top.place;
    if (left.previous >= 0 && propose(left.previous)) {
      std::push_heap(heap.begin(), heap.end(), comes_later);
    }
    if (left.next >= 0 && propose(top.place)) {
      std::push_heap(heap.begin(), heap.end(), comes_later);
    }
  }
  ids.clear();
  for (const MergeMemory::Symbol& kept : symbols) {
    if (kept.id >= 0) ids.push_back(kept.id);
  }
}

void merge(const MergeTable& table, std::vector<std::int32_t>& ids, MergeMemory& memory) {
  if (ids.size() <= kLongestScan) {
    merge_by_scan(table, ids, memory);
  } else {
    merge_by_heap(table, ids, memory);
  }
}

}  // namespace tileweave
