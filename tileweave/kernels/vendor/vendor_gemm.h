// Vendor GEMM: y = x Wᵀ + residual + bias through another library, cuBLASLt on a GPU.
//
// x (M, K) bf16, W (N, K) bf16, row-major; y (M, N) f32 or bf16; residual (M, N) and bias (N),
// where given, have the type of y. Sums are f32, in the library's order: the same for the same
// shape on the same GPU and library, not those of our own products, nor independent of M.
//
// The node is not integrated: full dependencies on both sides, no data tiles. Its scratch is the
// library's workspace, so nodes that may run at once never share one. Before the first launch of a
// shape the candidates of the library's heuristic are tried in its order on a result of their own,
// and the first that runs is kept; none: Error. The library is opened at that time (libcublasLt.so
// of the toolkit that Tileweave was built with).
#pragma once

#include <cstddef>
#include <optional>
#include <string>

#include "tileweave/plan/node.h"
#include "tileweave/runtime/device.h"
#include "tileweave/runtime/kernel_library.h"

namespace tileweave {

struct VendorGemmOptions {
  std::string name = "vendor_gemm";
  std::size_t workspace_bytes = std::size_t{32} << 20;
  std::optional<Cost> cost = std::nullopt;
};

struct VendorGemmTensors {
  TensorId x = kNoTensor;
  TensorId w = kNoTensor;  // constant
  TensorId y = kNoTensor;  // result
  TensorId residual = kNoTensor;
  TensorId bias = kNoTensor;  // constant
};

/// The launch as a node of a plan or of an AsyncStream. Throws Error naming the operand for shapes
/// or types that do not fit.
NodeSpec vendor_gemm(const TensorTable& tensors, const VendorGemmOptions& options,
                     const VendorGemmTensors& operands);

void add_vendor_gemm_cpu(KernelLibrary& kernels);
/// In builds without CUDA or without cublasLt.h: throws Error saying so.
void add_vendor_gemm_cuda(KernelLibrary& kernels);

inline void add_vendor_gemm(Device& device) {
  device.name() == "cuda" ? add_vendor_gemm_cuda(device.kernels())
                          : add_vendor_gemm_cpu(device.kernels());
}

}  // namespace tileweave
