#include <algorithm>
#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <utility>

#include "tileweave/core/error.h"
#include "tileweave/kernels/vendor/cublaslt_library.cuh"
#include "tileweave/kernels/vendor/cublaslt_product.cuh"
#include "tileweave/kernels/vendor/vendor_gemm.h"
#include "tileweave/kernels/vendor/vendor_gemm_args.h"
#include "tileweave/runtime/cuda/cuda_device.cuh"
#include "tileweave/runtime/cuda/cuda_status.cuh"
#include "tileweave/runtime/cuda/relaxed_capture.cuh"
#include "tileweave/runtime/device_memory.h"

namespace tileweave {
namespace {

constexpr std::uint32_t kMostAlignment = 256;  // that the library asks about
constexpr int kBiasThreads = 256;

/// y = residual + bias, a block a row. y may be the residual.
template <class B>
__global__ void put_bias(const float* residual, const B* bias, float* y, std::int64_t columns) {
  const std::int64_t row = blockIdx.x * columns;
  for (std::int64_t j = threadIdx.x; j < columns; j += kBiasThreads) {
    const float sum = residual == nullptr ? 0.0F : residual[row + j];
    y[row + j] = sum + to_float(bias[j]);
  }
}

/// Largest power of two that divides every address, at most kMostAlignment.
std::uint32_t alignment_of(std::initializer_list<const void*> addresses) {
  std::uintptr_t bits = kMostAlignment;
  for (const void* address : addresses) bits |= reinterpret_cast<std::uintptr_t>(address);
  return static_cast<std::uint32_t>(bits & (~bits + 1));
}

// The node is not integrated: everything before it has completed.
const Ready kReady(true);

ProductForm form_of(const VendorGemmArgs& args) {
  const void* residual = args.residual.get(kReady);
  return {.m = args.m,
          .n = args.n,
          .k = args.k,
          .y_type = args.y_type,
          .residual = residual != nullptr || args.bias.get() != nullptr,
          .alignment = alignment_of({args.w.get(), args.x.get(kReady), args.y.get(), residual}),
          .workspace_bytes = args.workspace_bytes,
          // Sums stay f32 to the end, and are not added where they lie in an order of their own.
          .reductions = CUBLASLT_REDUCTION_SCHEME_COMPUTE_TYPE};
}

/// Puts the node's work on a stream, with this result and this workspace; what the library says of
/// its part.
cublasStatus_t enqueue_on(cudaStream_t stream, const CublasLtProduct& product,
                          std::size_t candidate, const VendorGemmArgs& args, void* y,
                          void* workspace) {
  const void* residual = args.residual.get(kReady);
  if (const void* bias = args.bias.get(); bias != nullptr) {
    const auto rows = static_cast<unsigned int>(args.m);
    const auto* from = static_cast<const float*>(residual);
    auto* to = static_cast<float*>(y);
    if (args.bias_type == DType::kBF16) {
      put_bias<<<rows, kBiasThreads, 0, stream>>>(from, static_cast<const BFloat16*>(bias), to,
                                                  args.n);
    } else {
      put_bias<<<rows, kBiasThreads, 0, stream>>>(from, static_cast<const float*>(bias), to,
                                                  args.n);
    }
    check_cuda(cudaGetLastError(), "launch what puts a bias");
    residual = y;
  }
  return product.enqueue(candidate, stream,
                         {.w = args.w.get(),
                          .x = args.x.get(kReady),
                          .y = y,
                          .residual = residual,
                          .workspace = workspace});
}

/// A stream for trials, which nothing else uses.
class TrialStream {
 public:
  explicit TrialStream(const CudaDevice& device) : stream_(device.create_stream()) {}
  ~TrialStream() { cudaStreamDestroy(stream_); }
  TrialStream(const TrialStream&) = delete;
  TrialStream& operator=(const TrialStream&) = delete;
  cudaStream_t get() const { return stream_; }

