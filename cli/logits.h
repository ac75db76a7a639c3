// `tileweave logits`: logits of every position of a sequence, as a safetensors file.
#pragma once

#include <cstdint>
#include <ostream>
#include <string>
#include <vector>

#include "cli/model_choice.h"
#include "cli/output_form.h"

namespace tileweave::cli {

struct LogitsOptions {
  ModelChoice choice;
  std::vector<std::int32_t> ids;  // or, where there are none:
  std::string prompt;             // text, special tokens added
  std::string out;                // one F32 tensor `logits`, (tokens, vocabulary)
  OutputForm form = OutputForm::kTable;
};

int write_logits(const LogitsOptions& options, std::ostream& out, std::ostream& err);

}  // namespace tileweave::cli
