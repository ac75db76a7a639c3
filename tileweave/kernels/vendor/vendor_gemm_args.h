// VendorGemmArgs: what a vendor GEMM is called with, the same bytes on both devices.
#pragma once

#include <cstddef>
#include <cstdint>

#include "tileweave/core/dtype.h"
#include "tileweave/sync/access.h"

namespace tileweave {

inline constexpr const char* kVendorGemmKernel = "vendor_gemm";

/// Indices of the operands that every node has.
struct VendorGemmOperands {
  static constexpr int kX = 0;
  static constexpr int kW = 1;
  static constexpr int kY = 2;
};

struct VendorGemmArgs {
  Produced<BFloat16> x;
  Stable<BFloat16> w;
  Output<void> y;
  Produced<void> residual;  // null: none
  Stable<void> bias;        // null: none
  void* workspace;
  std::size_t workspace_bytes;
  std::int64_t m, n, k;
  DType y_type;  // of the residual too
  DType bias_type;
  std::int32_t residual_at, bias_at;  // indices among the operands; -1: none
};

}  // namespace tileweave
