// RoutingRule: how scores become the top k experts of a token and their weights.
//
//   score   softmax over the experts, sigmoid, or sqrt(softplus), of the router's logits
//   choice  score + bias of the expert; the bias never enters a weight
//   groups  where there are several, only the top_groups with the largest sums of their two best
//           choices stay
//   top k   by falling choice, ties to the lowest id
//   weight  score, over (sum of the chosen + epsilon) if renormalised, times scale
//
// A logit of -inf masks an expert; where fewer than top_k are left, the id is -1 and the weight 0.
// NaN and +inf are refused: nothing right can come of them.
#pragma once

#include <cstdint>

namespace tileweave {

enum class RoutingScore : std::uint8_t { kSoftmax, kSigmoid, kSqrtSoftplus };
enum class Renormalise : std::uint8_t { kNo, kYes };

struct RoutingRule {
  RoutingScore score = RoutingScore::kSoftmax;
  Renormalise renormalise = Renormalise::kYes;
  std::int32_t top_k = 8;
  std::int32_t num_groups = 1;
  std::int32_t top_groups = 1;
  float scale = 1;
  float epsilon = 0;
  bool operator==(const RoutingRule&) const = default;
};

/// As published: OLMoE does not renormalise, Qwen3-MoE (norm_topk_prob) and Mixtral do.
constexpr RoutingRule olmoe_routing(std::int32_t top_k = 8) {
  return {.renormalise = Renormalise::kNo, .top_k = top_k};
}
constexpr RoutingRule qwen3_moe_routing(std::int32_t top_k = 8) {
  return {.top_k = top_k};
}
constexpr RoutingRule mixtral_routing(std::int32_t top_k = 2) {
  return {.top_k = top_k};
}
constexpr RoutingRule deepseek_v3_routing(std::int32_t top_k = 8) {
  return {.score = RoutingScore::kSigmoid,
          .top_k = top_k,
          .num_groups = 8,
          .top_groups = 4,
          .scale = 2.5F,
          .epsilon = 1e-20F};
}
constexpr RoutingRule deepseek_v4_routing(std::int32_t top_k = 6) {
  return {.score = RoutingScore::kSqrtSoftplus, .top_k = top_k, .scale = 1.5F, .epsilon = 1e-20F};
}

}  // namespace tileweave
