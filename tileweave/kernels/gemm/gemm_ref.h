// GEMM in plain loops with fp64 accumulation: oracle of every other form, and its documentation.
//
// Beside the result it sums |a| |b|, from which the bounds derive how far a correct fp32 GEMM may
// be away, element by element. Never tuned. Host only.
#pragma once

#include <cstdint>
#include <span>
#include <type_traits>
#include <vector>

#include "tileweave/core/dtype.h"
#include "tileweave/kernels/gemm/gemm.h"

namespace tileweave {

struct GemmShape {
  std::int64_t m = 0, n = 0, k = 0;
  BLayout b_layout = BLayout::kKxN;
};

struct GemmReference {
  std::vector<double> c;           // (M, N): sum over k of a b
  std::vector<double> magnitudes;  // (M, N): sum over k of |a| |b|
};

/// Throws Error when the spans are not (M, K) and (K, N) elements long. TA x TB: float x float,
/// BFloat16 or Float16, or BFloat16 x BFloat16.
template <class TA, class TB = TA>
GemmReference gemm_reference(const GemmShape& shape, std::span<const TA> a,
                             std::type_identity_t<std::span<const TB>> b);

/// Largest |result - exact| of one element for any order of K fused or unfused multiply-adds and
/// `parts - 1` additions of partial sums in fp32, rounded to `result` at the end.
///
/// With u = 2^-24 and n = K + parts roundings, |computed - exact| <= n u / (1 - n u) sum |a| |b|
/// (Higham, Accuracy and Stability, section 3.1); the final rounding adds u_result times the
/// computed value. Products of two bf16 are exact in fp32, so the bound holds with room to spare.
double gemm_error_bound(double exact, double magnitude, std::int64_t k, std::int64_t parts,
                        DType result);

/// Operands of an epilogue, in fp32 (where every 16-bit float is exact); empty: none.
struct GemmEpilogueValues {
  std::span<const float> bias = {};      // (N), gated (2N)
  std::span<const float> residual = {};  // (M, N)
  GemmActivation activation = GemmActivation::kNone;
  bool gated = false;  // B has 2N columns, `shape.n` is N
};

struct GemmFusedReference {
  std::vector<double> c;       // (M, N)
  std::vector<double> bounds;  // largest |result - c|
};

/// The epilogue on top of sums for which `gemm_error_bound` holds. Bounds go through its steps:
/// each fp32 operation rounds its result by u; an activation stretches the error of its argument by
/// its steepest slope (1.10 silu, 1.13 gelu) and adds its own evaluation's, 5 u for exp to 1 ulp,
/// a sum and a quotient, for gelu also 8 u of the exponent; a product of x and y with errors e and
/// f is off by |x| f + |y| e + e f.
template <class TA, class TB>
GemmFusedReference gemm_fused_reference(const GemmShape& shape, const GemmEpilogueValues& epilogue,
                                        std::span<const TA> a, std::span<const TB> b,
                                        std::int64_t parts, DType result);

}  // namespace tileweave
