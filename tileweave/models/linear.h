// Linear layers of a step: y = x Wᵀ with what `stages` puts around it, through the product that
// reads the weight as it lies (gemm: row-major; skinny_gemm, and for many rows wide_gemm: packed;
// or for these vendor_gemm: the row-major copy).
#pragma once

#include "tileweave/models/model_weights.h"
#include "tileweave/models/step_builder.h"

namespace tileweave {

struct LinearSpec {
  const char* name = nullptr;  // of the node, within its layer
  StepOp op = StepOp::kQkv;    // whose knobs
  TensorId x = kNoTensor;      // (M, K)
  TensorId y = kNoTensor;      // (M, N), gated (M, N / 2)
  const Weight* weight = nullptr;
  TensorId bias = kNoTensor;      // (N)
  TensorId residual = kNoTensor;  // added, shape of y
  bool gated = false;             // silu(x Gateᵀ) * (x Upᵀ)
  TensorId norm = kNoTensor;      // weight of an RMSNorm in front (fuses_norms())
};

/// Adds the node. Throws Error for a weight that is packed in another way than the product needs.
void linear(StepBuilder& b, const LinearSpec& spec);

}  // namespace tileweave
