#include "tileweave/kernels/routing/routing_row.h"

#include <algorithm>
#include <cmath>
#include <limits>

namespace tileweave {
namespace {

constexpr float kMasked = -std::numeric_limits<float>::infinity();

float sigmoid(float x) {
  return 1 / (1 + std::exp(-x));
}

/// Without overflow: max(x, 0) + log(1 + exp(-|x|)).
float sqrt_softplus(float x) {
  return std::sqrt(std::max(x, 0.0F) + std::log1p(std::exp(-std::fabs(x))));
}

}  // namespace

RoutingRow::RoutingRow(const RoutingRule& rule, std::int64_t num_experts)
    : rule_(rule),
      experts_(num_experts),
      scores_(static_cast<std::size_t>(num_experts)),
      choice_(static_cast<std::size_t>(num_experts)),
      best_(static_cast<std::size_t>(rule.top_k)),
      groups_(static_cast<std::size_t>(rule.num_groups)) {}

std::int64_t RoutingRow::route(const float* logits, const float* bias, std::int32_t* ids,
                               float* weights) {
  for (std::int64_t e = 0; e < experts_; ++e) {
    if (!(logits[e] < std::numeric_limits<float>::infinity())) return e;
  }
  score(logits, bias);
  if (rule_.num_groups > 1) keep_top_groups();
  choose(ids);
  weigh(logits, ids, weights);
  return -1;
}

void RoutingRow::score(const float* logits, const float* bias) {
  largest_ = *std::max_element(logits, logits + experts_);
  const bool softmax = rule_.score == RoutingScore::kSoftmax;
  // Softmax rises with the logits, so these choose as well, and finer than rounded shares would.
  const bool by_logit = softmax && bias == nullptr && rule_.num_groups == 1;
  const bool needs_sum = softmax && (!by_logit || rule_.renormalise == Renormalise::kNo);
  sum_ = 0;
  for (std::int64_t e = 0; e < experts_; ++e) {
    const auto i = static_cast<std::size_t>(e);
    const float logit = logits[e];
    if (softmax && needs_sum) {
      scores_[i] = logit == kMasked ? 0 : std::exp(logit - largest_);
      sum_ += scores_[i];
    }
    if (rule_.score == RoutingScore::kSigmoid) scores_[i] = sigmoid(logit);
    if (rule_.score == RoutingScore::kSqrtSoftplus) scores_[i] = sqrt_softplus(logit);
  }
  const float scale = softmax && sum_ > 0 ? static_cast<float>(1 / sum_) : 1;
  for (std::int64_t e = 0; e < experts_; ++e) {
    const auto i = static_cast<std::size_t>(e);
    choice_[i] = by_logit ? logits[e] : scores_[i] * scale + (bias == nullptr ? 0 : bias[e]);
    if (logits[e] == kMasked) choice_[i] = kMasked;
  }
}

void RoutingRow::keep_top_groups() {
  const std::size_t size = choice_.size() / groups_.size();
  for (std::size_t g = 0; g < groups_.size(); ++g) {
    float first = kMasked, second = kMasked;
    for (std::size_t e = g * size; e < (g + 1) * size; ++e) {
      second = std::max(second, std::min(first, choice_[e]));
      first = std::max(first, choice_[e]);
    }
    groups_[g] = first + second;
  }
  const auto stay = static_cast<std::size_t>(rule_.top_groups);
  for (std::size_t g = 0; g < groups_.size(); ++g) {
    std::size_t better = 0;
    for (std::size_t other = 0; other < groups_.size(); ++other) {
      better += groups_[other] > groups_[g] || (groups_[other] == groups_[g] && other < g) ? 1 : 0;
    }
    if (better < stay) continue;
    std::fill_n(choice_.begin() + static_cast<std::ptrdiff_t>(g * size), size, kMasked);
  }
}

void RoutingRow::choose(std::int32_t* ids) {
  const std::size_t k = best_.size();
  std::fill(best_.begin(), best_.end(), kMasked);
  std::fill_n(ids, k, -1);
  for (std::size_t e = 0; e < choice_.size(); ++e) {
    // Only a larger one takes the place of an earlier one: ties stay with the lowest id.
    if (!(choice_[e] > best_[k - 1])) continue;
    std::size_t place = k - 1;
    for (; place > 0 && choice_[e] > best_[place - 1]; --place) {
      best_[place] = best_[place - 1];
      ids[place] = ids[place - 1];
    }
    best_[place] = choice_[e];
    ids[place] = static_cast<std::int32_t>(e);
  }
}

void RoutingRow::weigh(const float* logits, const std::int32_t* ids, float* weights) const {
  double sum = rule_.renormalise == Renormalise::kYes ? rule_.epsilon : 0;
  const std::size_t k = best_.size();
  for (std::size_t i = 0; i < k; ++i) {
    weights[i] = 0;
    if (ids[i] < 0) continue;
    const bool softmax = rule_.score == RoutingScore::kSoftmax;
    weights[i] =
        softmax ? std::exp(logits[ids[i]] - largest_) : scores_[static_cast<std::size_t>(ids[i])];
    sum += weights[i];
  }
  double factor = rule_.scale;
  if (rule_.renormalise == Renormalise::kYes) {
    factor = sum > 0 ? rule_.scale / sum : 0;
  } else if (rule_.score == RoutingScore::kSoftmax) {
    factor = sum_ > 0 ? rule_.scale / sum_ : 0;
  }
  for (std::size_t i = 0; i < k; ++i) {
    weights[i] = static_cast<float>(static_cast<double>(weights[i]) * factor);
  }
}

}  // namespace tileweave
