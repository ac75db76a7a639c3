// Dot products of rows of A with rows of B, compiled once per SIMD target of this machine family.
//
// Included several times by Highway's foreach_target (see gemm_dot_cpu.cpp); no include guard.
// R rows x C rows of B are held in registers, 16 fp32 sums for each pair: every vector of B is
// loaded and widened once for R rows. The sums of a pair never meet those of another.
#include <cstdint>
#include <cstring>

#include "hwy/cache_control.h"
#include "hwy/highway.h"
#include "tileweave/kernels/gemm/gemm_math_cpu.h"

HWY_BEFORE_NAMESPACE();
namespace tileweave {
namespace HWY_NAMESPACE {

namespace hn = hwy::HWY_NAMESPACE;
using gemm_math::DotProducts;
using gemm_math::kLanes;

using Floats = hn::CappedTag<float, gemm_math::kLanes>;
using Quarter = hn::CappedTag<float, 4>;
inline constexpr int kVectorLanes = hn::MaxLanes(Floats());
inline constexpr int kParts = kLanes / kVectorLanes;  // vectors that hold the sums of a pair
inline constexpr int kMostRows = kVectorLanes >= 16 ? 6 : kVectorLanes >= 8 ? 3 : 2;

/// Columns of a register block: what is left of the registers, and enough chains of multiply-adds
/// to keep the units busy.
constexpr int columns_for(int rows) {
  return rows == 1 || kVectorLanes >= 16 ? 4 : 2;
}

HWY_INLINE hn::Vec<Floats> load_wide(const float* from) {
  return hn::LoadU(Floats(), from);
}
HWY_INLINE hn::Vec<Floats> load_wide(const BFloat16* from) {
  const hn::Rebind<std::uint16_t, Floats> half;
  const hn::Rebind<std::uint32_t, Floats> whole;
  const auto bits = hn::LoadU(half, reinterpret_cast<const std::uint16_t*>(from));
  return hn::BitCast(Floats(), hn::ShiftLeft<16>(hn::PromoteTo(whole, bits)));
}
HWY_INLINE hn::Vec<Floats> load_wide(const Float16* from) {
  const hn::Rebind<hwy::float16_t, Floats> half;
  const auto loaded = hn::LoadU(half, reinterpret_cast<const hwy::float16_t*>(from));
  const auto wide = hn::PromoteTo(Floats(), loaded);
  if constexpr (kVectorLanes >= 8) return wide;  // by instructions
  // Without instructions for it Highway makes a finite number of infinity and NaN.
  const hn::Rebind<std::uint16_t, Floats> half_bits;
  const hn::Rebind<std::uint32_t, Floats> whole;
  const auto bits = hn::PromoteTo(whole, hn::BitCast(half_bits, loaded));
  const auto exponent = hn::Set(whole, 0x7c00U);
  const auto is_special = hn::Eq(hn::And(bits, exponent), exponent);
  const auto sign = hn::ShiftLeft<16>(hn::And(bits, hn::Set(whole, 0x8000U)));
  const auto fraction = hn::ShiftLeft<13>(hn::And(bits, hn::Set(whole, 0x3ffU)));
  const auto special = hn::Or(hn::Or(sign, fraction), hn::Set(whole, 0x7f800000U));
  return hn::BitCast(Floats(), hn::IfThenElse(is_special, special, hn::BitCast(whole, wide)));
}

/// kLanes elements of each row.
template <int R, int C, class TA, class TB>
HWY_INLINE void advance(const TA* a, std::int64_t a_stride, const TB* b, std::int64_t b_stride,
                        hn::Vec<Floats> (&sums)[R][C][kParts]) {
#pragma GCC unroll 16
  for (int part = 0; part < kParts; ++part) {
    hn::Vec<Floats> vb[C];
#pragma GCC unroll 16
    for (int c = 0; c < C; ++c) vb[c] = load_wide(b + c * b_stride + part * kVectorLanes);
#pragma GCC unroll 16
    for (int r = 0; r < R; ++r) {
      const auto va = load_wide(a + r * a_stride + part * kVectorLanes);
#pragma GCC unroll 16
      for (int c = 0; c < C; ++c) sums[r][c][part] = hn::MulAdd(va, vb[c], sums[r][c][part]);
    }
  }
}

// The folds find Highway's functions by their arguments: the scalar target lacks some of the names.

/// Lanes l, l + 4, l + 8 and l + 12 in lane l: (l + (l + 8)) + ((l + 4) + (l + 12)).
template <class V>
HWY_INLINE auto fold_to_quarter(const V (&sums)[kParts]) {
  const Quarter quarter;
  if constexpr (kVectorLanes == 16) {
    const hn::Half<Floats> half;
    const auto eight = Add(LowerHalf(half, sums[0]), UpperHalf(half, sums[0]));
    return Add(LowerHalf(quarter, eight), UpperHalf(quarter, eight));
  } else if constexpr (kVectorLanes == 8) {
    const auto eight = Add(sums[0], sums[1]);
    return Add(LowerHalf(quarter, eight), UpperHalf(quarter, eight));
  } else {
    return Add(Add(sums[0], sums[2]), Add(sums[1], sums[3]));
  }
}

/// Lanes 0 + 2 and 1 + 3 of `low`, then those of `high`.
template <class V>
HWY_INLINE V fold_two(V low, V high) {
  const hn::Repartition<double, Quarter> pairs;
  const auto lower = InterleaveLower(pairs, BitCast(pairs, low), BitCast(pairs, high));
  const auto upper = InterleaveUpper(pairs, BitCast(pairs, low), BitCast(pairs, high));
  return Add(BitCast(Quarter(), lower), BitCast(Quarter(), upper));
}

/// The sums of C pairs of rows, folded by halves: + 8, + 4, + 2, + 1.
template <int C, class V>
HWY_INLINE void fold_row(const V (&sums)[C][kParts], float* out) {
  if constexpr (kVectorLanes >= 4) {
    const Quarter d;
    decltype(fold_to_quarter(sums[0])) quarters[4];
#pragma GCC unroll 16
    for (int c = 0; c < 4; ++c) {
      quarters[c] = c < C ? fold_to_quarter(sums[c < C ? c : 0]) : hn::Zero(d);
    }
    const auto first = fold_two(quarters[0], quarters[1]);
    const auto second = fold_two(quarters[2], quarters[3]);
    const auto results = Add(ConcatEven(d, second, first), ConcatOdd(d, second, first));
    if constexpr (C == 4) {
      hn::StoreU(results, d, out);
    } else {
      float all[4];
      hn::StoreU(results, d, all);
#pragma GCC unroll 16
      for (int c = 0; c < C; ++c) out[c] = all[c];
    }
  } else {
    for (int c = 0; c < C; ++c) {
      float lanes[kLanes];
      for (int part = 0; part < kParts; ++part) {
        hn::StoreU(sums[c][part], Floats(), lanes + part * kVectorLanes);
      }
      for (int half = kLanes / 2; half > 0; half /= 2) {
        for (int l = 0; l < half; ++l) lanes[l] += lanes[l + half];
      }
      out[c] = lanes[0];
    }
  }
}

template <int R, int C, class TA, class TB>
HWY_INLINE void dot_block(const DotProducts<TA, TB>& p, std::int64_t row, std::int64_t col) {
  const Floats d;
  const TA* const a = p.a + row * p.a_stride;
  const TB* const b = p.b + col * p.b_stride;
  const auto kept = [&](int r, int c, int part) HWY_ATTR {
    return p.sums + ((row + r) * p.cols + col + c) * kLanes + part * kVectorLanes;
  };
  hn::Vec<Floats> sums[R][C][kParts];
#pragma GCC unroll 16
  for (int r = 0; r < R; ++r) {
#pragma GCC unroll 16
    for (int c = 0; c < C; ++c) {
#pragma GCC unroll 16
      for (int part = 0; part < kParts; ++part) {
        sums[r][c][part] = p.sums == nullptr ? hn::Zero(d) : hn::LoadU(d, kept(r, c, part));
      }
    }
  }

  // The next columns of B lie behind these: with few rows, waiting for them is all there is to do.
  const std::int64_t ahead = C * p.b_stride;
  std::int64_t k = 0;
  for (; k + kLanes <= p.depth; k += kLanes) {
#pragma GCC unroll 16
    for (int c = 0; c < C; ++c) __builtin_prefetch(b + c * p.b_stride + (k + ahead), 0, 2);
    advance<R, C>(a + k, p.a_stride, b + k, p.b_stride, sums);
  }
  if (k < p.depth) {
    // A product of zeros leaves a sum as it is.
    TA last_a[R * kLanes] = {};
    TB last_b[C * kLanes] = {};
    const auto left = static_cast<std::size_t>(p.depth - k);
    for (int r = 0; r < R; ++r) {
      std::memcpy(last_a + r * kLanes, a + r * p.a_stride + k, left * sizeof(TA));
    }
    for (int c = 0; c < C; ++c) {
      std::memcpy(last_b + c * kLanes, b + c * p.b_stride + k, left * sizeof(TB));
    }
    advance<R, C>(last_a, kLanes, last_b, kLanes, sums);
  }

#pragma GCC unroll 16
  for (int r = 0; r < R; ++r) {
    if (p.sums == nullptr) {
      fold_row(sums[r], p.out + (row + r) * p.out_stride + col);
      continue;
    }
#pragma GCC unroll 16
    for (int c = 0; c < C; ++c) {
#pragma GCC unroll 16
      for (int part = 0; part < kParts; ++part) {
        hn::StoreU(sums[r][c][part], d, kept(r, c, part));
      }
    }
  }
}

template <int R, class TA, class TB>
HWY_NOINLINE void dot_rows(const DotProducts<TA, TB>& p, std::int64_t row) {
  constexpr int C = columns_for(R);  // NOLINT(readability-identifier-naming): as above
  std::int64_t col = 0;
  for (; col + C <= p.cols; col += C) dot_block<R, C>(p, row, col);
  for (; col < p.cols; ++col) dot_block<R, 1>(p, row, col);
}

/// The rows that are left, at most R.
template <int R, class TA, class TB>
HWY_INLINE void dot_last_rows(const DotProducts<TA, TB>& p, std::int64_t row) {
  if (p.rows - row == R) return dot_rows<R>(p, row);
  if constexpr (R > 1) dot_last_rows<R - 1>(p, row);
}

template <class TA, class TB>
HWY_INLINE void dot_all(const DotProducts<TA, TB>& p) {
  std::int64_t row = 0;
  for (; row + kMostRows <= p.rows; row += kMostRows) dot_rows<kMostRows>(p, row);
  if (row < p.rows) dot_last_rows<kMostRows - 1>(p, row);
}

void dot_f32(const DotProducts<float, float>& p) {
  dot_all(p);
}
void dot_f32_bf16(const DotProducts<float, BFloat16>& p) {
  dot_all(p);
}
void dot_f32_f16(const DotProducts<float, Float16>& p) {
  dot_all(p);
}
void dot_bf16(const DotProducts<BFloat16, BFloat16>& p) {
  dot_all(p);
}

void fold_kept_sums(const float* sums, std::int64_t rows, std::int64_t cols, float* out,
                    std::int64_t out_stride) {
  for (std::int64_t i = 0; i < rows; ++i) {
    for (std::int64_t j = 0; j < cols; ++j) {
      hn::Vec<Floats> one[1][kParts];
      for (int part = 0; part < kParts; ++part) {
        one[0][part] = hn::LoadU(Floats(), sums + (i * cols + j) * kLanes + part * kVectorLanes);
      }
      fold_row(one, out + i * out_stride + j);
    }
  }
}

template <class T>
HWY_INLINE void widen_all(const T* from, std::int64_t count, float* to) {
  const Floats d;
  std::int64_t i = 0;
  for (; i + kVectorLanes <= count; i += kVectorLanes) hn::StoreU(load_wide(from + i), d, to + i);
  if (i == count) return;
  T last[kVectorLanes] = {};
  float wide[kVectorLanes];
  std::memcpy(last, from + i, static_cast<std::size_t>(count - i) * sizeof(T));
  hn::StoreU(load_wide(last), d, wide);
  std::memcpy(to + i, wide, static_cast<std::size_t>(count - i) * sizeof(float));
}

void widen_bf16(const BFloat16* from, std::int64_t count, float* to) {
  widen_all(from, count, to);
}
void widen_f16(const Float16* from, std::int64_t count, float* to) {
  widen_all(from, count, to);
}

}  // namespace HWY_NAMESPACE
}  // namespace tileweave
HWY_AFTER_NAMESPACE();
