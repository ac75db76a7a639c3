// ModelChoice: which model a verb uses and how it runs, as asked for on the command line.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "tileweave/models/numeric_form.h"
#include "tileweave/models/step_shape.h"
#include "tileweave/runtime/run_options.h"

namespace tileweave::cli {

/// Whether what `tileweave tune` measured is used.
enum class TunedUse : std::uint8_t { kYes, kNo };

struct ModelChoice {
  std::string model;   // a directory, or org/name in the Hugging Face cache
  std::string device;  // "cpu", "cuda"; empty: cuda where the model can run on it, else cpu
  Mode mode = Mode::kOverlap;
  Submit submit = Submit::kGraph;
  std::optional<Granularity> granularity = std::nullopt;  // nothing: the device's usual one
  std::int32_t num_streams = 0;                           // 0: as the knobs say
  std::string knobs = {};  // file of StepKnobs; empty: what was tuned, or the device's defaults
  std::string cache = {};  // folder of what was tuned; empty: the user's
  TunedUse tuned = TunedUse::kYes;
  WideProducts wide_products = WideProducts::kOwn;
};

constexpr const char* name_of(Mode mode) {
  return mode == Mode::kSerial ? "serial" : "overlap";
}
constexpr const char* name_of(Submit submit) {
  return submit == Submit::kEager ? "eager" : "graph";
}

}  // namespace tileweave::cli
