#include "tileweave/models/kv_cache.h"

#include <gtest/gtest.h>

#include <random>
#include <set>

#include "tileweave/core/error.h"

namespace tileweave {
namespace {

KvCacheShape shape(std::int64_t pages, std::int64_t page_size) {
  return {.layers = 2, .row_elements = 8, .num_pages = pages, .page_size = page_size};
}

TEST(KvCache, PlacesTokensInPagesOfTheirSequence) {
  const auto device = open_cpu_device();
  KvCache cache(*device, shape(4, 3));
  const auto a = cache.add();
  const auto b = cache.add();
  cache.extend(a, 3);  // exactly one page
  cache.extend(b, 1);
  cache.extend(a, 1);  // begins its second page
  EXPECT_EQ(cache.length(a), 4);
  EXPECT_EQ(cache.pages(a).size(), 2U);
  EXPECT_EQ(cache.row(a, 2), cache.row(a, 0) + 2);
  EXPECT_EQ(cache.row(a, 3), cache.pages(a)[1] * 3);
  EXPECT_NE(cache.pages(a)[1], cache.pages(b)[0]);
  EXPECT_EQ(cache.free_tokens(), 3);
}

TEST(KvCache, RefusesWhatDoesNotFitAndStaysAsItWas) {
  const auto device = open_cpu_device();
  KvCache cache(*device, shape(2, 4));
  const auto a = cache.add();
  cache.extend(a, 5);
  try {
    cache.extend(a, 4);
    FAIL() << "nine tokens fit into two pages of four";
  } catch (const Error& error) {
    EXPECT_STREQ(error.what(),
                 "extend a sequence in the KV cache: room for 4 more tokens, got 0 of 8 tokens in "
                 "free pages");
  }
  EXPECT_EQ(cache.length(a), 5);
  cache.extend(a, 3);  // the rest of its second page
  EXPECT_EQ(cache.length(a), 8);
}

TEST(KvCache, KnowsNoSequenceThatWasNotAdded) {
  const auto device = open_cpu_device();
  KvCache cache(*device, shape(2, 4));
  EXPECT_THROW(cache.extend(0, 1), Error);
  const auto a = cache.add();
  cache.remove(a);
  EXPECT_THROW(cache.length(a), Error);
  EXPECT_THROW(cache.remove(a), Error);
  EXPECT_THROW(cache.truncate(-1, 0), Error);
}

TEST(KvCache, LayersAndHalvesDoNotOverlap) {
  const auto device = open_cpu_device();
  const KvCache cache(*device, shape(2, 4));
  const std::ptrdiff_t pool = 2 * 4 * 8 * 4;
  const auto* first = static_cast<const std::byte*>(cache.keys(0));
  EXPECT_EQ(static_cast<const std::byte*>(cache.values(0)) - first, pool);
  EXPECT_EQ(static_cast<const std::byte*>(cache.keys(1)) - first, 2 * pool);
  EXPECT_EQ(bytes_of(cache.shape()), static_cast<std::size_t>(4 * pool));
}

/// No two live tokens share a row, whatever is added, extended, truncated and removed.
TEST(KvCache, NeverGivesARowToTwoTokens) {
  const auto device = open_cpu_device();
  for (std::uint32_t seed = 1; seed <= 50; ++seed) {
    SCOPED_TRACE(testing::Message() << "seed " << seed);
    std::mt19937 random(seed);
    const auto below = [&](std::int64_t n) {
      return static_cast<std::int64_t>(random() % static_cast<std::uint64_t>(n));
    };
    const std::int64_t pages = 1 + below(12);
    KvCache cache(*device, shape(pages, 1 + below(5)));
    std::vector<KvCache::SequenceId> live;
    for (int step = 0; step < 60; ++step) {
      const std::int64_t what = below(4);
      if (what == 0 || live.empty()) {
        live.push_back(cache.add());
        continue;
      }
      const std::int64_t at = below(static_cast<std::int64_t>(live.size()));
      const auto sequence = live[static_cast<std::size_t>(at)];
      if (what == 1) {
        const std::int64_t count = 1 + below(6);
        try {
          cache.extend(sequence, count);
        } catch (const Error&) {
          ASSERT_LT(cache.free_tokens(), count);
        }
      } else if (what == 2) {
        cache.truncate(sequence, below(cache.length(sequence) + 1));
      } else {
        cache.remove(sequence);
        live.erase(live.begin() + at);
      }
      std::set<std::int32_t> rows;
      std::int64_t tokens = 0;
      std::size_t used_pages = 0;
      for (const auto s : live) {
        used_pages += cache.pages(s).size();
        for (std::int64_t token = 0; token < cache.length(s); ++token, ++tokens) {
          rows.insert(cache.row(s, token));
        }
      }
      ASSERT_EQ(static_cast<std::int64_t>(rows.size()), tokens);
      ASSERT_TRUE(rows.empty() || (*rows.begin() >= 0 && *rows.rbegin() < cache.pool_rows()));
      ASSERT_EQ(cache.free_tokens() / cache.shape().page_size,
                pages - static_cast<std::int64_t>(used_pages));
    }
  }
}

}  // namespace
}  // namespace tileweave
