// `tileweave doctor`: what this machine can do for plans, and what to know about it.
//
// Inspects the emulated device and the GPU, or one of them. That there is no GPU is a finding,
// unless it was asked for: then it throws Error. On a GPU it measures whether the launch order is
// kept and stores that finding (runtime/launch_order_record.h); where that fails it says so on
// `err` and goes on. Throws Error when the emulated device fails its self-check (the findings then
// stand on `err`).
#pragma once

#include <ostream>
#include <string>

#include "cli/output_form.h"
#include "tileweave/runtime/launch_order_record.h"

namespace tileweave::cli {

struct DoctorOptions {
  std::string device = {};        // "cpu", "cuda"; empty: both
  std::string cache_folder = {};  // for the launch-order finding; empty: the user's cache
  OutputForm form = OutputForm::kTable;
};

void doctor(const DoctorOptions& options, std::ostream& out, std::ostream& err);

/// Stores the finding; returns the file, or nothing after a warning on `err`.
std::string keep_launch_order(const LaunchOrderRecord& record, const std::string& cache_folder,
                              std::ostream& err);

}  // namespace tileweave::cli
