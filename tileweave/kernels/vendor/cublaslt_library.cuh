// CublasLt: cuBLASLt as found when the program runs.
//
// The library is opened, not linked: a program that never asks for it needs no copy of it, and half
// a gigabyte is read only where somebody does. Made on the current device, for which its handle is
// then. Throws Error naming the library when there is none.
#pragma once

#include <cublasLt.h>

#include <string>

namespace tileweave {

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

}  // namespace tileweave
