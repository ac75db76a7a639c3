#include "tileweave/runtime/cuda/bench_sync.h"

#include <algorithm>
#include <memory>

#include "tileweave/core/error.h"
#include "tileweave/plan/plan.h"
#include "tileweave/runtime/cuda/cuda_device.cuh"
#include "tileweave/runtime/cuda/cuda_status.cuh"
#include "tileweave/runtime/program.h"
#include "tileweave/sync/atomics_cuda.cuh"
#include "tileweave/sync/sync_cta.h"

namespace tileweave {
namespace {

constexpr const char* kHopKernel = "bench_sync.hop";
constexpr int kThreads = 256;

/// Waits for the node before and arrives: nothing but the edge.
__global__ void __launch_bounds__(kThreads) hop(const __grid_constant__ SyncContext<2> context) {
  SyncCta<AtomicsCuda, 2, SingleTileMaps> sync(context);
  if (!sync.begin_cta()) return;
  if (!sync.wait_input(0, {0})) return;
  sync.signal_output(1, {static_cast<std::int64_t>(blockIdx.x)});
}

NodeSpec hop_node(std::int32_t index, std::int64_t blocks, TensorId x, TensorId y) {
  NodeSpec node;
  node.name = "hop " + std::to_string(index);
  node.kernel = kHopKernel;
  node.num_works = blocks;
  node.operands = {{.tensor = x, .access = Access::kRead, .sync_slot = 0},
                   {.tensor = y,
                    .access = Access::kWrite,
                    .kernel_tiles = TileSet::plain({.shape = {blocks}, .tile = {1}}),
                    .sync_slot = 1}};
  node.resources = {.threads = kThreads};
  node.make_args = [](const Addresses& /*at*/) { return std::vector<std::byte>{}; };
  return node;
}

/// Events with timing around the runs of one chain.
class HopChain {
 public:
  HopChain(Device& device, const HopArmResult& arm, std::int32_t num_nodes, std::int64_t blocks)
      : num_nodes_(num_nodes), num_blocks_(blocks) {
    Plan plan({.name = arm.name, .num_streams = arm.num_streams, .edge = arm.edge});
    TensorId x = plan.tensor(
        {.name = "x", .shape = {blocks}, .dtype = DType::kU32, .kind = TensorKind::kConstant});
    for (std::int32_t i = 0; i < num_nodes; ++i) {
      const TensorId y = plan.tensor({.name = "y" + std::to_string(i),
                                      .shape = {blocks},
                                      .dtype = DType::kU32,
                                      .tiles = {blocks},
                                      .output = i + 1 == num_nodes});
      plan.add(hop_node(i, blocks, x, y));
      x = y;
    }
    output_ = x;
    // The launch order is trusted for the measurement alone: a deadline would end a run in which it
    // did not hold, and the blocks of this chain all fit the GPU at once.
    program_ = std::make_unique<Program>(
        device, std::move(plan),
        RunOptions{.submit = arm.submit, .launch_order = LaunchOrder::kTrusted});
    check_cuda(cudaStreamCreateWithFlags(&stream_, cudaStreamNonBlocking), "create a stream");
    check_cuda(cudaEventCreate(&begin_), "create an event");
    check_cuda(cudaEventCreate(&end_), "create an event");
  }
  ~HopChain() {
    program_.reset();
    if (begin_ != nullptr) cudaEventDestroy(begin_);
    if (end_ != nullptr) cudaEventDestroy(end_);
    if (stream_ != nullptr) cudaStreamDestroy(stream_);
  }
  HopChain(const HopChain&) = delete;
  HopChain& operator=(const HopChain&) = delete;

  double us_per_hop() {
    check_cuda(cudaEventRecord(begin_, stream_), "record an event");
    program_->wait_for(stream_);
    program_->run();
    ++num_runs_;
    program_->block(stream_);
    check_cuda(cudaEventRecord(end_, stream_), "record an event");
    program_->synchronize();
    check_cuda(cudaEventSynchronize(end_), "wait for an event");
    float ms = 0;
    check_cuda(cudaEventElapsedTime(&ms, begin_, end_), "read the time between two events");
    return static_cast<double>(ms) * 1e3 / num_nodes_;
  }

