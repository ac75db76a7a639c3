#include "cli/cuda_words.h"

#include <fmt/format.h>

#include <algorithm>
#include <string>
#include <vector>

#include "tileweave/core/format.h"

namespace tileweave::cli {
namespace {

constexpr std::int32_t kPortable = 80;  // least compute capability of the portable kernels
constexpr std::int32_t kFirstClass = 90;
constexpr std::int32_t kNeededStreams = 2;

Finding finding(std::string name, FindingStatus status, std::string found, std::string means = {}) {
  return {"cuda", std::move(name), status, std::move(found), std::move(means)};
}

FindingStatus ok_if(bool holds) {
  return holds ? FindingStatus::kOk : FindingStatus::kAttention;
}

/// "13.0" of 13000.
std::string cuda_version(std::int32_t version) {
  return fmt::format("{}.{}", version / 1000, version % 1000 / 10);
}

Finding describe_gpu(const MachineReport& report) {
  const std::int32_t capability = report.compute_capability;
  const std::string found = fmt::format(
      "{}, compute capability {}.{}, {} SMs, {} of {} free, L2 {}", report.limits.name,
      capability / 10, capability % 10, report.limits.num_sms, human_bytes(report.free_bytes),
      human_bytes(report.memory_bytes), human_bytes(report.l2_bytes));
  if (capability >= kFirstClass) return finding("GPU", FindingStatus::kOk, found);
  return finding("GPU", FindingStatus::kAttention, found,
                 capability >= kPortable ? "the portable kernels alone run here"
                                         : "no kernel of the library runs here");
}

Finding describe_driver(const MachineReport& report) {
  const bool holds = report.driver_version >= report.runtime_version;
  return finding("driver", ok_if(holds),
                 fmt::format("{}, for CUDA {}", report.driver, cuda_version(report.driver_version)),
                 holds ? "" : "older than the CUDA runtime of this build: update the driver");
}

Finding describe_runtime(const MachineReport& report) {
  return finding("CUDA runtime", FindingStatus::kOk, cuda_version(report.runtime_version));
}

Finding describe_shared_memory(const DeviceLimits& limits) {
  return finding("shared memory", FindingStatus::kOk,
                 fmt::format("{} a block, {} an SM",
                             human_bytes(static_cast<std::uint64_t>(limits.shared_bytes_per_block)),
                             human_bytes(static_cast<std::uint64_t>(limits.shared_bytes_per_sm))));
}

Finding describe_queues(const MachineReport& report) {
  const std::int32_t seen = report.independent_streams;
  const std::int32_t queues = report.limits.hardware_queues;
  return finding(
      "queues", ok_if(seen >= kNeededStreams),
      fmt::format("{} streams go on while the others wait ({} queues set)", seen, queues),
      seen >= kNeededStreams ? fmt::format("plans may use up to {} streams", std::min(seen, queues))
                             : "kernels cannot overlap here: use --mode serial");
}

struct CheckMeaning {
  const char* name;
  const char* where_it_works;
  const char* where_not;
};

constexpr CheckMeaning kMeanings[] = {
    {"programmatic launch", "programmatic edges overlap prologues",
     "programmatic edges gain nothing: use full or tile edges"},
    {"memory operations", "a stream may wait for a semaphore word without a kernel",
     "a stream cannot wait for a semaphore word: wait kernels do"},
    {"memory operations in graphs", "the same inside recorded plans",
     "not inside recorded plans: wait kernels do"},
    {"green contexts", "plans may run on a part of the SMs", "plans run on the whole GPU alone"},
    {"host memory mapped", "hang reports are read while the GPU still runs",
     "hang reports are lost: do not run in overlap"},
    {"cooperative launch", "", ""},
    {"peer access", "ranks on several GPUs reach each other's tensors",
     "one rank a process and a GPU, without tensors of others"},
};

Finding describe_check(const MachineCheck& check) {
  const bool works = check.works == Works::kYes;
  // A single GPU has no peer: nothing is wrong with that.
  const bool calm = works || (check.name == "peer access" && check.works == Works::kNotThere);
  std::string means;
  for (const CheckMeaning& m : kMeanings) {
    if (check.name == m.name) means = works ? m.where_it_works : m.where_not;
  }
  return finding(check.name, ok_if(calm), fmt::format("{}: {}", name_of(check.works), check.detail),
                 means);
}

/// Chains of one name, whatever their submission and number of streams.
std::vector<LaunchOrderFinding> by_chain(const std::vector<LaunchOrderFinding>& all) {
  std::vector<LaunchOrderFinding> sums;
  for (const LaunchOrderFinding& f : all) {
    const auto sum = std::find_if(sums.begin(), sums.end(),
                                  [&f](const LaunchOrderFinding& s) { return s.chain == f.chain; });
    if (sum == sums.end()) {
      sums.push_back(f);
      continue;
    }
    sum->launches += f.launches;
    sum->blocks += f.blocks;
    sum->early_blocks += f.early_blocks;
    sum->early_launches += f.early_launches;
    sum->overlapped_launches += f.overlapped_launches;
    sum->longest_lead_ns = std::max(sum->longest_lead_ns, f.longest_lead_ns);
  }
  return sums;
}

Finding describe_chain(const LaunchOrderFinding& f) {
  std::string found = fmt::format(
      "{}: {} of {} launches ({} of {} blocks) began before their predecessor's last block, {} "
      "launches overlapped it",
      f.chain, f.early_launches, f.launches, f.early_blocks, f.blocks, f.overlapped_launches);
  if (!f.kept()) found += fmt::format(", up to {} ns early", f.longest_lead_ns);
  return finding("launch order", ok_if(f.kept()), found);
}

LaunchOrderRecord record_of(const MachineReport& report) {
  LaunchOrderRecord record = {.gpu = report.limits.name, .driver = report.driver};
  for (const LaunchOrderFinding& f : report.launch_order) {
    LaunchOrderCount& count = f.sizes == BlockSizes::kEqual ? record.equal : record.unequal;
    count.launches += f.launches;
    count.inversions += f.early_launches;
  }
  return record;
}

Finding describe_trust(const LaunchOrderRecord& record) {
  const bool trusted = launch_order_of(record) == LaunchOrder::kTrusted;
  return finding("launch order kept", ok_if(trusted),
                 fmt::format("{} inversions in {} launches of equal blocks, {} in {} of unequal",
                             record.equal.inversions, record.equal.launches,
                             record.unequal.inversions, record.unequal.launches),
                 trusted
                     ? "launch-completion edges may be trusted (ground ordered)"
                     : "launch-completion edges stay untrusted: plans need capacity or counted");
}

}  // namespace

CudaInspection in_words(const MachineReport& report) {
  CudaInspection result;
  result.launch_order = record_of(report);
  result.findings = {describe_gpu(report), describe_driver(report), describe_runtime(report),
                     describe_shared_memory(report.limits), describe_queues(report)};
  for (const MachineCheck& check : report.checks) {
    result.findings.push_back(describe_check(check));
  }
  for (const LaunchOrderFinding& chain : by_chain(report.launch_order)) {
    result.findings.push_back(describe_chain(chain));
  }
  result.findings.push_back(describe_trust(result.launch_order));
  return result;
}

Finding vendor_library_in_words(const std::string& found, const std::string& why_not) {
  if (why_not.empty()) return finding("vendor products", FindingStatus::kOk, found);
  return finding("vendor products", FindingStatus::kOk, "not there: " + why_not,
                 "--wide-products vendor is refused");
}

HopReport in_words(const HopBenchReport& measured) {
  HopReport report = {.device = "cuda",
                      .machine = measured.machine,
                      .notice = "time on the GPU around a whole run, its end included",
                      .blocks = measured.num_blocks,
                      .threads = measured.threads,
                      .hops = measured.num_nodes};
  for (const HopArmResult& arm : measured.arms) {
    report.arms.push_back({.name = arm.name,
                           .us_per_hop = arm.us_per_hop,
                           .remark = downgrade_remark(arm.num_downgrades, measured.num_nodes)});
  }
  return report;
}

}  // namespace tileweave::cli
