// Paged attention on a GPU: decode and prefill rows against the reference, and bits that depend on
// nothing but the row.
#include <gtest/gtest.h>

#include <cmath>
#include <string>
#include <vector>

#include "tests/kernels/attention/attention_cuda.h"

namespace tileweave {
namespace {

std::unique_ptr<Device> open() {
  auto device = open_cuda_device();
  add_attention(*device);
  return device;
}

void expect_near_reference(const AttentionStep& step, const std::vector<BFloat16>& out) {
  const float scale = 1.0F / std::sqrt(static_cast<float>(step.heads.head_dim));
  const PagedAttentionReference exact = paged_attention_reference(step.problem(scale));
  for (std::size_t i = 0; i < out.size(); ++i) {
    const double got = to_float(out[i]);
    const auto width = static_cast<std::size_t>(step.q_width());
    ASSERT_LE(std::fabs(got - exact.out[i]),
              paged_attention_bf16_error_bound(exact.out[i], exact.bounds[i], exact.magnitudes[i]))
        << "row " << i / width << " at position " << step.positions[i / width] << ", column "
        << i % width << ": " << got << ", not " << exact.out[i];
  }
}

TEST(PagedAttentionCuda, HeadsOfEveryKindAgreeWithTheReference) {
  const auto device = open();
  for (const std::int64_t head_dim : {64, 80, 96, 128}) {
    for (const std::int64_t group : {1, 2, 4, 8, 7}) {
      SCOPED_TRACE(std::to_string(group) + " heads per kv head of " + std::to_string(head_dim));
      const AttentionStep step =
          rounded({{2 * group, 2, head_dim}, 16, {{1, 0, 5}, {2, 270, 1}, {3, 126, 4}}, 2});
      const std::vector<BFloat16> out = run_paged(*device, step, {});
      expect_near_reference(step, out);
      EXPECT_EQ(bits_of(run_paged(*device, step, {.tile_m = 1, .num_splits = 3})), bits_of(out));
    }
  }
}

TEST(PagedAttentionCuda, LengthsAtEdgesAgreeWithTheReferenceWithAnySplits) {
  const auto device = open();
  for (const std::int64_t length :
       {1, 15, 16, 17, 63, 64, 65, 127, 128, 129, 255, 256, 257, 384, 1000, 2049, 8191}) {
    const AttentionStep step = rounded({{4, 1, 128}, 16, {{1, length - 1, 1}}});
    const std::vector<BFloat16> out = run_paged(*device, step, {.num_splits = 1});
    SCOPED_TRACE("length " + std::to_string(length));
    expect_near_reference(step, out);
    for (const std::int64_t splits : {0, 2, 5, 16, 32}) {
      EXPECT_EQ(bits_of(run_paged(*device, step, {.num_splits = splits})), bits_of(out))
          << splits << " splits";
    }
  }
}

TEST(PagedAttentionCuda, ThirtyTwoThousandKeysAgreeWithTheReference) {
  const auto device = open();
  const AttentionStep step = rounded({{2, 1, 64}, 16, {{1, 32767, 1}}});
  const std::vector<BFloat16> out = run_paged(*device, step, {});
  expect_near_reference(step, out);
  EXPECT_EQ(bits_of(run_paged(*device, step, {.num_splits = 1})), bits_of(out));
}

TEST(PagedAttentionCuda, BitsOfARowDependOnItsOwnKeysAlone) {
  const auto device = open();
  const AttentionHeads heads{8, 2, 64};
  const AttentionStep batch = rounded(
      {heads, 16, {{1, 0, 20}, {2, 61, 9}, {3, 130, 1}, {4, 0, 1}, {5, 900, 2}, {6, 383, 1}}, 1});
  for (const std::int64_t tile_m : {1, 3, 8}) {
    for (const std::int64_t splits : {0, 1, 4}) {
      SCOPED_TRACE("tile_m " + std::to_string(tile_m) + ", splits " + std::to_string(splits));
      const std::vector<std::uint16_t> out = bits_of(
          run_paged(*device, batch,
                    {.tile_m = tile_m, .num_splits = splits, .num_blocks = tile_m == 3 ? 5 : 0}));
      for (std::size_t s = 0; s < batch.sequences.size(); ++s) {
        const StepSequence& sequence = batch.sequences[s];
        const std::int64_t j = sequence.past + sequence.rows - 1;
        const AttentionStep alone = rounded({heads, 4, {{sequence.name, j, 1}}});
        const std::vector<std::uint16_t> expected = bits_of(run_paged(*device, alone, {}));
        const auto begin =
            out.begin() + batch.row_of(static_cast<std::int64_t>(s), j) * batch.q_width();
        ASSERT_TRUE(std::equal(expected.begin(), expected.end(), begin))
            << "sequence " << sequence.name << " at " << j;
      }
    }
  }
}

TEST(PagedAttentionCuda, PaddingRowsAreZeroAndNaNsOfOthersDoNotShow) {
  const auto device = open();
  const AttentionStep step = rounded({{4, 2, 64}, 4, {{1, 3, 2}, {2, 0, 1}}, 3});
  for (const std::int64_t splits : {1, 4}) {
    const std::vector<BFloat16> out = run_paged(*device, step, {.num_splits = splits});
    for (std::size_t i = 0; i < out.size(); ++i) {
      const std::size_t row = i / static_cast<std::size_t>(step.q_width());
      ASSERT_TRUE(std::isfinite(to_float(out[i]))) << "row " << row;
      ASSERT_EQ(to_float(out[i]) == 0, step.sequence_of_row[row] < 0) << "row " << row;
    }
  }
}

}  // namespace
}  // namespace tileweave
