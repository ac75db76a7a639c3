// ModelChoice: which model a verb uses and how it runs, as asked for on the command line.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "tileweave/models/step_shape.h"
#include "tileweave/runtime/run_options.h"

namespace tileweave::cli {

struct ModelChoice {
  std::string model;   // a directory, or org/name in the Hugging Face cache
  std::string device;  // "cpu", "cuda"; empty: cuda where the model can run on it, else cpu
  Mode mode = Mode::kOverlap;
  Submit submit = Submit::kGraph;
  std::optional<Granularity> granularity = std::nullopt;  // nothing: the device's usual one
  std::int32_t num_streams = 3;
  std::string knobs = {};  // file of StepKnobs; empty: the device's defaults
};

constexpr const char* name_of(Mode mode) {
  return mode == Mode::kSerial ? "serial" : "overlap";
}
constexpr const char* name_of(Submit submit) {
  return submit == Submit::kEager ? "eager" : "graph";
}

}  // namespace tileweave::cli
