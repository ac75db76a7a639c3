// One step of a model over a paged cache, as attention sees it, on the host.
//
// Query, key and value of (sequence, position) are always the same numbers, however a step is cut
// and whoever shares it, so that results of different steps can be compared bit by bit. Pages are
// dealt in a shuffled order, and every row of the pool that no token owns holds NaN.
#pragma once

#include <algorithm>
#include <cstdint>
#include <limits>
#include <random>
#include <vector>

#include "tests/kernels/operand_values.h"
#include "tileweave/core/coord.h"
#include "tileweave/kernels/attention/paged_attention_ref.h"

namespace tileweave {

struct AttentionHeads {
  std::int64_t heads = 4, kv_heads = 2, head_dim = 8;
};

struct StepSequence {
  std::int64_t name = 0;  // which sequence, wherever it stands in the batch
  std::int64_t past = 0, rows = 1;
};

enum class StepRole : std::uint64_t { kQuery = 1, kKey = 2, kValue = 3 };

struct AttentionStep {
  AttentionHeads heads;
  std::int64_t page_size, max_pages = 1, pool_rows, rows;
  std::vector<StepSequence> sequences;
  std::vector<float> q, k_step, v_step;  // logical rows
  std::vector<float> k_pool, v_pool;     // older rows and this step's
  std::vector<std::int32_t> positions, slots, sequence_of_row, first_row, past, page_table;

  std::int64_t q_width() const { return heads.heads * heads.head_dim; }
  std::int64_t kv_width() const { return heads.kv_heads * heads.head_dim; }

  static std::vector<float> token(StepRole role, std::int64_t name, std::int64_t position,
                                  std::int64_t width) {
    const auto seed = (static_cast<std::uint64_t>(role) << 48) +
                      (static_cast<std::uint64_t>(name) << 24) +
                      static_cast<std::uint64_t>(position);
    std::vector<float> values = random_values<float>(width, seed);
    for (float& value : values) value *= 3;  // weights that differ
    return values;
  }

  /// `padding` rows without a sequence are put after the rows of each sequence.
  AttentionStep(const AttentionHeads& of, std::int64_t page, std::vector<StepSequence> batch,
                std::int64_t padding = 0, std::uint64_t seed = 1)
      : heads(of), page_size(page), sequences(std::move(batch)) {
    std::int64_t pages = 1;  // one that nobody owns
    for (const StepSequence& s : sequences) {
      max_pages = max64(max_pages, ceil_div(s.past + s.rows, page_size));
      pages += ceil_div(s.past + s.rows, page_size);
    }
    pool_rows = pages * page_size;
    std::vector<std::int32_t> free(static_cast<std::size_t>(pages));
    for (std::size_t i = 0; i < free.size(); ++i) free[i] = static_cast<std::int32_t>(i);
    std::shuffle(free.begin(), free.end(), std::mt19937_64(seed));
    const float nan = std::numeric_limits<float>::quiet_NaN();
    k_pool.assign(static_cast<std::size_t>(pool_rows * kv_width()), nan);
    v_pool = k_pool;
    for (const StepSequence& s : sequences) {
      first_row.push_back(static_cast<std::int32_t>(positions.size()));
      past.push_back(static_cast<std::int32_t>(s.past));
      std::vector<std::int32_t> table(static_cast<std::size_t>(max_pages), -1);
      for (std::int64_t i = 0; i < ceil_div(s.past + s.rows, page_size); ++i) {
        table[static_cast<std::size_t>(i)] = free.back();
        free.pop_back();
      }
      page_table.insert(page_table.end(), table.begin(), table.end());
      for (std::int64_t j = 0; j < s.past + s.rows; ++j) add_token(s, j, table);
      for (std::int64_t i = 0; i < padding; ++i) add_padding();
    }
    rows = static_cast<std::int64_t>(positions.size());
  }

  /// Row of the step of a sequence's token.
  std::int64_t row_of(std::int64_t sequence, std::int64_t position) const {
    const auto s = static_cast<std::size_t>(sequence);
    return first_row[s] + position - past[s];
  }

  PagedAttentionProblem problem(float scale) const {
    return {.heads = heads.heads,
            .kv_heads = heads.kv_heads,
            .head_dim = heads.head_dim,
            .page_size = page_size,
            .max_pages = max_pages,
            .scale = scale,
            .q = q,
            .k_step = k_step,
            .v_step = v_step,
            .k_past = k_pool,
            .v_past = v_pool,
            .positions = positions,
            .sequence_of_row = sequence_of_row,
            .first_row = first_row,
            .past = past,
            .page_table = page_table};
  }

  /// Operands of the node in its order, with this step's keys and values in the pool.
  std::vector<void*> addresses(std::vector<float>& out) {
    return {q.data(),         k_pool.data(),    v_pool.data(),     k_pool.data(),
            v_pool.data(),    positions.data(), slots.data(),      sequence_of_row.data(),
            first_row.data(), past.data(),      page_table.data(), out.data()};
  }

 private:
  static void append(std::vector<float>& to, const std::vector<float>& row) {
    to.insert(to.end(), row.begin(), row.end());
  }

  void add_token(const StepSequence& s, std::int64_t j, const std::vector<std::int32_t>& table) {
    const auto k = token(StepRole::kKey, s.name, j, kv_width());
    const auto v = token(StepRole::kValue, s.name, j, kv_width());
    const std::int64_t slot =
        table[static_cast<std::size_t>(j / page_size)] * page_size + j % page_size;
    std::copy(k.begin(), k.end(), k_pool.begin() + slot * kv_width());
    std::copy(v.begin(), v.end(), v_pool.begin() + slot * kv_width());
    if (j < s.past) return;
    append(q, token(StepRole::kQuery, s.name, j, q_width()));
    append(k_step, k);
    append(v_step, v);
    positions.push_back(static_cast<std::int32_t>(j));
    slots.push_back(static_cast<std::int32_t>(slot));
    sequence_of_row.push_back(static_cast<std::int32_t>(first_row.size()) - 1);
  }

  void add_padding() {
    const float nan = std::numeric_limits<float>::quiet_NaN();
    q.insert(q.end(), static_cast<std::size_t>(q_width()), nan);
    k_step.insert(k_step.end(), static_cast<std::size_t>(kv_width()), nan);
    v_step.insert(v_step.end(), static_cast<std::size_t>(kv_width()), nan);
    positions.push_back(0);
    slots.push_back(-1);
    sequence_of_row.push_back(-1);
  }
};

}  // namespace tileweave
