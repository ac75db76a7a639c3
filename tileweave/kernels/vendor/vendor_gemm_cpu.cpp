// The vendor GEMM on the emulated device: plain sums, one block. For plans that have such a node,
// not for speed.
#include <cstddef>
#include <cstdint>

#include "tileweave/kernels/vendor/vendor_gemm.h"
#include "tileweave/kernels/vendor/vendor_gemm_args.h"
#include "tileweave/runtime/cpu/tile_view.h"

namespace tileweave {
namespace {

float bias_at(const VendorGemmArgs& args, std::int64_t j) {
  const void* bias = args.bias.get();
  if (bias == nullptr) return 0;
  return args.bias_type == DType::kBF16 ? to_float(static_cast<const BFloat16*>(bias)[j])
                                        : static_cast<const float*>(bias)[j];
}

/// Y: type of the result and the residual.
template <class Y>
void multiply(const VendorGemmArgs& args, AccessChecker* checker) {
  using Operands = VendorGemmOperands;
  const Ready ready(true);  // the node is not integrated: everything before it has completed
  const MatrixView<const BFloat16> x(args.x.get(ready), args.k, Operands::kX, checker);
  const MatrixView<const BFloat16> w(args.w.get(), args.k, Operands::kW, checker);
  const MatrixView<Y> y(static_cast<Y*>(args.y.get()), args.n, Operands::kY, checker);
  const auto* residual = static_cast<const Y*>(args.residual.get(ready));
  for (std::int64_t i = 0; i < args.m; ++i) {
    const BFloat16* a = x.row(i, 0, args.k);
    Y* out = y.row(i, 0, args.n);
    const Y* add =
        residual == nullptr
            ? nullptr
            : MatrixView<const Y>(residual, args.n, args.residual_at, checker).row(i, 0, args.n);
    for (std::int64_t j = 0; j < args.n; ++j) {
      const BFloat16* b = w.row(j, 0, args.k);
      float sum = 0;
      for (std::int64_t k = 0; k < args.k; ++k) sum += to_float(a[k]) * to_float(b[k]);
      if (add != nullptr) sum += to_float(add[j]);
      out[j] = from_float<Y>(sum + bias_at(args, j));
    }
  }
}

void vendor_gemm_cpu(CpuLane& lane, const std::byte* arg_bytes, const std::byte* /*context*/) {
  const auto& args = *reinterpret_cast<const VendorGemmArgs*>(arg_bytes);
  args.y_type == DType::kBF16 ? multiply<BFloat16>(args, lane.checker())
                              : multiply<float>(args, lane.checker());
}

}  // namespace

void add_vendor_gemm_cpu(KernelLibrary& kernels) {
  kernels.add({.name = kVendorGemmKernel, .cpu = vendor_gemm_cpu});
}

}  // namespace tileweave
