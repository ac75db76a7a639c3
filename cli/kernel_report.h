// KernelReport: what the benchmarks of single kernels measured, as a table and as JSON.
#pragma once

#include <cstdint>
#include <ostream>
#include <string>
#include <vector>

#include "cli/output_form.h"

namespace tileweave::cli {

/// One arm of one case.
struct KernelRow {
  std::string name;  // of the case: "square 34 MB"
  std::string kind;  // "alone", "chain"
  std::int64_t rows = 1;
  std::int64_t context = 0;  // keys; 0: no such thing
  double mb = 0;             // that a node reads
  std::string arm;
  double us = 0;      // per node
  double beside = 0;  // per node, of what it is held against
};

struct KernelReport {
  std::string verb;     // "bench gemm"
  std::string beside;   // what `beside` is of: "bare read"
  std::string machine;  // and its SMs
  std::int64_t sms = 0;
  double streaming_rate = 0;  // bytes per second
  std::int64_t repeat = 0;
  std::vector<KernelRow> rows = {};
};

std::string kernel_table(const KernelReport& report);
Json kernel_json(const KernelReport& report);

/// To `out` in the form asked for, and to `json_file` where it is not empty.
void write_report(const KernelReport& report, OutputForm form, const std::string& json_file,
                  std::ostream& out);

}  // namespace tileweave::cli
