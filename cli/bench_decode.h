// `tileweave bench decode`: tokens per second of a model, `serial` against `overlap`, in turn.
#pragma once

#include <cstdint>
#include <ostream>

#include "cli/model_choice.h"
#include "cli/output_form.h"

namespace tileweave::cli {

struct BenchDecodeOptions {
  ModelChoice choice;  // its mode is not used: both are measured
  std::int64_t batch = 1;
  std::int64_t context = 128;    // tokens before the first measured step
  std::int64_t new_tokens = 16;  // per measurement
  std::int64_t repeat = 10;      // measurements of each arm
  OutputForm form = OutputForm::kTable;
};

int bench_decode(const BenchDecodeOptions& options, std::ostream& out, std::ostream& err);

}  // namespace tileweave::cli
