#include "tileweave/kernels/vendor/cublaslt_library.cuh"

#include <dlfcn.h>

#include "tileweave/core/error.h"

namespace tileweave {
namespace {

constexpr const char* kLoad = "load cuBLASLt";

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

}  // namespace tileweave
