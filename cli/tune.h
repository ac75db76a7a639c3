// `tileweave tune`: measures what decode steps of a model run fastest with on this device, prints
// the arms and keeps the fastest for every verb that runs the model (models/plan_cache.h).
//
// On a GPU the products are tuned alone first (tune/tune_config.h); their cuts make one arm. Throws
// Error when the defaults themselves do not run.
#pragma once

#include <cstdint>
#include <ostream>
#include <vector>

#include "cli/model_choice.h"
#include "cli/output_form.h"

namespace tileweave::cli {

/// Whether products are tuned alone; again: also those that the cache has an answer for.
enum class ProductTuning : std::uint8_t { kYes, kAgain, kNo };

struct TuneVerbOptions {
  ModelChoice choice;
  std::vector<std::int64_t> batches = {1};
  std::vector<std::int64_t> contexts = {128};  // tokens before the first measured step
  std::int64_t steps = 32;                     // of one measurement
  std::int64_t repeat = 5;                     // measurements of each arm
  std::int64_t budget = 10;                    // seconds for one product
  ProductTuning products = ProductTuning::kYes;
  OutputForm form = OutputForm::kTable;
};

int tune_model(const TuneVerbOptions& options, std::ostream& out, std::ostream& err);

}  // namespace tileweave::cli
