#include "tileweave/kernels/vendor/cublaslt_product.cuh"

#include <array>

#include "tileweave/core/error.h"

namespace tileweave {
namespace {

constexpr int kMostCandidates = 100;

cudaDataType_t library_type(DType type) {
  return type == DType::kBF16 ? CUDA_R_16BF : CUDA_R_32F;
}

}  // namespace

std::string to_string(const ProductForm& form) {
  return std::to_string(form.m) + " x " + std::to_string(form.n) + " x " + std::to_string(form.k);
}

CublasLtProduct::CublasLtProduct(const CublasLt& library, const ProductForm& form)
    : library_(library), form_(form) {
  weight_first_ = make_descriptors(Roles::kWeightFirst);
  find_candidates(Roles::kWeightFirst);
  if (form.m == 1) {
    input_first_ = make_descriptors(Roles::kInputFirst);
    find_candidates(Roles::kInputFirst);
  }
  if (candidates_.empty()) {
    throw Error("multiply with cuBLASLt", "a candidate for " + to_string(form), "none");
  }
}

// The library's matrices are column-major, so a row-major (rows, columns) is (columns, rows) there:
// y and x come as (n, m) and (k, m), w as (k, n), to be transposed.
CublasLtProduct::Descriptors CublasLtProduct::make_descriptors(Roles roles) const {
  const CublasLt& library = library_;
  const auto layout = [&](cudaDataType_t type, std::int64_t rows, std::int64_t columns) {
    cublasLtMatrixLayout_t made = nullptr;
    library.check(library.create_layout(&made, type, static_cast<std::uint64_t>(rows),
                                        static_cast<std::uint64_t>(columns), rows),
                  "describe a matrix");
    return std::shared_ptr<cublasLtMatrixLayoutOpaque_t>(made, library.destroy_layout);
  };
  Descriptors made;
  cublasLtMatmulDesc_t operation = nullptr;
  library.check(library.create_operation(&operation, CUBLAS_COMPUTE_32F, CUDA_R_32F),
                "describe a product");
  made.operation.reset(operation, library.destroy_operation);
  const cublasOperation_t transposed = CUBLAS_OP_T;
  library.check(
      library.set_operation(operation, CUBLASLT_MATMUL_DESC_TRANSA, &transposed, sizeof transposed),
      "describe a product");
  const auto weight = layout(CUDA_R_16BF, form_.k, form_.n);
  const auto input = layout(CUDA_R_16BF, form_.k, form_.m);
  if (roles == Roles::kWeightFirst) {
    made.a = weight;
    made.b = input;
    made.d = layout(library_type(form_.y_type), form_.n, form_.m);
  } else {  // one row: its transpose has the same bytes
    made.a = input;
    made.b = weight;
    made.d = layout(library_type(form_.y_type), form_.m, form_.n);
  }
  return made;
}

void CublasLtProduct::find_candidates(Roles roles) {
  const Descriptors& at = roles == Roles::kWeightFirst ? weight_first_ : input_first_;
  cublasLtMatmulPreference_t made = nullptr;
  library_.check(library_.create_preference(&made), "describe a preference");
  const std::shared_ptr<cublasLtMatmulPreferenceOpaque_t> preference(made,
                                                                     library_.destroy_preference);
  const auto prefer = [&](cublasLtMatmulPreferenceAttributes_t attribute, const auto& value) {
    library_.check(library_.set_preference(made, attribute, &value, sizeof value),
                   "describe a preference");
  };
  prefer(CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES, form_.workspace_bytes);
  prefer(CUBLASLT_MATMUL_PREF_REDUCTION_SCHEME_MASK, form_.reductions);
  for (const auto attribute :
       {CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_A_BYTES, CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_B_BYTES,
        CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_C_BYTES, CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_D_BYTES}) {
    prefer(attribute, form_.alignment);
  }
  std::array<cublasLtMatmulHeuristicResult_t, kMostCandidates> results{};  // nvcc fails on a vector
  int count = 0;
  const cublasStatus_t status =
      library_.heuristic(library_.handle(), at.operation.get(), at.a.get(), at.b.get(), at.d.get(),
                         at.d.get(), made, kMostCandidates, results.data(), &count);
  if (status != CUBLAS_STATUS_SUCCESS) return;  // it may still know the other way round
  for (int i = 0; i < count; ++i) {
    const cublasLtMatmulHeuristicResult_t& result = results[static_cast<std::size_t>(i)];
    if (result.state != CUBLAS_STATUS_SUCCESS || result.workspaceSize > form_.workspace_bytes) {
      continue;
    }
    Candidate candidate;
    candidate.roles = roles;
    candidate.algorithm = result.algo;
    candidates_.push_back(candidate);
  }
}

cublasStatus_t CublasLtProduct::enqueue(std::size_t index, cudaStream_t stream,
                                        const ProductOperands& at) const {
  const Candidate& candidate = candidates_[index];
  const bool weight_first = candidate.roles == Roles::kWeightFirst;
  const Descriptors& how = weight_first ? weight_first_ : input_first_;
  const float one = 1;
  const float of_residual = form_.residual ? 1 : 0;
  return library_.matmul(library_.handle(), how.operation.get(), &one, weight_first ? at.w : at.x,
                         how.a.get(), weight_first ? at.x : at.w, how.b.get(), &of_residual,
                         form_.residual ? at.residual : at.y, how.d.get(), at.y, how.d.get(),
                         &candidate.algorithm, at.workspace, form_.workspace_bytes, stream);
}

}  // namespace tileweave
