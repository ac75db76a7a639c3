#include "tileweave/kernels/sampling/advance_cuda.cuh"

#include "tileweave/core/error.h"
#include "tileweave/kernels/sampling/advance.h"
#include "tileweave/runtime/cuda/cuda_device.cuh"
#include "tileweave/runtime/cuda/cuda_status.cuh"

namespace tileweave {

std::function<void(NativeStream)> make_advance_cuda(Device& device, const AdvanceArgs& args) {
  check_advance_args(args);
  const auto* const gpu = dynamic_cast<const CudaDevice*>(&device);
  require(gpu != nullptr, "make an advance", "a GPU", "device `" + device.name() + "`");
  const int index = gpu->index();
  const auto* const function = reinterpret_cast<const void*>(advance_cuda);
  {
    const CurrentDevice current(index);
    gpu->loader().load("tileweave.advance", function);
  }
  return [args, index, function](NativeStream stream) {
    const CurrentDevice current(index);
    AdvanceArgs placed = args;
    void* parameters[] = {&placed};
    check_cuda(cudaLaunchKernel(function, dim3(1), dim3(kAdvanceThreads), parameters, 0,
                                static_cast<cudaStream_t>(stream)),
               "launch an advance");
  };
}

}  // namespace tileweave
