#include "cli/cuda_machine.h"

#include <cuda_runtime.h>

#include <algorithm>
#include <string>

#include "cli/cuda_words.h"
#include "tileweave/core/error.h"
#include "tileweave/kernels/vendor/vendor_gemm.h"
#include "tileweave/runtime/cuda/bench_sync.h"
#include "tileweave/runtime/cuda/probe.h"
#include "tileweave/runtime/cuda/run_timer.h"
#include "tileweave/runtime/device.h"

namespace tileweave::cli {
namespace {

constexpr std::int64_t kHopBlocks = 132;

}  // namespace

CudaBuild cuda_build() noexcept {
  return CudaBuild::kWith;
}

std::string why_no_gpu() {
  if (cuda_usable()) return {};
  int driver_version = 0;
  if (cudaDriverGetVersion(&driver_version) != cudaSuccess || driver_version == 0) {
    return "this machine has no CUDA driver";
  }
  int num_gpus = 0;
  const cudaError_t status = cudaGetDeviceCount(&num_gpus);
  if (status != cudaSuccess) {
    cudaGetLastError();
    return std::string("CUDA sees none (") + cudaGetErrorString(status) + ")";
  }
  return num_gpus == 0 ? "CUDA sees none" : "none here is new enough";
}

CudaInspection inspect_cuda() {
  CudaInspection inspection = in_words(probe_machine());
  std::string found;
  std::string why_not;
  try {
    found = vendor_gemm_library();
  } catch (const Error& error) {
    why_not = error.got();
  }
  inspection.findings.push_back(vendor_library_in_words(found, why_not));
  return inspection;
}

HopReport measure_cuda_hops(const BenchSyncOptions& options) {
  const std::int64_t sms = open_cuda_device()->limits().num_sms;
  return in_words(measure_hops({.num_nodes = options.hops,
                                .repeats = options.repeat,
                                .num_blocks = std::min(sms, kHopBlocks)}));
}

CudaReadRate measure_cuda_read_rate() {
  const ReadRateReport report = measure_read_rate();
  CudaReadRate rate{.bytes = report.bytes, .rows = {}, .best = report.best()};
  for (const ReadRateResult& result : report.results) {
    rate.rows.push_back({result.blocks, result.bytes_per_second});
  }
  return rate;
}

double seconds_on_gpu(Program& program, const std::function<void()>& enqueue) {
  return RunTimer().seconds(program, enqueue);
}

}  // namespace tileweave::cli
