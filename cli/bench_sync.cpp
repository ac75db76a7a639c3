#include "cli/bench_sync.h"

#include "cli/cuda_machine.h"
#include "tileweave/core/error.h"

namespace tileweave::cli {

void bench_sync(const BenchSyncOptions& options, std::ostream& out) {
  HopReport report;
  if (options.device == "cpu") {
    report = measure_cpu_hops(options);
  } else {
    const std::string reason = why_no_gpu();
    if (!reason.empty()) {
      throw Error("measure hops on a GPU", reason + "; --device cpu measures the emulated device");
    }
    report = measure_cuda_hops(options);
  }
  out << (options.form == OutputForm::kJson ? to_text(hop_json(report)) : hop_table(report));
}

}  // namespace tileweave::cli
