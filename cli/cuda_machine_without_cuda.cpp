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

CudaReadRate measure_cuda_read_rate() {
  throw Error("measure the read rate of a GPU", kReason);
}

double seconds_on_gpu(Program& /*program*/, const std::function<void()>& /*enqueue*/) {
  throw Error("measure on a GPU", kReason);
}

}  // namespace tileweave::cli
