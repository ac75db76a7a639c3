// `tileweave bench prefill`: how long a prompt takes, on either device.
#pragma once

#include <cstdint>
#include <ostream>
#include <string>
#include <vector>

#include "cli/model_choice.h"
#include "cli/output_form.h"

namespace tileweave::cli {

struct BenchPrefillOptions {
  ModelChoice choice;
  std::vector<std::int64_t> tokens = {512, 2048};  // of a prompt
  std::int64_t repeat = 5;                         // measurements of each
  std::int64_t rows_per_step = 0;                  // at most; 0: as is usual on the device
  std::string json_file = {};
  OutputForm form = OutputForm::kTable;
};

int bench_prefill(const BenchPrefillOptions& options, std::ostream& out, std::ostream& err);

}  // namespace tileweave::cli
