#include "tileweave/runtime/cuda/probe.h"

#include <algorithm>

#include "tileweave/core/error.h"
#include "tileweave/runtime/cuda/cuda_status.cuh"
#include "tileweave/runtime/cuda/device_limits.cuh"
#include "tileweave/runtime/cuda/probe_parts.cuh"

namespace tileweave {

bool MachineReport::launch_order_kept() const {
  return !launch_order.empty() &&
         std::all_of(launch_order.begin(), launch_order.end(),
                     [](const LaunchOrderFinding& finding) { return finding.kept(); });
}

MachineCheck try_check(const std::string& name, const std::function<MachineCheck()>& check) {
  MachineCheck result;
  try {
    result = check();
  } catch (const Error& error) {
    result = {.name = name, .works = Works::kNo, .detail = error.what()};
  }
  result.name = name;
  return result;
}

MachineReport probe_machine(const ProbeOptions& options) {
  CudaDevice device(options.device);
  const CurrentDevice current(device.index());
  MachineReport report;
  report.limits = device.limits();
  int value = 0;
  check_cuda(cudaDriverGetVersion(&value), "ask for the driver's version");
  report.driver_version = value;
  report.driver = device.driver();
  check_cuda(cudaRuntimeGetVersion(&value), "ask for the runtime's version");
  report.runtime_version = value;
  report.compute_capability = compute_capability(device.index());
  check_cuda(cudaMemGetInfo(&report.free_bytes, &report.memory_bytes), "ask for free memory");
  check_cuda(cudaDeviceGetAttribute(&value, cudaDevAttrL2CacheSize, device.index()),
             "ask for the size of the L2");
  report.l2_bytes = static_cast<std::size_t>(value);

  report.independent_streams = count_independent_streams(device);
  report.checks = {
      try_check("programmatic launch", [&] { return probe_programmatic_launch(device); }),
      try_check("memory operations", [&] { return probe_memory_operations(device); }),
      try_check("memory operations in graphs",
                [&] { return probe_memory_operations_in_graph(device); }),
      try_check("green contexts", [&] { return probe_green_contexts(device); }),
      try_check("host memory mapped", [&] { return probe_mapped_memory(device); }),
      try_check("cooperative launch", [&] { return probe_cooperative_launch(device); }),
      try_check("peer access", [&] { return probe_peer_access(device); }),
  };
  report.launch_order = probe_launch_order(device, options.launches);
  return report;
}

}  // namespace tileweave
