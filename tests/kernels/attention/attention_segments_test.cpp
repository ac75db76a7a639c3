// How a GPU cuts the keys of a row: every pass once, whole segments, whatever the number of splits.
#include <gtest/gtest.h>

#include <string>

#include "tileweave/kernels/attention/attention_segments.h"

namespace tileweave {
namespace {

TEST(AttentionSegments, AreNumberedInOrderAndStartWhereThePreviousOneEnds) {
  int pass = 0;
  for (int index = 0; pass < 2000; ++index) {
    const int length = AttentionSegments::length(pass);
    EXPECT_EQ(AttentionSegments::start_from(pass), pass);
    for (int i = 0; i < length; ++i) {
      EXPECT_EQ(AttentionSegments::index(pass + i), index) << "pass " << pass + i;
      EXPECT_EQ(AttentionSegments::start_from(pass + i), i == 0 ? pass : pass + length);
    }
    EXPECT_EQ(AttentionSegments::count(pass + length), index + 1);
    pass += length;
  }
  EXPECT_EQ(AttentionSegments::count(0), 0);
}

TEST(AttentionSplits, ShareOutEveryPassOnceInWholeSegments) {
  for (const int splits : {1, 2, 3, 7, 16, 32}) {
    for (int passes = 0; passes <= 1100; passes += passes < 300 ? 1 : 37) {
      SCOPED_TRACE(std::to_string(passes) + " passes over " + std::to_string(splits));
      const AttentionSplits s = AttentionSplits::of(passes, splits);
      int next = 0;
      int idle = 0;
      for (int i = 0; i < splits; ++i) {
        ASSERT_EQ(s.begin(i, passes), next);
        next = s.end(i, passes);
        ASSERT_GE(next, s.begin(i, passes));
        if (next < passes) {
          ASSERT_EQ(AttentionSegments::start_from(next), next);
        }
        if (i > 0 && s.empty(i, passes)) ++idle;
      }
      ASSERT_EQ(next, passes);
      ASSERT_EQ(s.num_idle(passes), idle);
      if (passes > 0) {
        ASSERT_FALSE(s.empty(0, passes));
      }
      if (passes <= kAttentionAlone) {
        ASSERT_EQ(idle, splits - 1);
      }
    }
  }
}

TEST(AttentionSplits, OfAShorterRowOfTheSameTileShareOutItsPassesToo) {
  for (int longest = 1; longest < 200; ++longest) {
    const AttentionSplits s = AttentionSplits::of(longest, 5);
    for (int passes = 0; passes <= longest; ++passes) {
      int next = 0;
      for (int i = 0; i < 5; ++i) {
        ASSERT_EQ(s.begin(i, passes), next) << passes << " of " << longest;
        next = s.end(i, passes);
        if (s.empty(i, longest)) {
          ASSERT_TRUE(s.empty(i, passes));
        }
      }
      ASSERT_EQ(next, passes);
    }
  }
}

TEST(AttentionSplits, GiveAGpuAboutOneOrTwoWorksPerSm) {
  EXPECT_EQ(attention_splits(8, 4096), 16);
  EXPECT_EQ(attention_splits(8, 256), 1);     // one block is sooner done
  EXPECT_EQ(attention_splits(8, 1024), 4);    // no more than segments
  EXPECT_EQ(attention_splits(128, 4096), 2);  // batch 16
  EXPECT_EQ(attention_splits(4096, 4096), 1);
  EXPECT_EQ(attention_splits(1, 1 << 20), kAttentionMostSplits);
}

}  // namespace
}  // namespace tileweave
