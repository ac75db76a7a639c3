#include "tileweave/kernels/sampling/sampling_row.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "tileweave/kernels/sampling/sampling_row-inl.h"
#include "hwy/foreach_target.h"
#include "hwy/highway.h"
#include "tileweave/kernels/sampling/sampling_row-inl.h"

#include <algorithm>
#include <cstddef>
#include <functional>
#include <limits>
#include <numeric>

#include "tileweave/kernels/sampling/philox.h"

namespace tileweave {
namespace {

HWY_EXPORT(largest);
HWY_EXPORT(copy_numbers);
HWY_EXPORT(divide);
HWY_EXPORT(weigh);

constexpr float kLowest = -std::numeric_limits<float>::infinity();
constexpr std::ptrdiff_t kFewCandidates = 64;  // sorted outright

std::int64_t length_of(std::size_t count) {
  return static_cast<std::int64_t>(count);
}

std::size_t index_of(std::int32_t i) {
  return static_cast<std::size_t>(i);
}

}  // namespace

ArgmaxPart argmax_of(const float* row, std::int64_t count, std::int32_t first_id) {
  const float value = HWY_DYNAMIC_DISPATCH(largest)(row, count);
  const float* const found = std::find(row, row + count, value);
  if (found == row + count) return {kLowest, -1};
  return {value, first_id + static_cast<std::int32_t>(found - row)};
}

SamplingRow::SamplingRow(std::int64_t cols)
    : ids_(static_cast<std::size_t>(cols)), scores_(ids_.size()), weights_(ids_.size()) {}

void SamplingRow::set(std::int64_t col, const float* logits, std::int64_t count) {
  HWY_DYNAMIC_DISPATCH(copy_numbers)(logits, count, scores_.data() + col);
}

template <class Stays>
void SamplingRow::filter(const Stays& stays) {
  std::size_t kept = 0;
  for (std::size_t i = 0; i < num_candidates_; ++i) {
    if (!stays(i)) continue;
    ids_[kept] = ids_[i];
    scores_[kept] = scores_[i];
    weights_[kept] = weights_[i];
    ++kept;
  }
  num_candidates_ = kept;
}

void SamplingRow::penalise(float penalty, std::span<const std::int32_t> history) {
  distinct_.assign(history.begin(), history.end());
  std::sort(distinct_.begin(), distinct_.end());
  distinct_.erase(std::unique(distinct_.begin(), distinct_.end()), distinct_.end());
  for (const std::int32_t id : distinct_) {
    if (id < 0 || id >= length_of(scores_.size())) continue;
    float& score = scores_[index_of(id)];
    score = score < 0 ? score * penalty : score / penalty;
  }
}

void SamplingRow::keep_top_k(std::int64_t k) {
  if (k >= length_of(num_candidates_)) return;
  const auto end = scores_.begin() + length_of(num_candidates_);
  sorted_.assign(scores_.begin(), end);
  std::nth_element(sorted_.begin(), sorted_.begin() + k - 1, sorted_.end(), std::greater<>());
  const float least = sorted_[static_cast<std::size_t>(k - 1)];
  filter([&](std::size_t i) { return scores_[i] >= least; });
}

/// Candidates leave from the lowest score on, of equal ones the lowest id first, as long as the
/// probability of those that left, the next one included, is at most 1 - p. The highest stays.
void SamplingRow::keep_top_p(float p) {
  HWY_DYNAMIC_DISPATCH(weigh)
  (scores_.data(), length_of(num_candidates_),
   HWY_DYNAMIC_DISPATCH(largest)(scores_.data(), length_of(num_candidates_)), weights_.data());
  double total = 0;
  for (std::size_t i = 0; i < num_candidates_; ++i) total += double{weights_[i]};
  const auto limit = static_cast<float>(1.0 - double{p});
  const auto probability = [&](std::int32_t i) {
    return double{static_cast<float>(double{weights_[index_of(i)]} / total)};
  };

  // What is less likely than an equal share of 1 - p leaves in any case: n of them are not enough.
  order_.clear();
  const double share = double{limit} / static_cast<double>(num_candidates_);
  double left = 0;  // probability of those that left
  for (std::size_t i = 0; i < num_candidates_; ++i) {
    const auto index = static_cast<std::int32_t>(i);
    if (weights_[i] < 1 && probability(index) < share) {
      left += probability(index);
      weights_[i] = -1;
    } else {
      order_.push_back(index);
    }
  }

  // The boundary among the others lies in [first, last): halved until few are left to sort.
  const auto before = [&](std::int32_t a, std::int32_t b) {
    const float of_a = scores_[index_of(a)], of_b = scores_[index_of(b)];
    return of_a != of_b ? of_a < of_b : a < b;
  };
  const auto leaves = [&](double mass) { return static_cast<float>(left + mass) <= limit; };
  auto first = order_.begin();
  auto last = order_.end();
  while (last - first > kFewCandidates) {
    const auto middle = first + (last - first) / 2;
    std::nth_element(first, middle, last, before);
    double mass = 0;
    for (auto i = first; i != middle; ++i) mass += probability(*i);
    if (!leaves(mass)) {
      last = middle;
      continue;
    }
    left += mass;
    for (; first != middle; ++first) weights_[index_of(*first)] = -1;
  }
  std::sort(first, last, before);
  for (; first != last && first + 1 != order_.end() && leaves(probability(*first)); ++first) {
    left += probability(*first);
    weights_[index_of(*first)] = -1;
  }
  filter([&](std::size_t i) { return weights_[i] >= 0; });
}

std::int32_t SamplingRow::draw(double uniform) const {
  double total = 0;
  for (std::size_t i = 0; i < num_candidates_; ++i) total += double{weights_[i]};
  const double target = uniform * total;
  double sum = 0;
  for (std::size_t i = 0; i < num_candidates_; ++i) {
    sum += double{weights_[i]};
    if (sum > target) return ids_[i];
  }
  return 0;  // no candidate has a weight
}

std::int32_t SamplingRow::sample(const SamplingRowParams& params) {
  num_candidates_ = scores_.size();
  const std::int64_t cols = length_of(num_candidates_);
  if (params.repetition_penalty != 1) penalise(params.repetition_penalty, params.history);
  if (params.temperature == 0) return argmax_of(scores_.data(), cols, 0).id;
  if (params.temperature != 1) {
    HWY_DYNAMIC_DISPATCH(divide)(scores_.data(), cols, params.temperature);
  }
  const float highest = HWY_DYNAMIC_DISPATCH(largest)(scores_.data(), cols);
  if (highest == kLowest) return 0;
  std::iota(ids_.begin(), ids_.end(), 0);
  if (params.top_k > 0) keep_top_k(params.top_k);
  if (params.top_p < 1) keep_top_p(params.top_p);
  HWY_DYNAMIC_DISPATCH(weigh)
  (scores_.data(), length_of(num_candidates_), highest, weights_.data());
  if (params.min_p > 0) filter([&](std::size_t i) { return weights_[i] >= params.min_p; });
  return draw(sampling_uniform(params.seed_low, params.seed_high,
                               static_cast<std::uint32_t>(params.position)));
}

}  // namespace tileweave
