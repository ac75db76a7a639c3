#include "tileweave/kernels/sampling/sample_ref.h"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <functional>
#include <limits>
#include <numeric>

namespace tileweave {
namespace {

constexpr float kRemoved = -std::numeric_limits<float>::infinity();

std::vector<double> softmax(const std::vector<float>& scores) {
  const double highest = *std::max_element(scores.begin(), scores.end());
  std::vector<double> probabilities;
  double total = 0;
  for (const float score : scores) {
    probabilities.push_back(std::exp(double{score} - highest));
    total += probabilities.back();
  }
  for (double& probability : probabilities) probability /= total;
  return probabilities;
}

void penalise(std::vector<float>& scores, float penalty, std::span<const std::int32_t> history) {
  for (std::size_t id = 0; id < scores.size(); ++id) {
    if (std::find(history.begin(), history.end(), static_cast<std::int32_t>(id)) == history.end()) {
      continue;
    }
    scores[id] = scores[id] < 0 ? scores[id] * penalty : scores[id] / penalty;
  }
}

void keep_top_k(std::vector<float>& scores, std::int32_t top_k) {
  std::vector<float> sorted = scores;
  std::sort(sorted.begin(), sorted.end(), std::greater<>());
  const auto k = std::min(static_cast<std::size_t>(top_k), sorted.size());
  for (float& score : scores) {
    if (score < sorted[k - 1]) score = kRemoved;
  }
}

void keep_top_p(std::vector<float>& scores, float top_p) {
  const std::vector<double> probabilities = softmax(scores);
  std::vector<std::size_t> ascending(scores.size());
  std::iota(ascending.begin(), ascending.end(), std::size_t{0});
  const std::vector<float> before = scores;
  std::stable_sort(ascending.begin(), ascending.end(),
                   [&](std::size_t a, std::size_t b) { return before[a] < before[b]; });
  double cumulative = 0;
  for (std::size_t i = 0; i + 1 < ascending.size(); ++i) {
    cumulative += probabilities[ascending[i]];
    if (static_cast<float>(cumulative) > static_cast<float>(1 - double{top_p})) break;
    scores[ascending[i]] = kRemoved;
  }
}

void keep_min_p(std::vector<float>& scores, float min_p) {
  const std::vector<double> probabilities = softmax(scores);
  const double highest = *std::max_element(probabilities.begin(), probabilities.end());
  for (std::size_t id = 0; id < scores.size(); ++id) {
    if (probabilities[id] < double{min_p} * highest) scores[id] = kRemoved;
  }
}

}  // namespace

std::int32_t argmax_reference(std::span<const float> row) {
  std::size_t best = row.size();
  for (std::size_t id = 0; id < row.size(); ++id) {
    if (std::isnan(row[id])) continue;
    if (best == row.size() || row[id] > row[best]) best = id;
  }
  return best == row.size() ? 0 : static_cast<std::int32_t>(best);
}

std::vector<double> sample_reference(std::span<const float> logits, const SamplingParams& params,
                                     std::span<const std::int32_t> history) {
  std::vector<float> scores(logits.begin(), logits.end());
  penalise(scores, params.repetition_penalty, history);
  for (float& score : scores) score /= params.temperature;
  if (params.top_k > 0) keep_top_k(scores, params.top_k);
  if (params.top_p < 1) keep_top_p(scores, params.top_p);
  if (params.min_p > 0) keep_min_p(scores, params.min_p);
  return softmax(scores);
}

std::int32_t draw_reference(std::span<const double> probabilities, double uniform) {
  double cumulative = 0;
  std::int32_t last = 0;
  for (std::size_t id = 0; id < probabilities.size(); ++id) {
    if (probabilities[id] == 0) continue;
    cumulative += probabilities[id];
    last = static_cast<std::int32_t>(id);
    if (cumulative > uniform) break;
  }
  return last;
}

double sample_error_bound(double spread) {
  return 2 * (spread + 4) * std::ldexp(1.0, -24);
}

}  // namespace tileweave
