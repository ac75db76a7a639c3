// `tileweave trace`: one step of a model as a timeline, and where its time was exposed.
#pragma once

#include <cstdint>
#include <ostream>
#include <string>

#include "cli/model_choice.h"
#include "cli/output_form.h"

namespace tileweave::cli {

struct TraceOptions {
  ModelChoice choice;
  std::int64_t batch = 1;
  std::int64_t context = 32;  // tokens before the step
  std::string timeline = "timeline.html";
  std::string trace = "trace.json";
  OutputForm form = OutputForm::kTable;
};

int trace_model(const TraceOptions& options, std::ostream& out, std::ostream& err);

}  // namespace tileweave::cli
