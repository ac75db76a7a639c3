// `tileweave check`: verifies the plan of one step of a model and shows the verdict: every edge
// with its kind, start rule and ground. Reads the configuration, no weights.
#pragma once

#include <cstdint>
#include <ostream>

#include "cli/model_choice.h"
#include "cli/output_form.h"

namespace tileweave::cli {

struct CheckOptions {
  ModelChoice choice;
  std::int64_t batch = 1;  // sequences, one decode token each
  std::int64_t rows = 0;   // instead: tokens of one step, prompt rows included
  OutputForm form = OutputForm::kTable;
};

int check(const CheckOptions& options, std::ostream& out, std::ostream& err);

}  // namespace tileweave::cli
