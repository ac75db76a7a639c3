// GemmEpilogue: what a GEMM does to its sums before it stores them.
//
//   plain   C = act(A · B + bias) + residual
//   gated   C = act(A · B_gate + bias_gate) * (A · B_up + bias_up) + residual
//
// Every step is one fp32 rounding per element, in the order written, on sums that are complete (a
// split tile's last arriver does it), and the result is rounded to C's type at the end. CPU only.
#pragma once

#include <cstdint>

#include "tileweave/plan/tensor.h"

namespace tileweave {

enum class GemmActivation : std::uint8_t {
  kNone,
  kSilu,     // x / (1 + exp(-x))
  kGeluTanh  // x / (1 + exp(-2 sqrt(2 / pi) (x + 0.044715 x^3))) = x/2 (1 + tanh(..))
};

constexpr const char* name_of(GemmActivation activation) {
  switch (activation) {
    case GemmActivation::kNone:
      return "none";
    case GemmActivation::kSilu:
      return "silu";
    case GemmActivation::kGeluTanh:
      return "gelu_tanh";
  }
  return "?";
}

struct GemmEpilogue {
  /// (N), gated (2N): a constant of f32, bf16 or f16 that is added to every row.
  TensorId bias = kNoTensor;
  /// (M, N) f32; waited for by tiles of C in slot 3. C may share its buffer where K is not split.
  TensorId residual = kNoTensor;
  GemmActivation activation = GemmActivation::kNone;
  /// B holds 2N output columns (rows of an (N, K) B): the gate's N, then those of the factor.
  bool gated = false;

  bool empty() const {
    return bias == kNoTensor && residual == kNoTensor && activation == GemmActivation::kNone &&
           !gated;
  }
};

}  // namespace tileweave