 private:
  cudaStream_t stream_;
};

/// The products of one device, by form, each with the candidate that runs.
class VendorGemm {
 public:
  void prepare(Device& device, const VendorGemmArgs& args);
  void enqueue(cudaStream_t stream, const VendorGemmArgs& args);

 private:
  struct Chosen {
    CublasLtProduct product;
    std::size_t candidate;
  };

  /// The first candidate that the library and the GPU run.
  std::size_t try_candidates(CudaDevice& device, const CublasLtProduct& product,
                             const VendorGemmArgs& args) const;

  std::mutex mutex_;  // threads with queues of their own share a device
  std::optional<CublasLt> library_;
  std::map<ProductForm, Chosen> products_;
};

void VendorGemm::prepare(Device& device, const VendorGemmArgs& args) {
  const std::lock_guard lock(mutex_);
  const ProductForm form = form_of(args);
  if (products_.contains(form)) return;
  auto& on = static_cast<CudaDevice&>(device);
  const CurrentDevice current(on.index());
  const RelaxedCapture relaxed;  // a user may be capturing; trials take no part in that
  if (!library_) library_.emplace();
  CublasLtProduct product(*library_, form);
  const std::size_t candidate = try_candidates(on, product, args);
  products_.emplace(form, Chosen{std::move(product), candidate});
}

std::size_t VendorGemm::try_candidates(CudaDevice& device, const CublasLtProduct& product,
                                       const VendorGemmArgs& args) const {
  const ProductForm& form = product.form();
  // Operands stay as they are: the trial has a result of its own, as (un)aligned as the node's, and
  // a workspace of its own, since the node's may be another node's memory at this time.
  const auto result_bytes =
      static_cast<std::size_t>(form.m) * static_cast<std::size_t>(form.n) * size_of(form.y_type);
  const DeviceMemory result(device, result_bytes + kMostAlignment);
  const DeviceMemory workspace(device, form.workspace_bytes);
  void* y = result.at(form.alignment % kMostAlignment);
  const TrialStream stream(device);
  for (std::size_t candidate = 0; candidate < product.num_candidates(); ++candidate) {
    if (enqueue_on(stream.get(), product, candidate, args, y, workspace.at()) ==
            CUBLAS_STATUS_SUCCESS &&
        cudaStreamSynchronize(stream.get()) == cudaSuccess) {
      return candidate;
    }
    cudaGetLastError();
  }
  throw Error("multiply with cuBLASLt", "a candidate that runs for " + to_string(form),
              "none of " + std::to_string(product.num_candidates()));
}

void VendorGemm::enqueue(cudaStream_t stream, const VendorGemmArgs& args) {
  const std::lock_guard lock(mutex_);
  const auto chosen = products_.find(form_of(args));
  require(chosen != products_.end(), "multiply with cuBLASLt", "a product that was prepared",
          "another");
  const CublasLtProduct& product = chosen->second.product;
  library_->check(
      enqueue_on(stream, product, chosen->second.candidate, args, args.y.get(), args.workspace),
      "multiply " + to_string(product.form()));
}

}  // namespace

void add_vendor_gemm_cuda(KernelLibrary& kernels) {
  if (kernels.all().contains(kVendorGemmKernel)) return;  // its products are known to plans
  const auto gemm = std::make_shared<VendorGemm>();
  kernels.add({.name = kVendorGemmKernel,
               .vendor_call = VendorCall{
                   .prepare =
                       [gemm](Device& device, const std::byte* args) {
                         gemm->prepare(device, *reinterpret_cast<const VendorGemmArgs*>(args));
                       },
                   .enqueue =
                       [gemm](NativeStream stream, const std::byte* args) {
                         gemm->enqueue(static_cast<cudaStream_t>(stream),
                                       *reinterpret_cast<const VendorGemmArgs*>(args));
                       }}});
}

std::string vendor_gemm_library() {
  return "cuBLASLt " + CublasLt().version();
}

}  // namespace tileweave
