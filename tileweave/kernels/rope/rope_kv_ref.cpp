#include "tileweave/kernels/rope/rope_kv_ref.h"

#include <cmath>
#include <string>

#include "tileweave/core/error.h"

namespace tileweave {
namespace {

void check(const RopeKvProblem& p) {
  const auto need = [](bool holds, const char* expected) {
    require(holds, "rope_kv reference", expected);
  };
  need(p.heads > 0 && p.kv_heads > 0 && p.head_dim > 0 && p.head_dim % 2 == 0,
       "heads, and an even head_dim");
  const std::size_t rows = p.positions.size();
  need(p.slots.size() == rows, "a slot for every position");
  need(p.qkv.size() == rows * static_cast<std::size_t>((p.heads + 2 * p.kv_heads) * p.head_dim),
       "a row of qkv for every position");
  need(p.inv_freq.size() == static_cast<std::size_t>(p.head_dim / 2), "head_dim / 2 frequencies");
  for (const auto& weight : {p.q_norm, p.k_norm}) {
    need(weight.empty() || weight.size() == static_cast<std::size_t>(p.head_dim),
         "norm weights of head_dim elements");
  }
}

std::vector<double> normalised(std::span<const float> head, std::span<const float> weight,
                               float eps) {
  std::vector<double> result(head.begin(), head.end());
  if (weight.empty()) return result;
  double squares = 0;
  for (const double value : result) squares += value * value;
  const double scale = 1 / std::sqrt(squares / static_cast<double>(result.size()) + eps);
  for (std::size_t j = 0; j < result.size(); ++j) {
    result[j] *= scale * static_cast<double>(weight[j]);
  }
  return result;
}

/// Appends one turned head and its magnitudes.
void turn(const RopeKvProblem& p, std::size_t row, const std::vector<double>& head,
          std::vector<double>& result, std::vector<double>& magnitudes) {
  const std::size_t half = head.size() / 2;
  const std::size_t at = result.size();
  result.resize(at + head.size());
  magnitudes.resize(at + head.size());
  for (std::size_t j = 0; j < half; ++j) {
    const float angle = static_cast<float>(p.positions[row]) * p.inv_freq[j];
    const double cosine = std::cos(static_cast<double>(angle)) * p.attention_factor;
    const double sine = std::sin(static_cast<double>(angle)) * p.attention_factor;
    const double a = head[j];
    const double b = head[half + j];
    result[at + j] = a * cosine - b * sine;
    result[at + half + j] = b * cosine + a * sine;
    magnitudes[at + j] = magnitudes[at + half + j] =
        (std::fabs(a) + std::fabs(b)) * p.attention_factor;
  }
}

}  // namespace

RopeKvReference rope_kv_reference(const RopeKvProblem& p) {
  check(p);
  const auto heads = static_cast<std::size_t>(p.heads);
  const auto kv_heads = static_cast<std::size_t>(p.kv_heads);
  const auto dim = static_cast<std::size_t>(p.head_dim);
  RopeKvReference result;
  for (std::size_t row = 0; row < p.positions.size(); ++row) {
    if (p.slots[row] < 0) {
      result.q.resize(result.q.size() + heads * dim);
      result.q_magnitudes.resize(result.q.size());
      for (auto* list : {&result.k, &result.k_magnitudes, &result.v}) {
        list->resize(list->size() + kv_heads * dim);
      }
      continue;
    }
    for (std::size_t h = 0; h < heads + 2 * kv_heads; ++h) {
      const std::span<const float> head =
          p.qkv.subspan((row * (heads + 2 * kv_heads) + h) * dim, dim);
      if (h < heads) {
        turn(p, row, normalised(head, p.q_norm, p.eps), result.q, result.q_magnitudes);
      } else if (h < heads + kv_heads) {
        turn(p, row, normalised(head, p.k_norm, p.eps), result.k, result.k_magnitudes);
      } else {
        result.v.insert(result.v.end(), head.begin(), head.end());
      }
    }
  }
  return result;
}

double rope_kv_error_bound(double magnitude, std::int64_t normalised_head_dim) {
  const double norm =
      normalised_head_dim == 0 ? 0 : static_cast<double>(normalised_head_dim + 1) / 2 + 8;
  return magnitude * (norm + 5) * std::ldexp(1.0, -24);
}

}  // namespace tileweave
