#include "tileweave/kernels/attention/paged_attention_ref.h"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <string>

#include "tileweave/core/error.h"

namespace tileweave {
namespace {

constexpr std::int64_t kKeysPerRescale = 64;  // forms rescale their sums at most this often

/// One row of keys or values of one kv head.
std::span<const float> row_of(std::span<const float> matrix, std::int64_t row,
                              const PagedAttentionProblem& p, std::int64_t kv_head) {
  return matrix.subspan(static_cast<std::size_t>((row * p.kv_heads + kv_head) * p.head_dim),
                        static_cast<std::size_t>(p.head_dim));
}

/// Keys or values 0 .. position of a sequence, in order.
std::vector<std::span<const float>> gather(const PagedAttentionProblem& p,
                                           std::span<const float> pool, std::span<const float> step,
                                           std::int64_t sequence, std::int64_t position,
                                           std::int64_t kv_head) {
  const auto s = static_cast<std::size_t>(sequence);
  std::vector<std::span<const float>> rows;
  for (std::int64_t j = 0; j <= position; ++j) {
    if (j < p.past[s]) {
      const std::int64_t page =
          p.page_table[static_cast<std::size_t>(sequence * p.max_pages + j / p.page_size)];
      rows.push_back(row_of(pool, page * p.page_size + j % p.page_size, p, kv_head));
    } else {
      rows.push_back(row_of(step, p.first_row[s] + j - p.past[s], p, kv_head));
    }
  }
  return rows;
}

double error_of_weights(const PagedAttentionProblem& p, const std::vector<double>& scores,
                        double largest_magnitude) {
  const double u = std::ldexp(1.0, -24);
  const auto [low, high] = std::minmax_element(scores.begin(), scores.end());
  const double chunks =
      std::ceil(static_cast<double>(scores.size()) / static_cast<double>(kKeysPerRescale));
  return std::expm1(u * (static_cast<double>(p.head_dim + 2) * largest_magnitude +
                         2 * (*high - *low) + 6 * chunks + 4));
}

}  // namespace

double paged_attention_bf16_error_bound(double exact, double fp32_bound, double magnitude) {
  const double r = std::ldexp(1.0, -8);
  const double error = 4 * fp32_bound + 2 * r / (1 - r) * magnitude;
  return error + r * (std::fabs(exact) + error);
}

PagedAttentionReference paged_attention_reference(const PagedAttentionProblem& p) {
  const auto width = static_cast<std::size_t>(p.heads * p.head_dim);
  const double u = std::ldexp(1.0, -24);
  PagedAttentionReference result{std::vector<double>(p.q.size()), std::vector<double>(p.q.size()),
                                 std::vector<double>(p.q.size())};
  for (std::size_t t = 0; t < p.positions.size(); ++t) {
    const std::int32_t sequence = p.sequence_of_row[t];
    if (sequence < 0) continue;
    const auto s = static_cast<std::size_t>(sequence);
    const std::int64_t position = p.positions[t];
    require(position - p.past[s] == static_cast<std::int64_t>(t) - p.first_row[s],
            "paged attention reference", "rows of a sequence in position order",
            "position " + std::to_string(position) + " at row " + std::to_string(t));
    for (std::int64_t h = 0; h < p.heads; ++h) {
      const std::int64_t kv_head = h / (p.heads / p.kv_heads);
      const auto keys = gather(p, p.k_past, p.k_step, sequence, position, kv_head);
      const auto values = gather(p, p.v_past, p.v_step, sequence, position, kv_head);
      const std::size_t at = t * width + static_cast<std::size_t>(h * p.head_dim);
      const auto dims = static_cast<std::size_t>(p.head_dim);

      std::vector<double> scores;
      double largest_magnitude = 0;
      for (const std::span<const float> key : keys) {
        double score = 0, magnitude = 0;
        for (std::size_t d = 0; d < dims; ++d) {
          const double product = double{p.q[at + d]} * double{key[d]} * double{p.scale};
          score += product;
          magnitude += std::fabs(product);
        }
        scores.push_back(score);
        largest_magnitude = std::max(largest_magnitude, magnitude);
      }
      const double highest = *std::max_element(scores.begin(), scores.end());
      const double e = error_of_weights(p, scores, largest_magnitude);
      double total = 0;
      for (const double score : scores) total += std::exp(score - highest);
      const auto n = static_cast<double>(keys.size());
      for (std::size_t d = 0; d < dims; ++d) {
        double out = 0, magnitude = 0, largest_value = 0;
        for (std::size_t j = 0; j < keys.size(); ++j) {
          const double weighted = std::exp(scores[j] - highest) / total * double{values[j][d]};
          out += weighted;
          magnitude += std::fabs(weighted);
          largest_value = std::max(largest_value, std::fabs(double{values[j][d]}));
        }
        result.out[at + d] = out;
        result.magnitudes[at + d] = magnitude;
        result.bounds[at + d] =
            (2 * e + (2 * n + 4) * u) * (1 + e) * magnitude + n * std::ldexp(largest_value, -125);
      }
    }
  }
  return result;
}

}  // namespace tileweave
