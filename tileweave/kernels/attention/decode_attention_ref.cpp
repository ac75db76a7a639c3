#include "tileweave/kernels/attention/decode_attention_ref.h"

#include <algorithm>
#include <cmath>
#include <cstddef>

#include "tileweave/core/error.h"

namespace tileweave {
namespace {

struct Head {
  std::vector<double> values, bounds;
};

double rounding(DType type) {
  return type == DType::kBF16 ? std::ldexp(1.0, -8) : 0;
}

const double kUnit = std::ldexp(1.0, -24);

std::span<const float> part(std::span<const float> all, std::int64_t index, std::int64_t length) {
  return all.subspan(static_cast<std::size_t>(index * length), static_cast<std::size_t>(length));
}

/// One head after QK-norm and RoPE.
Head turned(const DecodeAttentionProblem& p, std::int32_t position, std::span<const float> head,
            std::span<const float> norm, DType type) {
  std::vector<double> x(head.begin(), head.end());
  if (!norm.empty()) {
    double squares = 0;
    for (const double value : x) squares += value * value;
    const double scale = 1 / std::sqrt(squares / static_cast<double>(x.size()) + p.eps);
    for (std::size_t d = 0; d < x.size(); ++d) x[d] *= scale * static_cast<double>(norm[d]);
  }
  const double n = norm.empty() ? 0 : static_cast<double>(p.head_dim + 1) / 2 + 8;
  const std::size_t half = x.size() / 2;
  Head result{x, x};
  for (std::size_t j = 0; j < half; ++j) {
    const float angle = static_cast<float>(position) * p.inv_freq[j];
    const double cosine = std::cos(static_cast<double>(angle)) * p.attention_factor;
    const double sine = std::sin(static_cast<double>(angle)) * p.attention_factor;
    result.values[j] = x[j] * cosine - x[half + j] * sine;
    result.values[half + j] = x[half + j] * cosine + x[j] * sine;
    const double turn =
        (n + 8) * kUnit * p.attention_factor * (std::fabs(x[j]) + std::fabs(x[half + j]));
    for (const std::size_t d : {j, half + j}) {
      result.bounds[d] = turn + rounding(type) * (std::fabs(result.values[d]) + turn);
    }
  }
  return result;
}

/// Keys and values of one kv head that a row sees, the row's own last, with the own one's bounds.
struct Seen {
  std::vector<std::vector<double>> keys, values;
  Head own_key;
};

std::vector<double> doubles(std::span<const float> values) {
  return {values.begin(), values.end()};
}

Seen gather(const DecodeAttentionProblem& p, std::size_t row, std::int64_t kv_head, Head own_key,
            std::span<const float> own_value) {
  Seen seen;
  const std::int64_t sequence = p.sequence_of_row[row];
  for (std::int64_t j = 0; j < p.positions[row]; ++j) {
    const std::int64_t page =
        p.page_table[static_cast<std::size_t>(sequence * p.max_pages + j / p.page_size)];
    const std::int64_t at = (page * p.page_size + j % p.page_size) * p.kv_heads + kv_head;
    seen.keys.push_back(doubles(part(p.k_past, at, p.head_dim)));
    seen.values.push_back(doubles(part(p.v_past, at, p.head_dim)));
  }
  seen.keys.push_back(own_key.values);
  seen.values.push_back(doubles(own_value));
  seen.own_key = std::move(own_key);
  return seen;
}

void attend(const DecodeAttentionProblem& p, const Head& q, const Seen& seen, DType type,
            double* out, double* bounds) {
  const std::size_t dims = q.values.size();
  const auto n = static_cast<double>(seen.keys.size());
  const double r = rounding(type);
  std::vector<double> scores;
  double worst = 0;  // error of a score
  for (std::size_t j = 0; j < seen.keys.size(); ++j) {
    const bool own = j + 1 == seen.keys.size();
    double score = 0, magnitude = 0, error = 0;
    for (std::size_t d = 0; d < dims; ++d) {
      const double key = seen.keys[j][d];
      const double key_error = own ? seen.own_key.bounds[d] : 0;
      score += q.values[d] * key;
      magnitude += std::fabs(q.values[d] * key);
      error += q.bounds[d] * std::fabs(key) + (std::fabs(q.values[d]) + q.bounds[d]) * key_error;
    }
    const double scale = std::fabs(p.scale);
    const double products = 4 * static_cast<double>(p.head_dim + 2) * kUnit;
    worst = std::fmax(worst, scale * (error + products * (magnitude + error)));
    scores.push_back(score * p.scale);
  }
  const auto [low, high] = std::minmax_element(scores.begin(), scores.end());
  const double exponentials = (4 + 2 * (*high - *low) + 6 * std::ceil(n / 64)) * kUnit;
  const double e = std::expm1(2 * worst + 2 * exponentials + std::log1p(r) - std::log1p(-r));
  double total = 0;
  for (const double score : scores) total += std::exp(score - *high);
  for (std::size_t d = 0; d < dims; ++d) {
    double sum = 0, magnitude = 0, largest = 0;
    for (std::size_t j = 0; j < seen.keys.size(); ++j) {
      const double weighted = std::exp(scores[j] - *high) / total * seen.values[j][d];
      sum += weighted;
      magnitude += std::fabs(weighted);
      largest = std::fmax(largest, std::fabs(seen.values[j][d]));
    }
    const double own = std::exp(scores.back() - *high) / total * std::fabs(seen.values.back()[d]);
    const double error = (e + 4 * (2 * n + 8) * kUnit) * (1 + e) * magnitude + r * own * (1 + e) +
                         n * std::ldexp(largest, -120);
    out[d] = sum;
    bounds[d] = error + r * (std::fabs(sum) + error);
  }
}

void check(const DecodeAttentionProblem& p) {
  const auto need = [](bool holds, const char* expected) {
    require(holds, "decode attention reference", expected);
  };
  need(p.kv_heads > 0 && p.heads % p.kv_heads == 0, "heads as a multiple of kv_heads");
  need(p.head_dim > 0 && p.head_dim % 2 == 0, "an even head_dim");
  const std::size_t rows = p.positions.size();
  need(p.slots.size() == rows && p.sequence_of_row.size() == rows, "numbers for every row");
  need(p.qkv.size() == rows * static_cast<std::size_t>((p.heads + 2 * p.kv_heads) * p.head_dim),
       "a row of qkv for every position");
  need(p.inv_freq.size() == static_cast<std::size_t>(p.head_dim / 2), "head_dim / 2 frequencies");
}

}  // namespace

DecodeAttentionReference decode_attention_reference(const DecodeAttentionProblem& p, DType type) {
  check(p);
  const std::size_t rows = p.positions.size();
  const auto dim = static_cast<std::size_t>(p.head_dim);
  const std::size_t q_size = rows * static_cast<std::size_t>(p.heads) * dim;
  const std::size_t kv_size = rows * static_cast<std::size_t>(p.kv_heads) * dim;
  DecodeAttentionReference result;
  for (auto* list : {&result.out, &result.out_bounds}) list->resize(q_size);
  for (auto* list : {&result.k, &result.v, &result.k_bounds, &result.v_bounds}) {
    list->resize(kv_size);
  }
  const std::int64_t per_kv = p.heads / p.kv_heads;
  for (std::size_t t = 0; t < rows; ++t) {
    if (p.sequence_of_row[t] < 0 || p.slots[t] < 0) continue;
    const std::int64_t first = static_cast<std::int64_t>(t) * (p.heads + 2 * p.kv_heads);
    for (std::int64_t g = 0; g < p.kv_heads; ++g) {
      const auto head = [&](std::int64_t h) { return part(p.qkv, first + h, p.head_dim); };
      const std::span<const float> value = head(p.heads + p.kv_heads + g);
      const Seen seen =
          gather(p, t, g, turned(p, p.positions[t], head(p.heads + g), p.k_norm, type), value);
      const std::size_t at =
          (t * static_cast<std::size_t>(p.kv_heads) + static_cast<std::size_t>(g)) * dim;
      for (std::size_t d = 0; d < dim; ++d) {
        result.k[at + d] = seen.own_key.values[d];
        result.k_bounds[at + d] = seen.own_key.bounds[d];
        result.v[at + d] = static_cast<double>(value[d]);
        result.v_bounds[at + d] = rounding(type) * std::fabs(static_cast<double>(value[d]));
      }
      for (std::int64_t h = g * per_kv; h < (g + 1) * per_kv; ++h) {
        const Head q = turned(p, p.positions[t], head(h), p.q_norm, type);
        const std::size_t to =
            (t * static_cast<std::size_t>(p.heads) + static_cast<std::size_t>(h)) * dim;
        attend(p, q, seen, type, result.out.data() + to, result.out_bounds.data() + to);
      }
    }
  }
  return result;
}

}  // namespace tileweave
