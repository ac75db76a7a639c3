// `tileweave bench sync`: what one hop of a chain costs, for every kind of edge.
//
// Throws Error when the device cannot be used.
#pragma once

#include <cstdint>
#include <ostream>
#include <string>

#include "cli/hop_report.h"
#include "cli/output_form.h"

namespace tileweave::cli {

struct BenchSyncOptions {
  std::string device = "cuda";  // "cpu" or "cuda"
  std::int32_t repeat = 20;     // measurements of every arm, in turn
  std::int32_t hops = 256;      // kernels of a chain
  OutputForm form = OutputForm::kTable;
};

inline constexpr std::int32_t kMostRepeats = 100'000;

/// What --quick measures, unless --repeat says otherwise.
inline constexpr std::int32_t kQuickRepeats = 3;
inline constexpr std::int32_t kQuickHops = 32;

void bench_sync(const BenchSyncOptions& options, std::ostream& out);

/// The chain on the emulated device, `throughput`.
HopReport measure_cpu_hops(const BenchSyncOptions& options);

}  // namespace tileweave::cli
