// tune_plan: which of some knobs a loaded model's decode steps run fastest with, measured.
//
// Every arm is a DecodeLoop of its own over the same weights and cache. The first is the default;
// arms take turns, each running the same steps from the same sequences; medians decide, and the
// default stays unless another arm is faster by more than `least_gain`. No knob may change a bit:
// an arm whose tokens or last logits differ from the default's is refused. An arm that cannot be
// made or fails is passed over; only the default's failure throws Error. The decoder needs room for
// rows sequences of context + steps + 1 tokens, and must be at rest.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <vector>

#include "tileweave/models/decoder.h"
#include "tileweave/tune/tune_skinny_gemm.h"

namespace tileweave {

struct PlanArm {
  std::string name;
  StepKnobs knobs = {};
  double seconds = 0;        // per step, the median
  std::string failure = {};  // why there is no time; empty: there is one
};

struct PlanTuneOptions {
  std::int64_t rows = 1;       // sequences
  std::int64_t context = 128;  // tokens of each before the first step
  std::int64_t steps = 32;     // of one measurement
  std::int64_t repeat = 5;     // measurements of each arm
  double least_gain = 0.01;
  std::function<void(std::size_t done, std::size_t in_all)> progress = {};
};

struct PlanTuning {
  std::vector<PlanArm> arms;  // as given
  std::size_t chosen = 0;     // of these
};

PlanTuning tune_plan(Decoder& decoder, std::vector<PlanArm> arms, const PlanTuneOptions& options);

/// Tokens that tune_plan's sequences may have.
constexpr std::int64_t tokens_of(const PlanTuneOptions& options) {
  return options.context + options.steps + 1;
}

/// What is worth measuring on the decoder's device, the default first.
std::vector<PlanArm> plan_arms(Decoder& decoder, const StepShape& shape);

/// The products of a decode step of packed weights; none where weights are row-major or rows so
/// many that other kernels multiply.
std::map<StepOp, SkinnyGemmProblem> step_products(Decoder& decoder, std::int64_t rows);
/// Those cuts in the knobs.
StepKnobs with_cut(StepKnobs knobs, StepOp op, const SkinnyGemmKnobs& cut);

}  // namespace tileweave
