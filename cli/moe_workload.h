// `tileweave moe workload`: a load of experts, described, and written as counts or as a route.
#pragma once

#include <ostream>
#include <string>

#include "cli/moe_source.h"
#include "cli/output_form.h"

namespace tileweave::cli {

struct MoeWorkloadOptions {
  MoeSource source;
  bool balanced_twin = false;  // describe and write the twin instead
  bool list = false;           // the 147 configurations instead
  std::string counts_out;      // CSV
  std::string trace_out;       // JSONL
  OutputForm form = OutputForm::kTable;
};

int moe_workload(const MoeWorkloadOptions& options, std::ostream& out, std::ostream& err);

}  // namespace tileweave::cli
