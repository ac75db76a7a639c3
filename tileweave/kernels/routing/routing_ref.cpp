#include "tileweave/kernels/routing/routing_ref.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>
#include <string>

#include "tileweave/core/error.h"
#include "tileweave/kernels/routing/routing.h"

namespace tileweave {
namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity();

std::vector<double> scores_of(std::span<const float> logits, RoutingScore score) {
  std::vector<double> scores;
  double sum = 0;
  const double largest = *std::max_element(logits.begin(), logits.end());
  for (const double logit : logits) {
    double s = 0;
    if (score == RoutingScore::kSoftmax && logit > -kInfinity) s = std::exp(logit - largest);
    if (score == RoutingScore::kSigmoid) s = 1 / (1 + std::exp(-logit));
    if (score == RoutingScore::kSqrtSoftplus) {
      s = std::sqrt(std::max(logit, 0.0) + std::log1p(std::exp(-std::fabs(logit))));
    }
    scores.push_back(s);
    sum += s;
  }
  if (score == RoutingScore::kSoftmax && sum > 0) {
    for (double& s : scores) s /= sum;
  }
  return scores;
}

/// Indices by falling value, ties to the lowest index.
std::vector<std::size_t> ranked(const std::vector<double>& values) {
  std::vector<std::size_t> order(values.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::stable_sort(order.begin(), order.end(),
                   [&](std::size_t a, std::size_t b) { return values[a] > values[b]; });
  return order;
}

/// Masks the groups that do not stay; returns their distance to those that do.
double keep_top_groups(std::vector<double>& choice, const RoutingRule& rule) {
  const std::size_t size = choice.size() / static_cast<std::size_t>(rule.num_groups);
  const auto stay = static_cast<std::size_t>(rule.top_groups);
  std::vector<double> sums;
  for (std::size_t first = 0; first < choice.size(); first += size) {
    std::vector<double> group(choice.begin() + static_cast<std::ptrdiff_t>(first),
                              choice.begin() + static_cast<std::ptrdiff_t>(first + size));
    std::sort(group.rbegin(), group.rend());
    sums.push_back(group[0] + group[1]);
  }
  const std::vector<std::size_t> order = ranked(sums);
  for (std::size_t i = stay; i < order.size(); ++i) {
    for (std::size_t e = order[i] * size; e < (order[i] + 1) * size; ++e) choice[e] = -kInfinity;
  }
  if (stay == order.size() || sums[order[stay]] == -kInfinity) return kInfinity;
  return sums[order[stay - 1]] - sums[order[stay]];
}

}  // namespace

RoutedRow routing_reference(std::span<const float> logits, std::span<const float> bias,
                            const RoutingRule& rule) {
  constexpr const char* kRoute = "route a token";
  check(rule, static_cast<std::int64_t>(logits.size()), kRoute);
  require(bias.empty() || bias.size() == logits.size(), kRoute, "a bias for each expert",
          std::to_string(bias.size()));
  for (std::size_t e = 0; e < logits.size(); ++e) {
    if (!std::isnan(logits[e]) && !(logits[e] == kInfinity)) continue;
    throw Error(
        kRoute, "scores that are numbers",
        (std::isnan(logits[e]) ? "NaN" : "+inf") + std::string(" for expert ") + std::to_string(e));
  }
  const std::vector<double> scores = scores_of(logits, rule.score);
  std::vector<double> choice = scores;
  for (std::size_t e = 0; e < choice.size(); ++e) {
    if (!bias.empty()) choice[e] += bias[e];
    if (logits[e] == -kInfinity) choice[e] = -kInfinity;
  }
  RoutedRow row{.ids = {}, .weights = {}, .margin = kInfinity};
  if (rule.num_groups > 1) row.margin = keep_top_groups(choice, rule);

  const std::vector<std::size_t> order = ranked(choice);
  const auto k = static_cast<std::size_t>(rule.top_k);
  double sum = 0;
  for (std::size_t i = 0; i < k; ++i) {
    const bool masked = choice[order[i]] == -kInfinity;
    row.ids.push_back(masked ? -1 : static_cast<std::int32_t>(order[i]));
    row.weights.push_back(masked ? 0 : scores[order[i]]);
    sum += row.weights.back();
  }
  if (k < order.size() && choice[order[k]] > -kInfinity) {
    row.margin = std::min(row.margin, choice[order[k - 1]] - choice[order[k]]);
  }
  if (rule.renormalise == Renormalise::kYes) sum += rule.epsilon;
  for (double& weight : row.weights) {
    if (rule.renormalise == Renormalise::kYes && sum > 0) weight /= sum;
    weight *= rule.scale;
  }
  return row;
}

double routing_relative_error(std::int64_t num_experts, double spread) {
  constexpr double kU = 0x1p-24;
  return (static_cast<double>(num_experts) + 2 * spread + 16) * kU;
}

}  // namespace tileweave
