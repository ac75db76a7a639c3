// RoutingRow: routes one token in fp32; what the CPU form does to each row. Reused from row to row,
// not thread safe.
#pragma once

#include <cstdint>
#include <vector>

#include "tileweave/kernels/routing/routing_rule.h"

namespace tileweave {

class RoutingRow {
 public:
  RoutingRow(const RoutingRule& rule, std::int64_t num_experts);

  /// `bias`: null for none. Writes top_k ids and weights. Returns the expert whose logit is NaN or
  /// +inf, having written nothing, or -1.
  std::int64_t route(const float* logits, const float* bias, std::int32_t* ids, float* weights);

 private:
  /// Scores as far as they are needed to choose, and choices, of all experts.
  void score(const float* logits, const float* bias);
  void keep_top_groups();
  void choose(std::int32_t* ids);
  void weigh(const float* logits, const std::int32_t* ids, float* weights) const;

  const RoutingRule rule_;
  const std::int64_t experts_;
  std::vector<float> scores_;
  std::vector<float> choice_;
  std::vector<float> best_;    // (k) choices of the ids found so far
  std::vector<float> groups_;  // sums of the two best
  float largest_ = 0;          // logit
  double sum_ = 0;             // softmax: of exp(logit - largest)
};

}  // namespace tileweave
