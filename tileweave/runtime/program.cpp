#include "tileweave/runtime/program.h"

#include <algorithm>
#include <utility>

#include "tileweave/plan/contract_check.h"
#include "tileweave/plan/happens_before.h"
#include "tileweave/plan/verify.h"
#include "tileweave/runtime/loader.h"
#include "tileweave/runtime/tracing.h"

namespace tileweave {
namespace {

// Trace ring: this many runs of all works, within these bounds.
constexpr std::int64_t kTracedRuns = 16;
constexpr std::int64_t kMinRecords = 1024;
constexpr std::int64_t kMaxRecords = std::int64_t{1} << 21;

}  // namespace

struct Program::Impl {
  Impl(Device& on, Plan what, const RunOptions& how)
      : device(on), options(how), plan(std::make_shared<Plan>(std::move(what))), state(on, how) {}

  void load();
  void make_tensor_syncs();
  void make_launches();
  void* address_of(TensorId id) const;
  Launch launch_of(NodeId id);
  void enqueue();
  void record();
  void poison(Hang why);
  HangContext hang_context() const {
    return {nodes, plan->tensors(), tensor_syncs, node_syncs, state};
  }
  NodeId base_update_id() const { return static_cast<NodeId>(plan->nodes().size()); }

  Device& device;
  RunOptions options;
  std::shared_ptr<Plan> plan;
  SyncState state;
  Verdict verdict;
  Schedule schedule;
  MemoryPlan memory;
  std::byte* arena = nullptr;
  std::vector<std::vector<bool>> live;
  std::map<TensorId, TensorSync> tensor_syncs;
  std::map<NodeId, NodeSync> node_syncs;
  std::map<NodeId, const NodeSpec*> nodes;
  std::vector<Launch> launches;
  std::optional<Launch> between_runs;
  std::unique_ptr<LaunchQueue> queue;
  std::unique_ptr<Recording> recording;
  std::optional<Hang> hang;
  double ticks_before_run = 0;
};

void Program::Impl::load() {
  for (NodeSpec& node : plan->nodes()) {
    measure_resources(node, device);
    check_tile_support(node, plan->tensors(), device);
  }
  const VerifyOptions how{.device = device.limits(),
                          .launch_order = options.launch_order,
                          .starvation = options.starvation};
  verdict = verify(*plan, how);
  if (options.contracts == ContractCheck::kOn) {
    throw_if_faulty(verdict, *plan);
  } else if (!verdict.ok()) {
    verdict.schedule = unchecked_schedule(*plan, how);
  }
  schedule = options.mode == Mode::kSerial ? serial_schedule(*plan) : verdict.schedule;
  // Offsets come from the overlapped schedule in both modes: serial order is the stronger one.
  const HappensBefore overlapped(*plan, verdict.schedule);
  memory = plan_memory(*plan, overlapped, options.reuse);
  arena = static_cast<std::byte*>(
      device.allocate(std::max(memory.arena_bytes, MemoryPlan::kAlignment)));
  live = live_operands(*plan, schedule, HappensBefore(*plan, schedule), options.mode);

  if (options.tracing == Tracing::kOn) {
    std::int64_t works = 0;
    for (const NodeSpec& node : plan->nodes()) works += std::max(node.num_works, blocks_of(node));
    state.allocate_records(
        static_cast<std::uint32_t>(std::clamp(works * kTracedRuns, kMinRecords, kMaxRecords)));
  }
  make_tensor_syncs();
  make_launches();

  queue = device.open_queue(schedule.num_streams);
  record();
}

void Program::Impl::make_tensor_syncs() {
  ContractChecker contract(plan->tensors(), Report::kAtFinish);
  for (NodeId id = 0; id < base_update_id(); ++id) {
    contract.add(id, plan->nodes()[static_cast<std::size_t>(id)]);
  }
  for (TensorId id = 0; id < plan->tensors().size(); ++id) {
    const Tensor& tensor = plan->tensors()[id];
    if (!tensor.tiled()) continue;
    std::vector<std::int64_t> arrivals = contract.arrivals(id);
    std::optional<Tiling> producer =
        closed_form_producer(id, plan->nodes(), plan->tensors(), arrivals);
    tensor_syncs[id] =
        state.make_tensor(tensor, BasesOf::kTensorIfEqual, std::move(arrivals), producer);
  }
}

void* Program::Impl::address_of(TensorId id) const {
  const Tensor& tensor = plan->tensors()[plan->tensors().buffer_owner(id)];
  if (tensor.spec.address != nullptr) return tensor.spec.address;
  return arena + memory.tensor_offset.at(static_cast<std::size_t>(id));
}

Launch Program::Impl::launch_of(NodeId id) {
  const auto index = static_cast<std::size_t>(id);
  const NodeSpec& spec = plan->nodes()[index];
  Launch launch = launch_of_node(id, spec, schedule.nodes[index], state);
  launch.completion_event = completion_event_of(id, schedule);
  launch.end_event = end_event_of(id, schedule);
  // Aliasing pointers: launches keep the whole plan alive.
  launch.spec = std::shared_ptr<const NodeSpec>(plan, &spec);
  launch.tensors = std::shared_ptr<const TensorTable>(plan, &plan->tensors());

  const NodeSync& sync = node_syncs[id] = state.make_node(spec, plan->tensors());
  launch.begun = sync.begun.words;
  launch.begun_base = sync.begun.base;
  launch.kernel = &device.kernels().find(spec.kernel);

  Addresses addresses;
  for (const OperandSpec& operand : spec.operands) {
    addresses.operands.push_back(address_of(operand.tensor));
  }
  addresses.scratch = spec.scratch_bytes > 0 ? arena + memory.scratch_offset[index] : nullptr;
  if (spec.make_args) launch.args = spec.make_args(addresses);
  if (spec.integrated && launch.kernel->num_sync_slots > 0) {
    launch.context = state.context({.node = id,
                                    .spec = &spec,
                                    .live = live[index],
                                    .flags = header_flags(id, schedule, options.mode)},
                                   sync, plan->tensors(), tensor_syncs);
  }
  prepare_vendor_call(launch, device);
  return launch;
}

void Program::Impl::make_launches() {
  std::vector<BaseUpdate> updates;
  for (NodeId id = 0; id < base_update_id(); ++id) {
    nodes[id] = &plan->nodes()[static_cast<std::size_t>(id)];
    launches.push_back(launch_of(id));
    if (launches.back().context.empty()) continue;  // begins and counts nothing
    for (const BaseUpdate& update : SyncState::updates_of(node_syncs[id], *nodes[id])) {
      updates.push_back(update);
    }
  }
  for (const auto& [id, sync] : tensor_syncs) {
    // A tensor whose signals were left out does not count, so its base must stand still.
    bool signalled = false;
    for (std::size_t j = 0; j < live.size(); ++j) {
      for (std::size_t o = 0; o < live[j].size(); ++o) {
        const OperandSpec& operand = plan->nodes()[j].operands[o];
        signalled |= live[j][o] && operand.tensor == id && operand.access == Access::kWrite;
      }
    }
    if (signalled) updates.push_back(SyncState::update_of(sync));
  }
  if (updates.empty()) return;  // nothing counts
  Launch last = state.base_update(base_update_id(), updates);
  for (NodeId id = 0; id < base_update_id(); ++id) last.after.push_back({id, Release::kCompleted});
  launches.push_back(std::move(last));
}

void Program::Impl::enqueue() {
  for (const Launch& launch : launches) queue->launch(launch);
  if (between_runs) queue->launch(*between_runs);
}

void Program::Impl::record() {
  recording.reset();
  if (options.submit == Submit::kEager) return;
  queue->begin_recording();
  try {
    enqueue();
  } catch (...) {
    // The queue is to be usable again; what it has to say about half a run is beside the point.
    try {
      queue->end_recording();
    } catch (const std::exception&) {
    }
    throw;
  }
  recording = queue->end_recording();
}

void Program::Impl::poison(Hang why) {
  if (!hang) hang = std::move(why);
}

Program::Program(Device& device, Plan plan, const RunOptions& options)
    : impl_(std::make_unique<Impl>(device, std::move(plan), options)) {
  try {
    impl_->load();
  } catch (...) {
    device.release(impl_->arena);
    throw;
  }
}

Program::~Program() {
  try {
    if (impl_->queue) impl_->queue->synchronize();
  } catch (const std::exception&) {
    // Whoever wanted to know has called synchronize(); memory must not go while kernels run.
  }
  impl_->recording.reset();
  impl_->queue.reset();
  impl_->device.release(impl_->arena);
}

const Plan& Program::plan() const {
  return *impl_->plan;
}
const Verdict& Program::verdict() const {
  return impl_->verdict;
}
const MemoryPlan& Program::memory() const {
  return impl_->memory;
}
Device& Program::device() {
  return impl_->device;
}
const std::optional<Hang>& Program::hang() const {
  return impl_->hang;
}
bool Program::poisoned() const {
  return impl_->hang.has_value() || impl_->state.aborted();
}

void* Program::address(TensorId id) {
  return impl_->address_of(id);
}

void Program::write_bytes(TensorId id, std::span<const std::byte> bytes) {
  const Tensor& tensor = plan().tensors()[id];
  require(bytes.size() == tensor.bytes(), "write tensor", "as many bytes as the tensor has",
          std::to_string(bytes.size()) + " for `" + tensor.spec.name + "` of " +
              std::to_string(tensor.bytes()));
  impl_->device.upload(address(id), bytes.data(), bytes.size());
}

void Program::read_bytes(TensorId id, std::span<std::byte> bytes) {
  const Tensor& tensor = plan().tensors()[id];
  require(bytes.size() == tensor.bytes(), "read tensor", "as many bytes as the tensor has",
          std::to_string(bytes.size()) + " for `" + tensor.spec.name + "` of " +
              std::to_string(tensor.bytes()));
  impl_->device.download(bytes.data(), address(id), bytes.size());
}

void Program::run() {
  require(!poisoned(), "run program", "a program that is not poisoned: call recover() first",
          impl_->hang ? impl_->hang->sentence : "an aborted run");
  impl_->ticks_before_run = impl_->queue->model_ticks();
  if (impl_->options.submit == Submit::kGraph) {
    require(impl_->recording != nullptr, "run program", "a recording", "one that failed");
    impl_->recording->replay();
  } else {
    impl_->queue->barrier();
    impl_->enqueue();
  }
}

void Program::synchronize() {
  impl_->queue->synchronize();
  if (const Deadlock deadlock = impl_->queue->deadlock(); deadlock.found()) {
    impl_->poison(explain(deadlock, impl_->hang_context()));
  } else if (impl_->state.aborted()) {
    impl_->poison(explain(*impl_->state.report(), impl_->hang_context()));
  }
  if (impl_->hang) throw Error("run program", impl_->hang->sentence);
}

void Program::set_between_runs(std::function<void(NativeStream)> enqueue) {
  impl_->queue->synchronize();  // a replay in flight keeps its recording
  impl_->between_runs.reset();
  if (enqueue) {
    // A call has a full dependency on everything before it, so it names nothing.
    Launch& last = impl_->between_runs.emplace();
    last.node = impl_->base_update_id() + 1;
    last.name = "between_runs";
    last.call = std::move(enqueue);
  }
  impl_->record();
}

void Program::recover() {
  impl_->queue->synchronize();
  impl_->state.reset();
  impl_->hang.reset();
}

std::vector<SemaphoreView> Program::semaphores(TensorId id) {
  const Tensor& tensor = plan().tensors()[id];
  require(tensor.tiled(), "read semaphores", "a tiled tensor", "`" + tensor.spec.name + "`");
  return impl_->state.view(impl_->tensor_syncs.at(id));
}

Trace Program::take_trace() {
  require(impl_->options.tracing == Tracing::kOn, "take trace", "a program loaded with tracing on");
  std::uint64_t dropped = 0;
  std::vector<TileRecord> records = impl_->state.take_records(dropped);
  const bool modelled = impl_->queue->model_ticks() >= 0;
  return make_trace({.title = plan().options().name,
                     .clock = modelled ? "modelled" : "measured",
                     .time_unit = modelled ? "ticks" : "ns",
                     .num_sms = impl_->device.limits().num_sms,
                     .dropped = dropped},
                    std::move(records), impl_->nodes, plan().tensors());
}

double Program::model_ticks() const {
  const double now = impl_->queue->model_ticks();
  return now < 0 ? -1 : now - impl_->ticks_before_run;
}

void Program::wait_for(NativeStream stream) {
  impl_->queue->wait_for(stream);
}
void Program::block(NativeStream stream) {
  impl_->queue->block(stream);
}

}  // namespace tileweave
