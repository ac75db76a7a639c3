// What the command knows of GPUs; the seam between builds with CUDA and without.
//
// The verbs call these. cuda_machine.cu implements them over tileweave/runtime/cuda,
// cuda_machine_without_cuda.cpp where CUDA is not built: then why_no_gpu() says so and the others
// throw Error.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "cli/bench_sync.h"
#include "cli/findings.h"
#include "cli/hop_report.h"
#include "tileweave/runtime/launch_order_record.h"
#include "tileweave/runtime/program.h"

namespace tileweave::cli {

enum class CudaBuild : std::uint8_t { kWithout, kWith };

CudaBuild cuda_build() noexcept;

/// Half a sentence; empty when a GPU can be used.
std::string why_no_gpu();

struct CudaInspection {
  std::vector<Finding> findings;
  LaunchOrderRecord launch_order;
};

/// Measures, some seconds long. Throws Error naming the step that failed.
CudaInspection inspect_cuda();

/// All edge kinds in one CUDA graph each, 132 blocks of 256 threads or one a SM where there are
/// fewer.
HopReport measure_cuda_hops(const BenchSyncOptions& options);

/// What a bare read reaches, for several numbers of blocks.
struct CudaReadRate {
  struct Row {
    std::int64_t blocks = 0;
    double bytes_per_second = 0;
  };
  std::size_t bytes = 0;  // of one read
  std::vector<Row> rows;
  double best = 0;  // bytes per second
};

CudaReadRate measure_cuda_read_rate();

/// Seconds on the GPU of what `enqueue` puts behind the program's runs so far.
double seconds_on_gpu(Program& program, const std::function<void()>& enqueue);

}  // namespace tileweave::cli
