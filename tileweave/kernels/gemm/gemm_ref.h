// GEMM in plain loops with fp64 accumulation: oracle of every other form, and its documentation.
//
// Beside the result it sums |a| |b|, from which `gemm_error_bound` derives how far a correct fp32
// GEMM may be away, element by element. Never tuned. Host only.
#pragma once

#include <cstdint>
#include <span>
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

/// Throws Error when the spans are not (M, K) and (K, N) elements long. T: float or BFloat16.
template <class T>
GemmReference gemm_reference(const GemmShape& shape, std::span<const T> a, std::span<const T> b);

/// Largest |result - exact| of one element for any order of K fused or unfused multiply-adds and
/// `parts - 1` additions of partial sums in fp32, rounded to `result` at the end.
///
/// With u = 2^-24 and n = K + parts roundings, |computed - exact| <= n u / (1 - n u) sum |a| |b|
/// (Higham, Accuracy and Stability, section 3.1); the final rounding adds u_result times the
/// computed value. Products of two bf16 are exact in fp32, so the bound holds with room to spare.
double gemm_error_bound(double exact, double magnitude, std::int64_t k, std::int64_t parts,
                        DType result);

}  // namespace tileweave