  void check(const std::string& arm) {
    // The last tensor has no reader, so its arrivals are counted in every arm.
    const SemaphoreView last = program_->semaphores(output_).front();
    const auto wanted = static_cast<std::uint32_t>(num_runs_ * num_blocks_);
    if (last.count == wanted && last.arrived() == 0) return;
    throw Error("check the chain of arm `" + arm + "`",
                std::to_string(wanted) + " arrivals after " + std::to_string(num_runs_) + " runs",
                std::to_string(last.count));
  }

  std::int32_t num_downgrades() const { return program_->verdict().num_downgrades(); }

 private:
  std::int32_t num_nodes_;
  std::int64_t num_blocks_;
  std::int64_t num_runs_ = 0;
  TensorId output_ = kNoTensor;
  std::unique_ptr<Program> program_;
  cudaStream_t stream_ = nullptr;
  cudaEvent_t begin_ = nullptr;
  cudaEvent_t end_ = nullptr;
};

std::vector<HopArmResult> all_arms() {
  std::vector<HopArmResult> arms;
  for (const Submit submit : {Submit::kGraph, Submit::kEager}) {
    const std::string how = submit == Submit::kGraph ? ", graph" : ", eager";
    const auto add = [&](const std::string& name, EdgePolicy edge, std::int32_t streams) {
      HopArmResult arm;
      arm.name = name + (streams > 1 ? ", " + std::to_string(streams) + " streams" : "") + how;
      arm.edge = edge;
      arm.submit = submit;
      arm.num_streams = streams;
      arms.push_back(std::move(arm));
    };
    add("serial", {.kind = EdgeKind::kFull}, 1);
    add("programmatic", {.kind = EdgeKind::kProgrammatic}, 1);
    for (const std::int32_t streams : {2, 3}) {
      for (const StartRule start : {StartRule::kNone, StartRule::kLaunchCompletion,
                                    StartRule::kWaitAll, StartRule::kWaitFirst}) {
        add(std::string("tile ") + name_of(start), {.kind = EdgeKind::kTile, .start = start},
            streams);
      }
    }
  }
  return arms;
}

}  // namespace

double HopArmResult::median_us() const {
  if (us_per_hop.empty()) return 0;
  std::vector<double> sorted = us_per_hop;
  std::sort(sorted.begin(), sorted.end());
  const std::size_t half = sorted.size() / 2;
  return sorted.size() % 2 == 1 ? sorted[half] : (sorted[half - 1] + sorted[half]) / 2;
}

HopBenchReport measure_hops(const HopBenchOptions& options) {
  require(options.num_nodes > 0 && options.repeats > 0, "measure hops",
          "at least one node and one repetition");
  CudaDevice device(options.device);
  const CurrentDevice current(device.index());
  device.kernels().add({.name = kHopKernel,
                        .num_sync_slots = 2,
                        .cuda_function = reinterpret_cast<const void*>(&hop),
                        .tiles = TileSupport::kSingleTile});
  HopBenchReport report;
  report.machine = device.limits().name;
  report.num_nodes = options.num_nodes;
  report.num_blocks = options.num_blocks > 0 ? options.num_blocks : device.limits().num_sms;
  report.threads = kThreads;
  report.arms = all_arms();
  std::vector<std::unique_ptr<HopChain>> chains;
  for (HopArmResult& arm : report.arms) {
    chains.push_back(std::make_unique<HopChain>(device, arm, report.num_nodes, report.num_blocks));
    arm.num_downgrades = chains.back()->num_downgrades();
    for (int warm_up = 0; warm_up < 2; ++warm_up) chains.back()->us_per_hop();
    chains.back()->check(arm.name);
  }
  for (std::int32_t r = 0; r < options.repeats; ++r) {
    for (std::size_t a = 0; a < chains.size(); ++a) {
      report.arms[a].us_per_hop.push_back(chains[a]->us_per_hop());
    }
  }
  for (std::size_t a = 0; a < chains.size(); ++a) chains[a]->check(report.arms[a].name);
  return report;
}

}  // namespace tileweave
