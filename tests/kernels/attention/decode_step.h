// A step of one row per sequence as decode attention takes it, on the host.
#pragma once

#include <cstdint>
#include <limits>
#include <utility>
#include <vector>

#include "tests/kernels/attention/attention_step.h"
#include "tileweave/core/dtype.h"
#include "tileweave/kernels/attention/decode_attention_ref.h"

namespace tileweave {

/// What becomes of query and key before they meet.
enum class Turn { kNone, kRope, kNormAndRope };

/// `step`'s tokens as qkv, times `size`; its rows of the pool are still unwritten.
struct DecodeStep {
  AttentionStep step;
  std::vector<float> qkv, inv_freq, q_norm, k_norm;
  float attention_factor = 1;

  DecodeStep(AttentionStep of, Turn turn, float size = 1) : step(std::move(of)) {
    const auto dims = static_cast<std::size_t>(step.heads.head_dim);
    for (std::int64_t t = 0; t < step.rows; ++t) {
      for (const auto& [from, width] :
           {std::pair(&step.q, step.q_width()), std::pair(&step.k_step, step.kv_width()),
            std::pair(&step.v_step, step.kv_width())}) {
        for (std::int64_t i = 0; i < width; ++i) {
          qkv.push_back((*from)[static_cast<std::size_t>(t * width + i)] * size);
        }
      }
    }
    for (std::size_t i = 0; i < dims / 2; ++i) {
      inv_freq.push_back(turn == Turn::kNone ? 0.0F : 1.0F / static_cast<float>(1 + 3 * i));
    }
    if (turn != Turn::kNone) attention_factor = 1.25F;
    if (turn == Turn::kNormAndRope) {
      for (std::vector<float>* weight : {&q_norm, &k_norm}) {
        for (std::size_t i = 0; i < dims; ++i) {
          weight->push_back(0.5F + static_cast<float>((i * (weight == &q_norm ? 5 : 3)) % 8) / 8);
        }
      }
    }
    const float nan = std::numeric_limits<float>::quiet_NaN();
    for (const std::int32_t slot : step.slots) {
      if (slot < 0) continue;
      std::fill_n(step.k_pool.begin() + slot * step.kv_width(), step.kv_width(), nan);
      std::fill_n(step.v_pool.begin() + slot * step.kv_width(), step.kv_width(), nan);
    }
  }

  DecodeAttentionReference reference(float scale, DType type) const {
    return decode_attention_reference({.heads = step.heads.heads,
                                       .kv_heads = step.heads.kv_heads,
                                       .head_dim = step.heads.head_dim,
                                       .page_size = step.page_size,
                                       .max_pages = step.max_pages,
                                       .scale = scale,
                                       .attention_factor = attention_factor,
                                       .qkv = qkv,
                                       .inv_freq = inv_freq,
                                       .k_past = step.k_pool,
                                       .v_past = step.v_pool,
                                       .positions = step.positions,
                                       .slots = step.slots,
                                       .sequence_of_row = step.sequence_of_row,
                                       .page_table = step.page_table,
                                       .q_norm = q_norm,
                                       .k_norm = k_norm},
                                      type);
  }
};

}  // namespace tileweave
