// What runtime/cuda measured, in words: pure functions, tested without a GPU.
#pragma once

#include "cli/cuda_machine.h"
#include "cli/hop_report.h"
#include "tileweave/runtime/cuda/bench_sync.h"
#include "tileweave/runtime/cuda/probe.h"

namespace tileweave::cli {

CudaInspection in_words(const MachineReport& report);
HopReport in_words(const HopBenchReport& measured);

}  // namespace tileweave::cli
