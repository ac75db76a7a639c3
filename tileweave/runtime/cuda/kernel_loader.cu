#include "tileweave/core/error.h"
#include "tileweave/runtime/cuda/cuda_status.cuh"
#include "tileweave/runtime/cuda/kernel_loader.cuh"

namespace tileweave {
namespace {

std::vector<std::size_t> parameter_sizes(const void* function) {
  std::vector<std::size_t> sizes;
  for (;;) {
    std::size_t offset = 0;
    std::size_t bytes = 0;
    if (cudaFuncGetParamInfo(function, sizes.size(), &offset, &bytes) != cudaSuccess) break;
    sizes.push_back(bytes);
  }
  cudaGetLastError();  // one past the last parameter is how CUDA says that there are no more
  return sizes;
}

}  // namespace

const LoadedKernel& KernelLoader::load(const KernelImpl& kernel) {
  require(kernel.cuda_function != nullptr, "load a kernel", "it must have a form for CUDA",
          "none for `" + kernel.name + "`");
  return load(kernel.name, kernel.cuda_function);
}

const LoadedKernel& KernelLoader::load(const std::string& name, const void* function) {
  const auto found = loaded_.find(function);
  if (found != loaded_.end()) return found->second;

  const std::string operation = "load kernel `" + name + "`";
  cudaFuncAttributes attributes{};
  const cudaError_t status = cudaFuncGetAttributes(&attributes, function);
  if (status != cudaSuccess) throw_cuda_error(status, operation);
  LoadedKernel kernel;
  kernel.function = function;
  kernel.registers_per_thread = attributes.numRegs;
  kernel.static_shared_bytes = static_cast<std::int64_t>(attributes.sharedSizeBytes);
  kernel.max_threads_per_block = attributes.maxThreadsPerBlock;
  kernel.waits_for_grid_dependency = attributes.ptxVersion >= 90;
  kernel.parameter_bytes = parameter_sizes(function);

  const auto set = [&](cudaFuncAttribute attribute, int value) {
    const cudaError_t result = cudaFuncSetAttribute(function, attribute, value);
    if (result != cudaSuccess) throw_cuda_error(result, operation);
  };
  set(cudaFuncAttributePreferredSharedMemoryCarveout, kSharedCarveout);
  if (kernel.static_shared_bytes < shared_bytes_per_block_) {
    set(cudaFuncAttributeMaxDynamicSharedMemorySize,
        static_cast<int>(shared_bytes_per_block_ - kernel.static_shared_bytes));
  }
  return loaded_.emplace(function, std::move(kernel)).first->second;
}

void KernelLoader::load_all(const KernelLibrary& kernels) {
  for (const auto& [name, kernel] : kernels.all()) {
    if (kernel.cuda_function != nullptr) load(kernel);
  }
}

}  // namespace tileweave
