// CublasLtProduct: one product through cuBLASLt, and the ways that the library offers to compute
// it.
//
//   CublasLtProduct product(library, {.m = 8, .n = 4096, .k = 4096});
//   product.enqueue(0, stream, {.w = w, .x = x, .y = y, .workspace = at});
//
// y (m, n) = x (m, k) Wᵀ + residual, all row-major, W (n, k); x and W bf16, sums in f32. The
// residual may be y itself. Candidates come in the order in which the library's heuristic ranks
// them; which of them runs is the caller's choice: the heuristic may name some that then refuse.
// The library must outlive it.
#pragma once

#include <cublasLt.h>
#include <cuda_runtime.h>

#include <compare>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "tileweave/core/dtype.h"
#include "tileweave/kernels/vendor/cublaslt_library.cuh"

namespace tileweave {

/// What the library needs to know to choose; the same form, the same candidates.
struct ProductForm {
  std::int64_t m = 0, n = 0, k = 0;
  DType y_type = DType::kF32;  // or bf16
  bool residual = false;       // (m, n), type of y
  /// Which all addresses are multiples of, in bytes: a power of two, at most 256.
  std::uint32_t alignment = 256;
  std::size_t workspace_bytes = std::size_t{32} << 20;
  /// Ways of adding the parts of a split K that may be taken.
  std::uint32_t reductions = CUBLASLT_REDUCTION_SCHEME_MASK;
  friend auto operator<=>(const ProductForm&, const ProductForm&) = default;
};

/// "8 x 4096 x 4096".
std::string to_string(const ProductForm& form);

struct ProductOperands {
  const void* w = nullptr;
  const void* x = nullptr;
  void* y = nullptr;
  const void* residual = nullptr;
  void* workspace = nullptr;  // nobody else's while the product runs
};

class CublasLtProduct {
 public:
  /// Throws Error where the library has nothing for the form.
  CublasLtProduct(const CublasLt& library, const ProductForm& form);

  const ProductForm& form() const { return form_; }
  std::size_t num_candidates() const { return candidates_.size(); }
  /// Puts candidate `index` on a stream, or says why it does not.
  cublasStatus_t enqueue(std::size_t index, cudaStream_t stream, const ProductOperands& at) const;

 private:
  /// Which operand the library sees as its first matrix: of one row, either.
  enum class Roles : std::uint8_t { kWeightFirst, kInputFirst };
  struct Descriptors {
    std::shared_ptr<cublasLtMatmulDescOpaque_t> operation;
    std::shared_ptr<cublasLtMatrixLayoutOpaque_t> a, b, d;
  };
  struct Candidate {
    Roles roles = Roles::kWeightFirst;
    cublasLtMatmulAlgo_t algorithm = {};
  };

  Descriptors make_descriptors(Roles roles) const;
  void find_candidates(Roles roles);

  const CublasLt& library_;
  ProductForm form_;
  Descriptors weight_first_, input_first_;
  std::vector<Candidate> candidates_;
};

}  // namespace tileweave
