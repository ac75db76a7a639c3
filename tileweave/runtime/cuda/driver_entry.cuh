// Functions of the CUDA driver, looked up at run time: the library never links libcuda, so that a
// program built with CUDA also starts where no driver is installed.
#pragma once

#include <cuda.h>
#include <cudaTypedefs.h>
#include <cuda_runtime.h>

#include <string>

#include "tileweave/runtime/cuda/cuda_status.cuh"

namespace tileweave {

/// The driver's function as of CUDA `version` (12040 for 12.4), or null where it has none.
template <class Function>
Function find_driver_entry(const char* symbol, unsigned int version) {
  void* entry = nullptr;
  cudaDriverEntryPointQueryResult found = cudaDriverEntryPointSymbolNotFound;
  const cudaError_t status =
      cudaGetDriverEntryPointByVersion(symbol, &entry, version, cudaEnableDefault, &found);
  if (status != cudaSuccess) {
    cudaGetLastError();
    return nullptr;
  }
  return found == cudaDriverEntryPointSuccess ? reinterpret_cast<Function>(entry) : nullptr;
}

/// Status codes of driver and runtime are the same numbers.
inline void check_driver(CUresult status, const char* operation) {
  if (status != CUDA_SUCCESS) throw_cuda_error(static_cast<cudaError_t>(status), operation);
}

}  // namespace tileweave
