// What `gemm` demands of its tensors and options; internal to gemm.cpp and gemm_schedule.cpp.
#pragma once

#include <cstdint>
#include <string>

#include "tileweave/core/error.h"
#include "tileweave/kernels/gemm/gemm.h"

namespace tileweave {

inline constexpr std::int64_t kLargestGemmTile = std::int64_t{1} << 20;

inline void need(bool holds, const GemmOptions& options, const std::string& expected,
                 const std::string& got = {}) {
  if (!holds) throw Error("make gemm node `" + options.name + "`", expected, got);
}

/// Throws unless A, B, C and the epilogue's tensors fit together.
void check_gemm_tensors(const TensorTable& tensors, const GemmOptions& options, TensorId a,
                        TensorId b, TensorId c);

}  // namespace tileweave
