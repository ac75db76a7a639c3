// The reference by hand, and the CPU form's arithmetic and declared boxes without a device.
#include <gtest/gtest.h>

#include <cmath>
#include <cstdint>
#include <string>
#include <vector>

#include "tests/kernels/attention/attention_step.h"
#include "tests/kernels/attention/step_tensors.h"
#include "tests/kernels/serial_lane.h"
#include "tileweave/kernels/attention/paged_attention.h"
#include "tileweave/kernels/attention/paged_attention_args.h"
#include "tileweave/plan/tensor.h"

namespace tileweave {
namespace {

PagedAttentionOptions options_of(const AttentionStep& step, PagedAttentionOptions options) {
  options.head_dim = step.heads.head_dim;
  options.page_size = step.page_size;
  return options;
}

std::vector<float> attend(AttentionStep step, const PagedAttentionOptions& options = {}) {
  const StepTensors t(step);
  const NodeSpec node = paged_attention(t.table, options_of(step, options), t.at);
  KernelLibrary kernels;
  add_attention_cpu(kernels);
  std::vector<float> out(step.q.size(), std::numeric_limits<float>::quiet_NaN());
  const SerialLane lane = run_serially<PagedAttentionOperands::kSlots>(
      node, t.table, kernels, {.operands = step.addresses(out)});
  EXPECT_EQ(lane.works_run(), node.num_works);
  EXPECT_EQ(lane.signals(), node.num_works);
  return out;
}

/// Largest error as a share of its bound.
double expect_near_reference(const AttentionStep& step, const PagedAttentionOptions& options = {}) {
  const float scale =
      options.scale.value_or(1.0F / std::sqrt(static_cast<float>(step.heads.head_dim)));
  const PagedAttentionReference exact = paged_attention_reference(step.problem(scale));
  const std::vector<float> out = attend(step, options);
  double worst = 0;
  for (std::size_t i = 0; i < out.size(); ++i) {
    const double error = std::fabs(out[i] - exact.out[i]);
    EXPECT_LE(error, exact.bounds[i])
        << "element " << i << ": " << out[i] << ", not " << exact.out[i];
    if (error > exact.bounds[i]) break;
    if (exact.bounds[i] > 0) worst = std::fmax(worst, error / exact.bounds[i]);
  }
  return worst;
}

TEST(PagedAttentionReference, AttendsByHand) {
  // Two tokens in pages of one (page 1, then page 0 unused), one row at position 1.
  const std::vector<float> q{2, 0}, k_step{0, 5}, v_step{3, 4}, k_pool{9, 9, 0, 7};
  const std::vector<float> v_pool{9, 9, 1, -4};
  const std::vector<std::int32_t> positions{1}, sequence{0}, first{0}, past{1}, table{1, 0};
  PagedAttentionProblem problem{.max_pages = 2,
                                .q = q,
                                .k_step = k_step,
                                .v_step = v_step,
                                .k_past = k_pool,
                                .v_past = v_pool,
                                .positions = positions,
                                .sequence_of_row = sequence,
                                .first_row = first,
                                .past = past,
                                .page_table = table};
  EXPECT_EQ(paged_attention_reference(problem).out, (std::vector<double>{2, 0}));  // equal scores
  const std::vector<float> k_likely{std::log(3.0F), 5};  // with q and scale 1/2: 3 to 1
  problem.k_step = k_likely;
  problem.scale = 0.5;
  const std::vector<double> out = paged_attention_reference(problem).out;
  EXPECT_NEAR(out[0], 2.5, 1e-7);
  EXPECT_NEAR(out[1], 2.0, 1e-7);
}

TEST(PagedAttentionSerial, HeadsOfEveryKindAgreeWithTheReference) {
  const std::vector<StepSequence> batch{{1, 0, 5}, {2, 70, 1}, {3, 9, 3}};
  for (const AttentionHeads& heads : std::vector<AttentionHeads>{{1, 1, 2},
                                                                 {4, 4, 8},
                                                                 {4, 1, 16},
                                                                 {9, 3, 64},
                                                                 {8, 2, 40},
                                                                 {14, 2, 10},
                                                                 {4, 2, 80},
                                                                 {10, 2, 96},
                                                                 {8, 8, 128}}) {
    SCOPED_TRACE(std::to_string(heads.heads) + " heads over " + std::to_string(heads.kv_heads) +
                 " of " + std::to_string(heads.head_dim));
    const double worst = expect_near_reference({heads, 16, batch, 2});
    EXPECT_GT(worst, 1e-3) << "a bound that says nothing";
    expect_near_reference({heads, 16, batch}, {.scale = 0.3F, .tile_m = 1});
  }
}

TEST(PagedAttentionSerial, LengthsAtEdgesOfPagesAndChunksAgreeWithTheReference) {
  for (const std::int64_t page : {1, 5, 16, 64}) {
    for (const std::int64_t past : {0, 1, 15, 16, 17, 63, 64, 65, 127, 128, 300}) {
      for (const std::int64_t rows : {1, 2, 63, 65}) {
        SCOPED_TRACE("page " + std::to_string(page) + ", past " + std::to_string(past) + ", rows " +
                     std::to_string(rows));
        expect_near_reference({{3, 1, 8}, page, {{7, past, rows}}});
      }
    }
  }
}

/// Every sequence's rows of `out` are those of a step that ran it alone, token by token.
void expect_rows_of_decode(const AttentionStep& step, const std::vector<float>& out) {
  for (std::size_t s = 0; s < step.sequences.size(); ++s) {
    const StepSequence& sequence = step.sequences[s];
    for (std::int64_t j = sequence.past; j < sequence.past + sequence.rows; ++j) {
      const std::vector<float> alone =
          attend({step.heads, 4, {{sequence.name, j, 1}}}, {.tile_m = 1});
      const auto begin =
          out.begin() + step.row_of(static_cast<std::int64_t>(s), j) * step.q_width();
      ASSERT_TRUE(std::equal(alone.begin(), alone.end(), begin))
          << "sequence " << sequence.name << " at " << j;
    }
  }
}

TEST(PagedAttentionSerial, BitsOfARowDependOnItsOwnKeysAlone) {
  for (const AttentionHeads& heads :
       std::vector<AttentionHeads>{{6, 2, 16}, {4, 4, 10}, {5, 1, 64}, {9, 3, 40}}) {
    const AttentionStep step(heads, 16,
                             {{1, 0, 70}, {2, 61, 9}, {3, 130, 1}, {4, 0, 1}, {5, 64, 2}}, 1);
    for (const std::int64_t tile_m : {1, 3, 8, 200}) {
      for (const std::int64_t per_work : {std::int64_t{1}, heads.kv_heads}) {
        SCOPED_TRACE(std::to_string(heads.head_dim) + " dimensions, tile_m " +
                     std::to_string(tile_m) + ", kv heads " + std::to_string(per_work));
        expect_rows_of_decode(step, attend(step, {.tile_m = tile_m,
                                                  .kv_heads_per_work = per_work,
                                                  .num_blocks = tile_m == 3 ? 4 : 0,
                                                  .order = TileOrder::rotation(1)}));
      }
    }
  }
}

TEST(PagedAttentionSerial, PrefillInAnyChunksGivesTheSameBits) {
  const AttentionHeads heads{4, 2, 16};
  const std::vector<float> whole = attend({heads, 8, {{1, 0, 150}}});
  for (const std::int64_t chunk : {1, 7, 64, 100}) {
    for (std::int64_t past = 0; past < 150; past += chunk) {
      const AttentionStep step(heads, 16, {{1, past, std::min(chunk, 150 - past)}}, 0,
                               static_cast<std::uint64_t>(past));
      const std::vector<float> part = attend(step, {.tile_m = 16});
      ASSERT_TRUE(std::equal(part.begin(), part.end(), whole.begin() + past * step.q_width()))
          << "chunks of " << chunk << " at " << past;
    }
  }
}

TEST(PagedAttentionSerial, PaddingRowsAreZeroAndNaNsOfOthersDoNotShow) {
  const AttentionStep step({4, 2, 8}, 4, {{1, 3, 2}, {2, 0, 1}}, 3);
  const std::vector<float> out = attend(step);
  for (std::int64_t t = 0; t < step.rows; ++t) {
    for (std::int64_t j = 0; j < step.q_width(); ++j) {
      const float value = out[static_cast<std::size_t>(t * step.q_width() + j)];
      ASSERT_TRUE(std::isfinite(value)) << "row " << t;
      const bool padding = step.sequence_of_row[static_cast<std::size_t>(t)] < 0;
      ASSERT_EQ(value == 0, padding) << "row " << t;
    }
  }
}

TEST(PagedAttentionSerial, ANaNInAVisibleKeyShows) {
  AttentionStep step({1, 1, 8}, 4, {{1, 5, 2}});
  step.k_pool[static_cast<std::size_t>(step.slots[0] * 8)] = std::nanf("");
  for (const float value : attend(step)) EXPECT_TRUE(std::isnan(value));
}

TEST(PagedAttentionSerial, ScoresFarApartStayFinite) {
  AttentionStep step({2, 1, 8}, 4, {{1, 100, 3}});
  for (float& value : step.q) value *= 400;
  expect_near_reference(step);
}

}  // namespace
}  // namespace tileweave
