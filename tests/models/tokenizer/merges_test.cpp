// The two ways to merge give the same tokens.
#include <gtest/gtest.h>

#include <random>

#include "tileweave/models/tokenizer/merges.h"

namespace tileweave {
namespace {

// Merges one pair after the other, looking at all of them each time.
void merge_plainly(const MergeTable& table, std::vector<std::int32_t>& ids) {
  for (;;) {
    MergeTable::Merge best;
    std::size_t place = 0;
    for (std::size_t i = 0; i + 1 < ids.size(); ++i) {
      const MergeTable::Merge merge = table.find(ids[i], ids[i + 1]);
      if (merge.rank < best.rank) {
        best = merge;
        place = i;
      }
    }
    if (best.rank == MergeTable::kNone) return;
    ids[place] = best.id;
    ids.erase(ids.begin() + static_cast<std::ptrdiff_t>(place) + 1);
  }
}

// A vocabulary that grows by random merges, as training makes one.
MergeTable random_table(std::mt19937_64& random, std::int32_t letters, std::int32_t merges) {
  MergeTable table(static_cast<std::size_t>(merges));
  for (std::int32_t i = 0; i < merges; ++i) {
    std::uniform_int_distribution<std::int32_t> token(0, letters + i - 1);
    const std::int32_t left = token(random);
    const std::int32_t right = token(random);
    if (table.find(left, right).rank != MergeTable::kNone) continue;
    table.set(left, right, {static_cast<std::uint32_t>(i), letters + i});
  }
  return table;
}

TEST(Merges, ScanAndHeapDoWhatThePlainLoopDoes) {
  for (std::uint64_t seed = 0; seed < 300; ++seed) {
    std::mt19937_64 random(seed);
    const auto letters = static_cast<std::int32_t>(1 + seed % 5);
    const MergeTable table = random_table(random, letters, 60);
    std::uniform_int_distribution<std::int32_t> letter(0, letters - 1);
    std::vector<std::int32_t> word(seed % 90);
    for (std::int32_t& id : word) id = letter(random);
    std::vector<std::int32_t> plain = word;
    merge_plainly(table, plain);
    MergeMemory memory;
    std::vector<std::int32_t> scanned = word;
    merge_by_scan(table, scanned, memory);
    EXPECT_EQ(scanned, plain) << "seed " << seed;
    std::vector<std::int32_t> heaped = word;
    merge_by_heap(table, heaped, memory);
    EXPECT_EQ(heaped, plain) << "seed " << seed;
    merge(table, word, memory);
    EXPECT_EQ(word, plain) << "seed " << seed;
  }
}

TEST(Merges, APairThatIsSetAgainGetsTheLaterRank) {
  MergeTable table(2);
  table.set(0, 1, {0, 5});
  table.set(1, 0, {1, 6});
  table.set(0, 1, {2, 5});
  std::vector<std::int32_t> ids{0, 1, 0};
  MergeMemory memory;
  merge(table, ids, memory);
  EXPECT_EQ(ids, (std::vector<std::int32_t>{0, 6}));
}

TEST(Merges, AMillionSymbolsTakeNoQuadraticTime) {
  MergeTable table(20);
  std::int32_t token = 0;
  for (std::uint32_t rank = 0; rank < 20; ++rank, ++token)
    table.set(token, token, {rank, token + 1});
  std::vector<std::int32_t> ids(1 << 20, 0);  // 2^20 symbols: seconds at n log n, hours at n^2
  MergeMemory memory;
  merge(table, ids, memory);
  EXPECT_EQ(ids, (std::vector<std::int32_t>{20}));
}

}  // namespace
}  // namespace tileweave
