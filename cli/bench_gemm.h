// `tileweave bench gemm`: decode products alone and in dependent chains, against a bare read of the
// same bytes, in one run on a GPU. Every node has weights of its own, so that they are cold; arms
// alternate; medians.
#pragma once

#include <cstdint>
#include <ostream>
#include <string>
#include <vector>

#include "cli/output_form.h"

namespace tileweave::cli {

struct BenchGemmOptions {
  std::vector<std::int64_t> rows = {1, 8, 16};
  std::int64_t repeat = 11;  // measurements of each arm
  std::string json_file = {};
  OutputForm form = OutputForm::kTable;
};

inline constexpr std::int64_t kMostGemmRows = 64;

/// Throws Error where there is no GPU that can be used.
int bench_gemm(const BenchGemmOptions& options, std::ostream& out, std::ostream& err);

}  // namespace tileweave::cli
