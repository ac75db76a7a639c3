// What runtime/cuda measured, in words: pure functions, tested without a GPU.
#pragma once

#include <string>

#include "cli/cuda_machine.h"
#include "cli/hop_report.h"
#include "tileweave/runtime/cuda/bench_sync.h"
#include "tileweave/runtime/cuda/probe.h"

namespace tileweave::cli {

CudaInspection in_words(const MachineReport& report);
/// Of the library that vendor products need: its name and version, or why there is none.
Finding vendor_library_in_words(const std::string& found, const std::string& why_not);
HopReport in_words(const HopBenchReport& measured);

}  // namespace tileweave::cli
