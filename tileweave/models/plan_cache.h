// The plan cache: knobs of decode steps that `tune_plan` measured fastest, kept per model,
// granularity, rows, tokens and machine, and what a step runs with when nobody says otherwise.
//
// An entry that is damaged, about something else or makes no plan is a miss (tune/tune_cache.h). A
// shape that was not measured takes the defaults; nothing is measured here.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "tileweave/models/checkpoint/config.h"
#include "tileweave/models/numeric_form.h"
#include "tileweave/models/step_knobs.h"
#include "tileweave/models/step_shape.h"
#include "tileweave/runtime/device.h"
#include "tileweave/tune/tune_cache.h"

namespace tileweave {

/// Where knobs came from.
enum class KnobsSource : std::uint8_t { kDefault, kCached, kGiven };

constexpr const char* name_of(KnobsSource source) {
  switch (source) {
    case KnobsSource::kDefault:
      return "default";
    case KnobsSource::kCached:
      return "cached";
    case KnobsSource::kGiven:
      return "file";
  }
  return "?";
}

struct ChosenKnobs {
  StepKnobs knobs = {};
  KnobsSource source = KnobsSource::kDefault;
  std::int64_t tokens = 0;  // bucket that cached ones were measured for
};

/// Decode steps that one entry is about.
struct PlanQuestion {
  const ModelConfig* config = nullptr;
  Granularity granularity = Granularity::kOps;
  std::int64_t rows = 1;    // a bucket
  std::int64_t tokens = 1;  // that a sequence may have; the key holds their bucket
  WideProducts wide_products = WideProducts::kOwn;  // matter where rows are more than decoding's
};

/// What was measured.
struct PlanEntry {
  std::string arm;
  StepKnobs knobs = {};
  double seconds_per_step = 0;
  double default_seconds_per_step = 0;
  std::int64_t tokens = 0;  // bucket that find_plan() found it under
};

/// The entry for these rows, of the nearest bucket of tokens; attention's splits and buffers are
/// those of the exact bucket alone.
std::optional<PlanEntry> find_plan(const Device& device, const PlanQuestion& question,
                                   TuneCache& cache);
/// Returns the file; empty, and noted, where it cannot be written.
std::string keep_plan(const Device& device, const PlanQuestion& question, const PlanEntry& entry,
                      TuneCache& cache);
/// For an entry that find_plan() gave and that makes no plan.
void refuse_plan(const Device& device, const PlanQuestion& question, const std::string& why,
                 TuneCache& cache);

/// What a step runs with unless it is given knobs: those measured for it (decode steps, where there
/// is a cache), or the usual ones.
ChosenKnobs choose_knobs(const Device& device, const PlanQuestion& question, const StepShape& shape,
                         TuneCache* cache);
StepKnobs usual_knobs(const Device& device, const ModelConfig& config, const StepShape& shape);

}  // namespace tileweave
