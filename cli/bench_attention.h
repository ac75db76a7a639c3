// `tileweave bench attention`: decode attention in chains of dependent nodes, and alone with many
// cold keys against a bare read of the same bytes, in one run on a GPU. Arms alternate; medians.
//
// In a chain a small kernel makes the next row of qkv from what attention left; a chain of such
// kernels alone is the arm to subtract.
#pragma once

#include <cstdint>
#include <ostream>
#include <string>

#include "cli/output_form.h"

namespace tileweave::cli {

struct BenchAttentionOptions {
  std::int64_t repeat = 11;  // measurements of each arm
  std::string json_file = {};
  OutputForm form = OutputForm::kTable;
};

/// Throws Error where there is no GPU that can be used.
int bench_attention(const BenchAttentionOptions& options, std::ostream& out, std::ostream& err);

}  // namespace tileweave::cli
