// `tileweave logits`: logits of every position of sequences, as a safetensors file.
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
  std::vector<std::int32_t> ids;    // or, where there are none:
  std::string ids_file;             // a sequence per line, or:
  std::string prompt;               // text, special tokens added
  std::int64_t side_by_side = 0;    // 0: each sequence as a prompt; else so many, as decoding does
  std::int64_t rows_per_step = 64;  // of a prompt at most; their logits are held in memory
  std::string out;                  // one F32 tensor `logits`, (tokens, vocabulary)
  OutputForm form = OutputForm::kTable;
};

/// Holds the logits of one step at a time. Ctrl-C leaves no file.
int write_logits(const LogitsOptions& options, std::ostream& out, std::ostream& err);

}  // namespace tileweave::cli
