// SamplingRow: filters and draws from one row of logits: what `sample` does to each row on the CPU.
//
//   SamplingRow row(V);
//   row.set(col, logits + col, n);  ...            // column range by column range
//   const std::int32_t id = row.sample(parameters);
//
// The result depends on the logits and the parameters alone. Every sum runs in one order. Reused
// from row to row; not thread safe.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "tileweave/kernels/sampling/argmax_args.h"

namespace tileweave {

/// One row's parameters, as SampleTensors names them.
struct SamplingRowParams {
  float temperature = 1;
  std::int32_t top_k = 0;
  float top_p = 1;
  float min_p = 0;
  float repetition_penalty = 1;
  std::uint32_t seed_low = 0, seed_high = 0;
  std::int32_t position = 0;
  std::span<const std::int32_t> history = {};
};

class SamplingRow {
 public:
  explicit SamplingRow(std::int64_t cols);

  /// Elements col .. col + count of the row; NaN becomes -inf.
  void set(std::int64_t col, const float* logits, std::int64_t count);
  /// Uses up the row.
  std::int32_t sample(const SamplingRowParams& params);

 private:
  void penalise(float penalty, std::span<const std::int32_t> history);
  void keep_top_k(std::int64_t k);
  void keep_top_p(float p);
  std::int32_t draw(double uniform) const;

  /// Drops the candidates for which `stays(i)` is false; the others keep their order.
  template <class Stays>
  void filter(const Stays& stays);

  // Candidates, ascending ids; the first num_candidates_ elements of each.
  std::vector<std::int32_t> ids_;
  std::vector<float> scores_;   // logits after penalty and temperature
  std::vector<float> weights_;  // exp(score - highest score)
  std::size_t num_candidates_ = 0;
  std::vector<float> sorted_;           // scratch
  std::vector<std::int32_t> order_;     // scratch: indices of candidates
  std::vector<std::int32_t> distinct_;  // scratch: ids of the history
};

/// Largest of `count` elements; `first_id` is the id of the first.
ArgmaxPart argmax_of(const float* row, std::int64_t count, std::int32_t first_id);

}  // namespace tileweave
