// The chain of `bench sync` on the emulated device.
#include <fmt/format.h>

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "cli/bench_sync.h"
#include "tileweave/core/error.h"
#include "tileweave/plan/plan.h"
#include "tileweave/runtime/device.h"
#include "tileweave/runtime/program.h"
#include "tileweave/sync/access.h"
#include "tileweave/sync/atomics_cpu.h"
#include "tileweave/sync/sync_cta.h"

namespace tileweave::cli {
namespace {

constexpr const char* kHopKernel = "bench_sync.hop";
constexpr std::int32_t kThreads = 256;
constexpr int kSlotX = 0;
constexpr int kSlotY = 1;

/// y[block] = x[neighbour] + 1: each element has passed through every kernel of the chain.
struct HopArgs {
  Produced<std::uint32_t> x;  // (blocks)
  Output<std::uint32_t> y;    // (blocks)
  std::int64_t blocks;
};

void hop_kernel(CpuLane& lane, const std::byte* arg_bytes, const std::byte* context_bytes) {
  const auto& args = *reinterpret_cast<const HopArgs*>(arg_bytes);
  const auto& context = *reinterpret_cast<const SyncContext<2>*>(context_bytes);
  SyncCta<AtomicsCpu, 2> sync(context, AtomicsCpu(lane));
  if (!sync.begin_cta()) return;
  const std::int64_t block = sync.remap(lane.block_index());
  const Ready ready = sync.wait_input(kSlotX, {0});
  if (!ready) return;
  args.y.get()[block] = args.x.get(ready)[(block + 1) % args.blocks] + 1;
  sync.signal_output(kSlotY, {block});
}

NodeSpec hop(const TensorTable& tensors, std::int32_t index, TensorId x, TensorId y) {
  const std::int64_t blocks = tensors[y].spec.shape[0];
  NodeSpec node;
  node.name = fmt::format("hop {}", index);
  node.kernel = kHopKernel;
  node.num_works = blocks;
  node.operands = {{.tensor = x, .access = Access::kRead, .sync_slot = kSlotX},
                   {.tensor = y,
                    .access = Access::kWrite,
                    .kernel_tiles = TileSet::plain({.shape = {blocks}, .tile = {1}}),
                    .sync_slot = kSlotY}};
  node.resources = {.threads = kThreads};
  node.make_args = [blocks](const Addresses& at) {
    return to_bytes(HopArgs{.x = {static_cast<const std::uint32_t*>(at.operands[0])},
                            .y = {static_cast<std::uint32_t*>(at.operands[1])},
                            .blocks = blocks});
  };
  return node;
}

struct Arm {
  const char* name;
  Mode mode;
  EdgePolicy edge;
};

constexpr Arm kArms[] = {
    {"serial", Mode::kSerial, {.kind = EdgeKind::kFull}},
    {"programmatic", Mode::kOverlap, {.kind = EdgeKind::kProgrammatic}},
    {"tile none", Mode::kOverlap, {.kind = EdgeKind::kTile, .start = StartRule::kNone}},
    {"tile wait_all", Mode::kOverlap, {.kind = EdgeKind::kTile, .start = StartRule::kWaitAll}},
    {"tile launch_completion",
     Mode::kOverlap,
     {.kind = EdgeKind::kTile, .start = StartRule::kLaunchCompletion}},
    {"tile wait_first", Mode::kOverlap, {.kind = EdgeKind::kTile, .start = StartRule::kWaitFirst}},
};

class Chain {
 public:
  Chain(Device& device, const Arm& arm, std::int32_t hops) : hops_(hops) {
    const std::int64_t blocks = device.limits().num_sms;
    Plan plan({.name = arm.name, .num_streams = 2, .edge = arm.edge});
    TensorId x = plan.tensor(
        {.name = "x", .shape = {blocks}, .dtype = DType::kU32, .kind = TensorKind::kConstant});
    x_ = x;
    for (std::int32_t i = 0; i < hops; ++i) {
      const TensorId y = plan.tensor({.name = fmt::format("y{}", i),
                                      .shape = {blocks},
                                      .dtype = DType::kU32,
                                      .tiles = {blocks},
                                      .output = i + 1 == hops});
      plan.add(hop(plan.tensors(), i, x, y));
      x = y;
    }
    y_ = x;
    // Releases of the emulated device are exact, so its launch order may be trusted.
    program_ = std::make_unique<Program>(
        device, std::move(plan),
        RunOptions{.mode = arm.mode, .launch_order = LaunchOrder::kTrusted});
    program_->write(x_, std::vector<std::uint32_t>(static_cast<std::size_t>(blocks), 0));
  }

  double us_per_hop() {
    const auto begin = std::chrono::steady_clock::now();
    program_->run();
    program_->synchronize();
    const auto end = std::chrono::steady_clock::now();
    return std::chrono::duration<double, std::micro>(end - begin).count() / hops_;
  }

  void check_result(const char* arm) {
    for (const std::uint32_t value : program_->read<std::uint32_t>(y_)) {
      if (value == static_cast<std::uint32_t>(hops_)) continue;
      throw Error(fmt::format("check the chain of arm `{}`", arm),
                  fmt::format("{} in every element", hops_), fmt::format("{}", value));
    }
  }

  std::string remark() const {
    return downgrade_remark(program_->verdict().num_downgrades(), hops_);
  }

 private:
  std::int32_t hops_;
  TensorId x_ = kNoTensor;
  TensorId y_ = kNoTensor;
  std::unique_ptr<Program> program_;
};

}  // namespace

HopReport measure_cpu_hops(const BenchSyncOptions& options) {
  const std::unique_ptr<Device> device = open_cpu_device();
  device->kernels().add({.name = kHopKernel, .num_sync_slots = 2, .cpu = hop_kernel});
  HopReport report{
      .device = "cpu",
      .machine = fmt::format("emulated device, throughput, {} SMs", device->limits().num_sms),
      .notice = "emulated device: the cost of its scheduler, not of any GPU",
      .blocks = device->limits().num_sms,
      .threads = kThreads,
      .hops = options.hops};
  std::vector<std::unique_ptr<Chain>> chains;
  for (const Arm& arm : kArms) {
    chains.push_back(std::make_unique<Chain>(*device, arm, options.hops));
    chains.back()->us_per_hop();  // warms up
    chains.back()->check_result(arm.name);
    report.arms.push_back({.name = arm.name, .remark = chains.back()->remark()});
  }
  for (std::int32_t r = 0; r < options.repeat; ++r) {
    for (std::size_t a = 0; a < chains.size(); ++a) {  // arms take turns
      report.arms[a].us_per_hop.push_back(chains[a]->us_per_hop());
    }
  }
  for (std::size_t a = 0; a < chains.size(); ++a) chains[a]->check_result(kArms[a].name);
  return report;
}

}  // namespace tileweave::cli
