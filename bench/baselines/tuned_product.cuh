// TunedProduct: a product through cuBLASLt, by the candidate that was fastest here.
//
//   CublasLt library;
//   TunedProduct product(library, {.m = 8, .n = 4096, .k = 4096}, device);
//   product.tune(stream, {.weights = w, .x = x, .y = y});
//   product.enqueue(stream, w[0], x, y);
//
// Has a workspace of its own. Throws Error naming the product when nothing can compute it.
#pragma once

#include <cuda_runtime.h>

#include <cstddef>
#include <cstdint>
#include <vector>

#include "tileweave/kernels/vendor/cublaslt_library.cuh"
#include "tileweave/kernels/vendor/cublaslt_product.cuh"
#include "tileweave/runtime/device_memory.h"

namespace tileweave::bench {

/// Operands to time with: as many weights as the model has, so that they are cold.
struct TuneOperands {
  std::vector<const void*> weights;
  const void* x = nullptr;
  void* y = nullptr;
};

class TunedProduct {
 public:
  /// The library must outlive it.
  TunedProduct(const CublasLt& library, const ProductForm& form, Device& device)
      : library_(library), product_(library, form), workspace_(device, form.workspace_bytes) {}

  /// Times every candidate of the library's heuristic in a graph over all the weights and keeps the
  /// fastest; one that the library or the GPU refuses is left out.
  void tune(cudaStream_t stream, const TuneOperands& operands);
  /// Throws Error when the library refuses.
  void enqueue(cudaStream_t stream, const void* w, const void* x, void* y) const;

  const ProductForm& form() const { return product_.form(); }
  std::int64_t num_candidates() const {
    return static_cast<std::int64_t>(product_.num_candidates());
  }
  std::int64_t num_refused() const { return num_refused_; }
  double best_us() const { return best_us_; }

 private:
  cublasStatus_t enqueue(std::size_t candidate, cudaStream_t stream, const void* w, const void* x,
                         void* y) const;
  /// Microseconds per product; negative: refused.
  double time_us(std::size_t candidate, cudaStream_t stream, const TuneOperands& operands) const;

  const CublasLt& library_;
  CublasLtProduct product_;
  DeviceMemory workspace_;
  std::size_t best_ = 0;
  double best_us_ = 0;
  std::int64_t num_refused_ = 0;
};

}  // namespace tileweave::bench
