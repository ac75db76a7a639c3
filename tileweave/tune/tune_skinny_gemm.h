// skinny_gemm_task: how a product of few rows is tuned alone.
//
// A recorded Program runs the product as a chain, each node adding to the result of the one before
// (so that it depends on it, as in a model), over several weights by turns that together are larger
// than the L2. Every cut must give the result of the default's to the bit; one that does not is
// refused. The kernels must be on the device (add_skinny_gemm), which must outlive the task.
#pragma once

#include <cstdint>

#include "tileweave/kernels/gemm/skinny_gemm.h"
#include "tileweave/tune/tune_config.h"

namespace tileweave {

struct SkinnyGemmProblem {
  std::int64_t m = 1, n = 0, k = 0;
  bool gated = false;  // as SkinnyGemmOptions
  bool norm = false;   // in front, its weights bf16
  SkinnyKernel kernel = SkinnyKernel::kBulk;
};

struct SkinnyGemmTuning {
  std::int64_t cold_bytes = 0;       // of all weights; 0: four times the L2
  double seconds_per_sample = 4e-3;  // that one measurement takes at least
};

TuneTask skinny_gemm_task(Device& device, const SkinnyGemmProblem& problem,
                          const SkinnyGemmTuning& tuning = {});

/// The cut's knobs as tuned.
SkinnyGemmKnobs skinny_gemm_knobs(const TunedConfig& tuned);

}  // namespace tileweave
