// Vendor GEMM: y = x Wᵀ + residual + bias through another library, cuBLASLt on a GPU.
//
// x (M, K) bf16, W (N, K) bf16, row-major; y (M, N) f32 or bf16; residual (M, N) of the type of y;
// bias (N) f32 or bf16, where y is f32. Sums are f32, in the library's order: the same whenever
// shape, types, residual, alignment of the addresses, workspace, GPU and library are the same, not
// those of our own products, nor independent of M. A bias is not left to the library, which has it
// for few forms: a kernel of ours puts residual + bias into y, to which the product is added.
//
// The node is not integrated: full dependencies on both sides, no data tiles. Its scratch is the
// library's workspace, so nodes that may run at once never share one. Before the first launch of a
// form the candidates of the library's heuristic are tried in its order on a result and a workspace
// of their own (M N elements more for that time), and the first that runs is kept; none: Error. The
// library is opened at that time (libcublasLt.so of the toolkit that Tileweave was built with).
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
/// Nothing where they have it already. In builds without CUDA or without cublasLt.h: throws Error
/// saying so.
void add_vendor_gemm_cuda(KernelLibrary& kernels);

/// "cuBLASLt 13.0.2", opened for that. Throws Error where products would: no library, no such
/// build.
std::string vendor_gemm_library();

inline void add_vendor_gemm(Device& device) {
  device.name() == "cuda" ? add_vendor_gemm_cuda(device.kernels())
                          : add_vendor_gemm_cpu(device.kernels());
}

}  // namespace tileweave
