// The tensors of a step as an attention node takes them, without a plan.
#pragma once

#include <cstdint>

#include "tests/kernels/attention/attention_step.h"
#include "tileweave/kernels/attention/paged_attention.h"
#include "tileweave/plan/tensor.h"

namespace tileweave {

/// The tensors of a step; k_step and v_step lie in the pool.
struct StepTensors {
  TensorTable table;
  PagedAttentionTensors at;

  explicit StepTensors(const AttentionStep& s) {
    const auto matrix = [&](const char* name, std::int64_t rows, std::int64_t cols,
                            TensorKind kind = TensorKind::kValue) {
      return table.add({.name = name, .shape = {rows, cols}, .kind = kind});
    };
    const auto numbers = [&](const char* name, const Shape& shape) {
      return table.add(
          {.name = name, .shape = shape, .dtype = DType::kI32, .kind = TensorKind::kConstant});
    };
    const auto num_sequences = static_cast<std::int64_t>(s.past.size());
    at.q = matrix("q", s.rows, s.q_width());
    at.k_step = matrix("k_step", s.rows, s.kv_width());
    at.v_step = matrix("v_step", s.rows, s.kv_width());
    at.k_past = matrix("k_past", s.pool_rows, s.kv_width(), TensorKind::kState);
    at.v_past = matrix("v_past", s.pool_rows, s.kv_width(), TensorKind::kState);
    at.positions = numbers("positions", {s.rows});
    at.slots = numbers("slots", {s.rows});
    at.sequence_of_row = numbers("sequence_of_row", {s.rows});
    at.first_row = numbers("first_row", {num_sequences});
    at.past = numbers("past", {num_sequences});
    at.page_table = numbers("page_table", {num_sequences, s.max_pages});
    at.out = matrix("out", s.rows, s.q_width());
  }
};

}  // namespace tileweave
