#include "cli/cuda_machine.h"
#include "tileweave/core/error.h"

namespace tileweave::cli {
namespace {

constexpr const char* kReason = "this build has no CUDA; configure it with TILEWEAVE_CUDA=ON";

}  // namespace

CudaBuild cuda_build() noexcept {
  return CudaBuild::kWithout;
}

std::string why_no_gpu() {
  return kReason;
}

CudaInspection inspect_cuda() {
  throw Error("inspect the GPU", kReason);
}

HopReport measure_cuda_hops(const BenchSyncOptions& /*options*/) {
  throw Error("measure hops on a GPU", kReason);
}

}  // namespace tileweave::cli
