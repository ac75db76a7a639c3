// The machine probe finishes, tells consistent numbers, and prints them for the record.
#include <cstdio>

#include "tests/runtime/cuda/watchdog.h"
#include "tileweave/runtime/cuda/probe.h"

namespace tileweave {
namespace {

class Probe : public GpuTest {};

TEST_F(Probe, FindsOutWhatTheMachineDoes) {
  const MachineReport report = probe_machine();
  std::printf("%s, driver %s, CUDA %d (driver), %d (runtime), sm_%d, %zu of %zu MiB free\n",
              report.limits.name.c_str(), report.driver.c_str(), report.driver_version,
              report.runtime_version, report.compute_capability, report.free_bytes >> 20,
              report.memory_bytes >> 20);
  std::printf("queues: told %d, independent streams %d\n", report.limits.hardware_queues,
              report.independent_streams);
  EXPECT_GE(report.independent_streams, 2);
  for (const MachineCheck& check : report.checks) {
    std::printf("%-28s %-9s %s\n", check.name.c_str(), name_of(check.works), check.detail.c_str());
    EXPECT_FALSE(check.name.empty());
    EXPECT_FALSE(check.detail.empty());
  }
  ASSERT_FALSE(report.launch_order.empty());
  for (const LaunchOrderFinding& found : report.launch_order) {
    std::printf(
        "%-33s %d streams, %s: %lld of %lld blocks early in %lld of %lld launches, by at "
        "most %lld ns; %lld launches overlapped\n",
        found.chain.c_str(), found.num_streams, found.submit.c_str(),
        static_cast<long long>(found.early_blocks), static_cast<long long>(found.blocks),
        static_cast<long long>(found.early_launches), static_cast<long long>(found.launches),
        static_cast<long long>(found.longest_lead_ns),
        static_cast<long long>(found.overlapped_launches));
    EXPECT_GE(found.launches, 1000);
    EXPECT_LE(found.early_launches, found.early_blocks);
    EXPECT_LE(found.early_blocks, found.blocks);
  }
}

}  // namespace
}  // namespace tileweave
