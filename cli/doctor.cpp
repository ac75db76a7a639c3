#include "cli/doctor.h"

#include <fmt/format.h>

#include <optional>
#include <vector>

#include "cli/cpu_machine.h"
#include "cli/cuda_machine.h"
#include "cli/findings.h"
#include "cli/interrupt.h"
#include "cli/version.h"
#include "tileweave/core/cache_file.h"
#include "tileweave/core/error.h"
#include "tileweave/runtime/launch_order_record.h"
#include "tileweave/tune/tune_cache.h"

namespace tileweave::cli {
namespace {

/// What was stored about the launch order, for the report.
struct StoredOrder {
  LaunchOrderRecord record;
  std::string path;  // empty: not stored
};

Json to_json(const LaunchOrderCount& count) {
  return {{"launches", count.launches}, {"inversions", count.inversions}};
}

Json to_json(const std::optional<StoredOrder>& order) {
  if (!order) return nullptr;
  return {{"gpu", order->record.gpu},
          {"driver", order->record.driver},
          {"equal", to_json(order->record.equal)},
          {"unequal", to_json(order->record.unequal)},
          {"trusted", launch_order_of(order->record) == LaunchOrder::kTrusted},
          {"stored_in", order->path.empty() ? Json(nullptr) : Json(order->path)}};
}

Json to_json(const TuneCache& tuned) {
  return {{"folder", tuned.folder()}, {"entries", tuned.count()}};
}

Json report_json(const std::vector<Finding>& findings, const std::optional<StoredOrder>& order,
                 const TuneCache& tuned) {
  return {{"verb", "doctor"},
          {"version", kVersion},
          {"findings", findings_json(findings)},
          {"launch_order", to_json(order)},
          {"tuned", to_json(tuned)}};
}

}  // namespace

std::string keep_launch_order(const LaunchOrderRecord& record, const std::string& cache_folder,
                              std::ostream& err) {
  std::string path = launch_order_path(cache_folder);
  const UninterruptedSection section;
  try {
    store_launch_order(record, path);
    return path;
  } catch (const Error& error) {
    err << fmt::format("tileweave doctor: warning: the launch order found is not kept; {}\n",
                       error.what());
    return {};
  }
}

void doctor(const DoctorOptions& options, std::ostream& out, std::ostream& err) {
  std::vector<Finding> findings;
  if (options.device != "cuda") findings = inspect_cpu();
  std::optional<StoredOrder> order;
  if (options.device != "cpu") {
    const std::string reason = why_no_gpu();
    if (reason.empty()) {
      CudaInspection cuda = inspect_cuda();
      findings.insert(findings.end(), cuda.findings.begin(), cuda.findings.end());
      order = StoredOrder{cuda.launch_order,
                          keep_launch_order(cuda.launch_order, options.cache_folder, err)};
    } else if (options.device == "cuda") {
      throw Error("inspect the GPU", reason);
    } else {
      findings.push_back({"cuda", "GPU", FindingStatus::kAttention, "none: " + reason,
                          "plans run on the emulated device (--device cpu)"});
    }
  }

  for (const Finding& f : findings) {
    if (f.status != FindingStatus::kFailed) continue;
    err << (options.form == OutputForm::kJson ? "" : findings_table(findings));
    throw Error("self-check of " + f.name, "a pass", f.found);
  }
  const TuneCache tuned(cache_folder(options.cache_folder));
  if (options.form == OutputForm::kJson) {
    out << to_text(report_json(findings, order, tuned));
    return;
  }
  out << findings_table(findings);
  if (order && !order->path.empty()) {
    out << fmt::format("the finding about the launch order is kept in {}\n", order->path);
  }
  if (const std::int64_t entries = tuned.count(); entries > 0) {
    out << fmt::format("{} {} of `tileweave tune` in {}\n", entries,
                       entries == 1 ? "entry" : "entries", tuned.folder());
  }
}

}  // namespace tileweave::cli
