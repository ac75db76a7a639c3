#include <dlfcn.h>

#include <algorithm>
#include <array>

#include "bench/baselines/cublaslt.cuh"
#include "tileweave/core/error.h"
#include "tileweave/runtime/cuda/cuda_status.cuh"

namespace tileweave::bench {
namespace {

constexpr int kMostCandidates = 100;
constexpr int kTimedReplays = 3;
constexpr const char* kLoad = "load cuBLASLt";

std::string text_of(const ProductShape& shape) {
  return std::to_string(shape.m) + " x " + std::to_string(shape.n) + " x " +
         std::to_string(shape.k);
}

}  // namespace

template <class Function>
void CublasLt::find(Function& function, const char* name) {
  function = reinterpret_cast<Function>(dlsym(library_, name));
  if (function == nullptr) throw Error(kLoad, std::string("a library that has ") + name, "none");
}

CublasLt::CublasLt() {
  const std::string name = "libcublasLt.so." + std::to_string(CUBLAS_VER_MAJOR);
  library_ = dlopen(name.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (library_ == nullptr) {
    throw Error(kLoad, name + " where the loader looks (LD_LIBRARY_PATH)", dlerror());
  }
  find(matmul, "cublasLtMatmul");
  find(heuristic, "cublasLtMatmulAlgoGetHeuristic");
  find(create_operation, "cublasLtMatmulDescCreate");
  find(destroy_operation, "cublasLtMatmulDescDestroy");
  find(set_operation, "cublasLtMatmulDescSetAttribute");
  find(create_layout, "cublasLtMatrixLayoutCreate");
  find(destroy_layout, "cublasLtMatrixLayoutDestroy");
  find(create_preference, "cublasLtMatmulPreferenceCreate");
  find(destroy_preference, "cublasLtMatmulPreferenceDestroy");
  find(set_preference, "cublasLtMatmulPreferenceSetAttribute");
  find(create_, "cublasLtCreate");
  find(destroy_, "cublasLtDestroy");
  find(get_version_, "cublasLtGetVersion");
  find(status_string_, "cublasLtGetStatusString");
  check(create_(&handle_), kLoad);
}

CublasLt::~CublasLt() {
  // The library stays open: closing it while its kernels are loaded gains nothing at the end.
  if (handle_ != nullptr) destroy_(handle_);
}

std::string CublasLt::version() const {
  const std::size_t number = get_version_();
  return std::to_string(number / 10000) + "." + std::to_string(number / 100 % 100) + "." +
         std::to_string(number % 100);
}

void CublasLt::check(cublasStatus_t status, const std::string& operation) const {
  if (status != CUBLAS_STATUS_SUCCESS) throw Error(operation, "success", status_string_(status));
}

CublasLtProduct::CublasLtProduct(const CublasLt& library, const ProductShape& shape, Device& device)
    : library_(library), shape_(shape), workspace_(device, kWorkspaceBytes) {
  weight_first_ = make_descriptors(ProductRoles::kWeightFirst);
  find_candidates(ProductRoles::kWeightFirst);
  if (shape.m == 1) {
    input_first_ = make_descriptors(ProductRoles::kInputFirst);
    find_candidates(ProductRoles::kInputFirst);
  }
  if (candidates_.empty()) {
    throw Error("multiply with cuBLASLt", "a candidate for " + text_of(shape), "none");
  }
  best_ = candidates_.front();
}

// The library's matrices are column-major, so a row-major (rows, columns) is (columns, rows) there:
// y and x come as (n, m) and (k, m), w as (k, n), to be transposed.
ProductDescriptors CublasLtProduct::make_descriptors(ProductRoles roles) const {
  const CublasLt& library = library_;
  const auto layout = [&](cudaDataType_t type, std::int64_t rows, std::int64_t columns) {
    cublasLtMatrixLayout_t made = nullptr;
    library.check(library.create_layout(&made, type, static_cast<std::uint64_t>(rows),
                                        static_cast<std::uint64_t>(columns), rows),
                  "describe a matrix");
    return std::shared_ptr<cublasLtMatrixLayoutOpaque_t>(made, library.destroy_layout);
  };
  ProductDescriptors made;
  cublasLtMatmulDesc_t operation = nullptr;
  library.check(library.create_operation(&operation, CUBLAS_COMPUTE_32F, CUDA_R_32F),
                "describe a product");
  made.operation.reset(operation, library.destroy_operation);
  const cublasOperation_t transposed = CUBLAS_OP_T;
  library.check(
      library.set_operation(operation, CUBLASLT_MATMUL_DESC_TRANSA, &transposed, sizeof transposed),
      "describe a product");
  const auto weight = layout(CUDA_R_16BF, shape_.k, shape_.n);
  const auto input = layout(CUDA_R_16BF, shape_.k, shape_.m);
  if (roles == ProductRoles::kWeightFirst) {
    made.a = weight;
    made.b = input;
    made.d = layout(CUDA_R_32F, shape_.n, shape_.m);
  } else {  // one row: its transpose has the same bytes
    made.a = input;
    made.b = weight;
    made.d = layout(CUDA_R_32F, shape_.m, shape_.n);
  }
  return made;
}

void CublasLtProduct::find_candidates(ProductRoles roles) {
  const ProductDescriptors& at = roles == ProductRoles::kWeightFirst ? weight_first_ : input_first_;
  cublasLtMatmulPreference_t made = nullptr;
  library_.check(library_.create_preference(&made), "describe a preference");
  const std::shared_ptr<cublasLtMatmulPreferenceOpaque_t> preference(made,
                                                                     library_.destroy_preference);
  const std::size_t bytes = kWorkspaceBytes;
  library_.check(
      library_.set_preference(made, CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES, &bytes, sizeof bytes),
      "describe a preference");
  std::array<cublasLtMatmulHeuristicResult_t, kMostCandidates> results{};  // nvcc fails on a vector
  int count = 0;
  const cublasStatus_t status =
      library_.heuristic(library_.handle(), at.operation.get(), at.a.get(), at.b.get(), at.d.get(),
                         at.d.get(), made, kMostCandidates, results.data(), &count);
  if (status != CUBLAS_STATUS_SUCCESS) return;  // it may still know the other way round
  for (int i = 0; i < count; ++i) {
    const cublasLtMatmulHeuristicResult_t& result = results[static_cast<std::size_t>(i)];
    if (result.state != CUBLAS_STATUS_SUCCESS || result.workspaceSize > kWorkspaceBytes) continue;
    ProductCandidate candidate;
    candidate.roles = roles;
    candidate.algorithm = result.algo;
    candidates_.push_back(candidate);
  }
}

cublasStatus_t CublasLtProduct::enqueue(const ProductCandidate& candidate, cudaStream_t stream,
                                        const void* w, const void* x, void* y) const {
  const bool weight_first = candidate.roles == ProductRoles::kWeightFirst;
  const ProductDescriptors& at = weight_first ? weight_first_ : input_first_;
  const float one = 1;
  const float zero = 0;
  return library_.matmul(library_.handle(), at.operation.get(), &one, weight_first ? w : x,
                         at.a.get(), weight_first ? x : w, at.b.get(), &zero, y, at.d.get(), y,
                         at.d.get(), &candidate.algorithm, workspace_.at(), kWorkspaceBytes,
                         stream);
}

void CublasLtProduct::enqueue(cudaStream_t stream, const void* w, const void* x, void* y) const {
  library_.check(enqueue(best_, stream, w, x, y), "multiply " + text_of(shape_));
}

double CublasLtProduct::time_us(const ProductCandidate& candidate, cudaStream_t stream,
                                const TuneOperands& operands) const {
  // Once outside a capture: kernels are loaded at their first launch, and a candidate that cannot
  // run is found here.
  if (enqueue(candidate, stream, operands.weights.front(), operands.x, operands.y) !=
          CUBLAS_STATUS_SUCCESS ||
      cudaStreamSynchronize(stream) != cudaSuccess) {
    cudaGetLastError();
    return -1;
  }
  check_cuda(cudaStreamBeginCapture(stream, cudaStreamCaptureModeThreadLocal), "begin a capture");
  cublasStatus_t status = CUBLAS_STATUS_SUCCESS;
  for (const void* w : operands.weights) {
    if (status == CUBLAS_STATUS_SUCCESS) {
      status = enqueue(candidate, stream, w, operands.x, operands.y);
    }
  }
  cudaGraph_t graph = nullptr;
  cudaGraphExec_t executable = nullptr;
  bool fine = cudaStreamEndCapture(stream, &graph) == cudaSuccess &&
              status == CUBLAS_STATUS_SUCCESS && graph != nullptr;
  fine = fine && cudaGraphInstantiate(&executable, graph, 0) == cudaSuccess;
  cudaEvent_t begin = nullptr;
  cudaEvent_t end = nullptr;
  check_cuda(cudaEventCreate(&begin), "create an event");
  check_cuda(cudaEventCreate(&end), "create an event");
  double best = -1;
  for (int i = 0; fine && i <= kTimedReplays; ++i) {
    float ms = 0;
    fine = cudaEventRecord(begin, stream) == cudaSuccess &&
           cudaGraphLaunch(executable, stream) == cudaSuccess &&
           cudaEventRecord(end, stream) == cudaSuccess &&
           cudaEventSynchronize(end) == cudaSuccess &&
           cudaEventElapsedTime(&ms, begin, end) == cudaSuccess;
    const double us = static_cast<double>(ms) * 1e3 / static_cast<double>(operands.weights.size());
    if (fine && i > 0) best = best < 0 ? us : std::min(best, us);
  }
  cudaEventDestroy(begin);
  cudaEventDestroy(end);
  if (executable != nullptr) cudaGraphExecDestroy(executable);
  if (graph != nullptr) cudaGraphDestroy(graph);
  cudaGetLastError();  // of a candidate that was refused
  return fine ? best : -1;
}

void CublasLtProduct::tune(cudaStream_t stream, const TuneOperands& operands) {
  best_us_ = -1;
  num_refused_ = 0;
  for (const ProductCandidate& candidate : candidates_) {
    const double us = time_us(candidate, stream, operands);
    if (us < 0) {
      ++num_refused_;
    } else if (best_us_ < 0 || us < best_us_) {
      best_us_ = us;
      best_ = candidate;
    }
  }
  if (best_us_ < 0) {
    throw Error("multiply with cuBLASLt", "a candidate that runs for " + text_of(shape_),
                "none of " + std::to_string(candidates_.size()));
  }
}

}  // namespace tileweave::bench
