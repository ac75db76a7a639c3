// CublasLt: cuBLASLt as found when the program runs, and one product through it.
//
//   CublasLt library;
//   CublasLtProduct product(library, {.m = 8, .n = 4096, .k = 4096}, device);
//   product.tune(stream, {.weights = w, .x = x, .y = y});
//   product.enqueue(stream, w[0], x, y);
//
// The library is opened, not linked: a program that never asks for it needs no copy of it. Throws
// Error naming the library when there is none, and the product when nothing can compute it.
#pragma once

#include <cublasLt.h>
#include <cuda_runtime.h>

#include <compare>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "tileweave/models/device_memory.h"

namespace tileweave::bench {

class CublasLt {
 public:
  CublasLt();
  ~CublasLt();
  CublasLt(const CublasLt&) = delete;
  CublasLt& operator=(const CublasLt&) = delete;

  cublasLtHandle_t handle() const { return handle_; }
  std::string version() const;
  /// Throws Error unless the call worked.
  void check(cublasStatus_t status, const std::string& operation) const;

  // The functions of cublasLt.h by their own names.
  decltype(&cublasLtMatmul) matmul = nullptr;
  decltype(&cublasLtMatmulAlgoGetHeuristic) heuristic = nullptr;
  decltype(&cublasLtMatmulDescCreate) create_operation = nullptr;
  decltype(&cublasLtMatmulDescDestroy) destroy_operation = nullptr;
  decltype(&cublasLtMatmulDescSetAttribute) set_operation = nullptr;
  decltype(&cublasLtMatrixLayoutCreate) create_layout = nullptr;
  decltype(&cublasLtMatrixLayoutDestroy) destroy_layout = nullptr;
  decltype(&cublasLtMatmulPreferenceCreate) create_preference = nullptr;
  decltype(&cublasLtMatmulPreferenceDestroy) destroy_preference = nullptr;
  decltype(&cublasLtMatmulPreferenceSetAttribute) set_preference = nullptr;

 private:
  template <class Function>
  void find(Function& function, const char* name);

  void* library_ = nullptr;
  cublasLtHandle_t handle_ = nullptr;
  decltype(&cublasLtCreate) create_ = nullptr;
  decltype(&cublasLtDestroy) destroy_ = nullptr;
  decltype(&cublasLtGetVersion) get_version_ = nullptr;
  decltype(&cublasLtGetStatusString) status_string_ = nullptr;
};

/// y (m, n) f32 = x (m, k) bf16 times w (n, k) bf16 transposed, all row-major, sums in f32.
struct ProductShape {
  std::int64_t m = 0, n = 0, k = 0;
  friend auto operator<=>(const ProductShape&, const ProductShape&) = default;
};

/// Operands to time with: as many weights as the model has, so that they are cold.
struct TuneOperands {
  std::vector<const void*> weights;
  const void* x = nullptr;
  void* y = nullptr;
};

/// Which operand the library sees as its first matrix: one row is a vector either way.
enum class ProductRoles : std::uint8_t { kWeightFirst, kInputFirst };
struct ProductDescriptors {
  std::shared_ptr<cublasLtMatmulDescOpaque_t> operation;
  std::shared_ptr<cublasLtMatrixLayoutOpaque_t> a, b, d;
};

struct ProductCandidate {
  ProductRoles roles = ProductRoles::kWeightFirst;
  cublasLtMatmulAlgo_t algorithm = {};
};

class CublasLtProduct {
 public:
  static constexpr std::size_t kWorkspaceBytes = std::size_t{32} << 20;

  /// The library must outlive it.
  CublasLtProduct(const CublasLt& library, const ProductShape& shape, Device& device);

  /// Times every candidate of the library's heuristic in a graph over all the weights and keeps the
  /// fastest; one that the library or the GPU refuses is left out.
  void tune(cudaStream_t stream, const TuneOperands& operands);
  /// Throws Error when the library refuses.
  void enqueue(cudaStream_t stream, const void* w, const void* x, void* y) const;

  const ProductShape& shape() const { return shape_; }
  std::int64_t num_candidates() const { return static_cast<std::int64_t>(candidates_.size()); }
  std::int64_t num_refused() const { return num_refused_; }
  double best_us() const { return best_us_; }

 private:
  ProductDescriptors make_descriptors(ProductRoles roles) const;
  void find_candidates(ProductRoles roles);
  cublasStatus_t enqueue(const ProductCandidate& candidate, cudaStream_t stream, const void* w,
                         const void* x, void* y) const;
  /// Microseconds per product; negative: refused.
  double time_us(const ProductCandidate& candidate, cudaStream_t stream,
                 const TuneOperands& operands) const;

  const CublasLt& library_;
  ProductShape shape_;
  DeviceMemory workspace_;
  ProductDescriptors weight_first_, input_first_;
  std::vector<ProductCandidate> candidates_;
  ProductCandidate best_;
  double best_us_ = 0;
  std::int64_t num_refused_ = 0;
};

}  // namespace tileweave::bench
