#include "tileweave/runtime/async_stream.h"

#include <algorithm>
#include <set>
#include <utility>

#include "tileweave/plan/contract_check.h"
#include "tileweave/plan/grounds.h"
#include "tileweave/runtime/loader.h"
#include "tileweave/runtime/tensor_pool.h"
#include "tileweave/runtime/tracing.h"

namespace tileweave {
namespace {

// Launches whose description is kept for hang reports and traces.
constexpr std::int64_t kKeptLaunches = 4096;
constexpr std::uint32_t kTraceRecords = 1U << 18;
// Runs that would begin later than this are numbered from 0 again; no run has as many launches.
constexpr NodeId kLastRunBase = 1 << 30;

/// Nodes that may use the same sync memory one after the other.
std::string reuse_key(const NodeSpec& spec, const TensorTable& tensors) {
  std::string key = std::to_string(blocks_of(spec));
  for (const std::uint32_t n : spec.counter.arrivals) key += "," + std::to_string(n);
  for (std::size_t i = 0; i < spec.operands.size(); ++i) {
    const OperandSpec& operand = spec.operands[i];
    const Tensor& tensor = tensors[operand.tensor];
    if (operand.access != Access::kWrite || operand.sync_slot < 0 || !tensor.tiled()) continue;
    key += ";" + std::to_string(i) + ":" + std::to_string(kernel_tiles_of(operand, tensor).count());
  }
  return key;
}

/// Serial mode is one internal stream: a kernel starts when the one before it has completed.
std::int32_t num_streams_of(const AsyncStreamOptions& options) {
  return options.run.mode == Mode::kSerial ? 1 : options.num_streams;
}

}  // namespace

/// What handles and the stream share: handles may outlive the stream.
struct StreamShared {
  std::vector<TensorId> dropped;
};

struct StreamTensor::State {
  State(std::shared_ptr<StreamShared> s, TensorId i, void* a, std::size_t b)
      : shared(std::move(s)), id(i), address(a), bytes(b) {}
  ~State() { shared->dropped.push_back(id); }
  State(const State&) = delete;
  State& operator=(const State&) = delete;

  std::shared_ptr<StreamShared> shared;
  TensorId id;
  void* address;
  std::size_t bytes;
};

TensorId StreamTensor::id() const {
  require(valid(), "use stream tensor", "a tensor made by a stream, got an empty handle");
  return state_->id;
}
void* StreamTensor::address() const {
  require(valid(), "use stream tensor", "a tensor made by a stream, got an empty handle");
  return state_->address;
}
std::size_t StreamTensor::bytes() const {
  require(valid(), "use stream tensor", "a tensor made by a stream, got an empty handle");
  return state_->bytes;
}

struct AsyncStream::Impl {
  Impl(Device& on, const AsyncStreamOptions& how)
      : device(on),
        options(how),
        plan({.name = "stream", .num_streams = num_streams_of(how), .edge = how.edge}),
        state(on, how.run),
        pool(on, plan.tensors(), how.run.max_in_flight) {
    if (how.num_streams < 1 || how.num_streams > kMaxStreams) {
      throw Error("open stream", "1 to " + std::to_string(kMaxStreams) + " internal streams",
                  std::to_string(how.num_streams));
    }
    require(how.first_node >= 0, "open stream", "a number of the first launch that is not negative",
            std::to_string(how.first_node));
    require(how.run.max_in_flight >= 1, "open stream", "at least one kernel in flight",
            std::to_string(how.run.max_in_flight));
    const std::int32_t streams = plan.options().num_streams;
    const std::int32_t queues = on.limits().hardware_queues;
    if (how.run.starvation == StarvationCheck::kOn && streams > queues) {
      throw Error("open stream",
                  "no more internal streams than the " + std::to_string(queues) +
                      " hardware queues of " + on.limits().name,
                  std::to_string(streams));
    }
    next_node = how.first_node;
    if (how.run.tracing == Tracing::kOn) state.allocate_records(kTraceRecords);
    queue = on.open_queue(plan.options().num_streams);
  }

  struct KeptNode {
    std::shared_ptr<const NodeSpec> spec;
    std::int64_t run;
  };
  /// A run's incremental proof state.
  struct Run {
    Run(const Plan& plan, const VerifyOptions& how)
        : contract(plan.tensors()), grounds(plan, how) {}
    ContractChecker contract;
    GroundedSchedule grounds;
    std::vector<BaseUpdate> updates;
    std::set<TensorId> signalled;
    std::string refused;  // why the run takes no more launches; empty: it does
    std::vector<std::pair<std::string, NodeSync>> borrowed;  // node sync to return after the run
  };

  UseMark now() const {
    const auto launch = static_cast<std::int64_t>(plan.nodes().size());
    return {run_number, launch, launched_before_run + launch};
  }
  void collect_dropped();
  void check_running(const char* operation) const;
  void check_not_poisoned(const char* operation) const;
  void check_operands(const NodeSpec& node) const;
  void add_to_run(NodeSpec node);
  NodeSync& borrow_sync(NodeId global, const NodeSpec& spec);
  std::vector<bool> live_operands_of(const NodeSpec& spec);
  void update_arrivals(const NodeSpec& spec);
  std::vector<Dependency> in_flight_limit(NodeId id) const;
  TensorId scratch_of(const NodeSpec& node);
  EndEvent end_event(NodeId id) const;
  std::shared_ptr<const TensorTable> tensors_now();
  Launch launch_of(NodeId id, std::function<void(NativeStream)> enqueue);
  void count_in_run(NodeId id);
  void enqueue_last(std::function<void(NativeStream)> enqueue);
  void launch(NodeSpec node, std::function<void(NativeStream)> enqueue);
  HangContext hang_context(NodeId stuck);
  void number_from_zero();

  Device& device;
  AsyncStreamOptions options;
  Plan plan;  // tensors of the stream; nodes of the current run
  SyncState state;
  TensorPool pool;
  std::map<std::size_t, TensorId> shared_scratch;  // by bytes, of nodes that are not integrated
  std::shared_ptr<StreamShared> shared = std::make_shared<StreamShared>();
  std::unique_ptr<LaunchQueue> queue;
  std::optional<Run> run;
  std::int64_t run_number = -1;
  NodeId run_base = 0;   // global id of the run's first launch
  NodeId next_node = 0;  // of the launch that comes next
  std::int64_t num_launched = 0;
  std::int64_t launched_before_run = 0;
  std::map<TensorId, TensorSync> tensor_syncs;
  std::map<NodeId, NodeSync> node_syncs;  // of kept launches, by global id
  std::map<std::string, std::vector<NodeSync>> free_syncs;
  std::map<NodeId, KeptNode> kept;  // by global id
  std::map<NodeId, const NodeSpec*> kept_nodes;
  std::map<NodeId, const NodeSpec*> nodes_of_hang;  // those of the run that hung
  std::shared_ptr<const TensorTable> table;         // what launches read while `plan` grows
  std::optional<Hang> hang;
};

void AsyncStream::Impl::collect_dropped() {
  for (const TensorId id : std::exchange(shared->dropped, {})) pool.drop(id);
  pool.collect(now());
}

void AsyncStream::Impl::check_not_poisoned(const char* operation) const {
  require(!hang && !state.aborted(), operation,
          "a stream that is not poisoned: call recover() first",
          hang ? hang->sentence : "an aborted run");
}

void AsyncStream::Impl::check_running(const char* operation) const {
  check_not_poisoned(operation);
  require(run.has_value(), operation, "a run: call begin_run() first");
}

/// A handle that is gone is memory that may be gone; also ids that this stream never made.
void AsyncStream::Impl::check_operands(const NodeSpec& node) const {
  for (const OperandSpec& operand : node.operands) {
    if (pool.held(operand.tensor)) continue;
    throw Error("launch `" + node.name + "`", "operands whose handles are held",
                "dropped `" + plan.tensors()[operand.tensor].spec.name + "`");
  }
}

/// Verifies the node against the run so far. Throws before anything is enqueued; a refused node
/// ends the run's proof, so the run takes no more nodes.
void AsyncStream::Impl::add_to_run(NodeSpec node) {
  check_node(node, plan.tensors());
  check_operands(node);
  measure_resources(node, device);
  check_tile_support(node, plan.tensors(), device);
  const std::string why = why_no_fit(node.resources, device.limits());
  require(why.empty(), "launch", "a block that fits an SM", "node `" + node.name + "`: " + why);
  const NodeId id = plan.add(std::move(node));
  const std::size_t edges_before = run->contract.edges().size();
  const std::size_t overwrites_before = run->contract.overwrites().size();
  std::vector<Fault> faults = run->contract.add(id, plan.nodes()[static_cast<std::size_t>(id)]);
  if (options.run.contracts == ContractCheck::kOff) faults.clear();
  const auto& edges = run->contract.edges();
  const auto& overwrites = run->contract.overwrites();
  const std::vector<Fault> starved = run->grounds.add(
      id, {edges.begin() + static_cast<std::ptrdiff_t>(edges_before), edges.end()},
      {overwrites.begin() + static_cast<std::ptrdiff_t>(overwrites_before), overwrites.end()});
  faults.insert(faults.end(), starved.begin(), starved.end());
  if (!faults.empty()) {
    run->refused = faults.front().sentence;
    plan.nodes().pop_back();
    throw Error("launch", run->refused);
  }
}

NodeSync& AsyncStream::Impl::borrow_sync(NodeId global, const NodeSpec& spec) {
  const std::string key = reuse_key(spec, plan.tensors());
  std::vector<NodeSync>& free = free_syncs[key];
  NodeSync sync;
  if (free.empty()) {
    sync = state.make_node(spec, plan.tensors());
  } else {
    sync = free.back();
    free.pop_back();
  }
  run->borrowed.emplace_back(key, sync);
  return node_syncs[global] = sync;
}

/// Brings what consumers wait for up to date with the producers launched so far.
void AsyncStream::Impl::update_arrivals(const NodeSpec& spec) {
  for (const OperandSpec& operand : spec.operands) {
    const Tensor& tensor = plan.tensors()[operand.tensor];
    if (!tensor.tiled()) continue;
    std::vector<std::int64_t> arrivals = run->contract.arrivals(operand.tensor);
    if (const auto known = tensor_syncs.find(operand.tensor); known != tensor_syncs.end()) {
      if (known->second.arrivals != arrivals) {
        state.set_arrivals(known->second, std::move(arrivals), std::nullopt);
      }
      continue;
    }
    tensor_syncs[operand.tensor] =
        state.make_tensor(tensor, BasesOf::kEveryTile, std::move(arrivals), std::nullopt);
  }
}

std::vector<bool> AsyncStream::Impl::live_operands_of(const NodeSpec& spec) {
  std::vector<bool> live;
  for (const OperandSpec& operand : spec.operands) {
    const Tensor& tensor = plan.tensors()[operand.tensor];
    bool is_live = tensor.tiled() && operand.sync_slot >= 0;
    if (is_live && operand.access == Access::kRead && !operand.target) {
      // Nobody has arrived on it in this run: a constant, or written by an operator without tiles.
      const auto& arrivals = tensor_syncs.at(operand.tensor).arrivals;
      is_live = std::any_of(arrivals.begin(), arrivals.end(), [](std::int64_t n) { return n > 0; });
    }
    live.push_back(is_live);
  }
  return live;
}

/// A launch starts only when all launches that are max_in_flight older have completed: the newest
/// of them on each stream, since a stream completes in order.
std::vector<Dependency> AsyncStream::Impl::in_flight_limit(NodeId id) const {
  std::vector<Dependency> after;
  const Schedule& schedule = run->grounds.schedule();
  std::set<std::int32_t> covered;
  for (NodeId old = id - options.run.max_in_flight; old >= 0; --old) {
    const std::int32_t stream = schedule.nodes[static_cast<std::size_t>(old)].stream;
    if (!covered.insert(stream).second) continue;
    after.push_back({old, Release::kCompleted});
    if (static_cast<std::int32_t>(covered.size()) == plan.options().num_streams) break;
  }
  return after;
}

/// A later launch will wait for one that is max_in_flight older, by the first event behind it:
/// every stream, which takes one launch a round, gets about four in that time. None between kernels
/// that may be launched programmatically, which an event would part.
EndEvent AsyncStream::Impl::end_event(NodeId id) const {
  if (options.edge.kind == EdgeKind::kProgrammatic) return EndEvent::kNone;
  const std::int32_t streams = plan.options().num_streams;
  const std::int32_t rounds = std::max(options.run.max_in_flight / (4 * streams), 1);
  return id / streams % rounds == 0 ? EndEvent::kRecorded : EndEvent::kNone;
}

/// The table as it is now: kernels in flight may look at theirs while the user makes tensors.
std::shared_ptr<const TensorTable> AsyncStream::Impl::tensors_now() {
  if (table == nullptr || table->size() != plan.tensors().size()) {
    table = std::make_shared<const TensorTable>(plan.tensors());
  }
  return table;
}

Launch AsyncStream::Impl::launch_of(NodeId id, std::function<void(NativeStream)> enqueue) {
  const NodeSpec& spec = plan.nodes()[static_cast<std::size_t>(id)];
  const NodeId global = run_base + id;
  const auto shared_spec = std::make_shared<const NodeSpec>(spec);
  kept[global] = {shared_spec, run_number};
  kept_nodes[global] = shared_spec.get();
  if (static_cast<std::int64_t>(kept.size()) > kKeptLaunches) {
    const NodeId oldest = kept.begin()->first;
    kept.erase(oldest);
    kept_nodes.erase(oldest);
    node_syncs.erase(oldest);
  }

  const ScheduledNode& scheduled = run->grounds.schedule().nodes[static_cast<std::size_t>(id)];
  Launch launch = launch_of_node(global, spec, scheduled, state);
  for (const Dependency& limit : in_flight_limit(id)) launch.after.push_back(limit);
  for (Dependency& dependency : launch.after) dependency.on += run_base;
  launch.spec = shared_spec;
  launch.tensors = tensors_now();
  if (enqueue) {
    launch.call = std::move(enqueue);
    return launch;
  }

  // Whoever comes later may ask for this launch's completion event; without one it waits for the
  // whole launch, so where neither order nor default rule make use of events none are made.
  if (options.run.launch_order == LaunchOrder::kTrusted ||
      options.edge.start == StartRule::kLaunchCompletion) {
    launch.completion_event = CompletionEvent::kLaunchCompletion;
  }
  launch.end_event = end_event(id);
  launch.kernel = &device.kernels().find(spec.kernel);
  const NodeSync& sync = borrow_sync(global, spec);
  launch.begun = sync.begun.words;
  launch.begun_base = sync.begun.base;

  Addresses addresses;
  for (const OperandSpec& operand : spec.operands) {
    addresses.operands.push_back(pool.address(plan.tensors().buffer_owner(operand.tensor)));
  }
  if (spec.make_args) launch.args = spec.make_args(addresses);
  if (launch.kernel->num_sync_slots > 0) {
    // A later programmatic consumer is not known yet; letting it launch early costs nothing.
    std::uint32_t flags = SyncHeader::kCountBegun | SyncHeader::kProgrammaticProducer;
    if (options.run.mode == Mode::kSerial) flags |= SyncHeader::kAssertReady;
    for (const Dependency& dependency : scheduled.after) {
      if (dependency.release == Release::kProgrammatic) flags |= SyncHeader::kProgrammaticConsumer;
    }
    const std::vector<bool> live = live_operands_of(spec);
    launch.context = state.context({.node = global, .spec = &spec, .live = live, .flags = flags},
                                   sync, plan.tensors(), tensor_syncs);
  }
  prepare_vendor_call(launch, device);
  return launch;
}

/// What the launched node adds to the base update at the end of the run.
void AsyncStream::Impl::count_in_run(NodeId id) {
  const NodeSpec& spec = plan.nodes()[static_cast<std::size_t>(id)];
  for (const BaseUpdate& update : SyncState::updates_of(node_syncs.at(run_base + id), spec)) {
    run->updates.push_back(update);
  }
  const std::vector<bool> live = live_operands_of(spec);
  for (std::size_t i = 0; i < spec.operands.size(); ++i) {
    if (live[i] && spec.operands[i].access == Access::kWrite) {
      run->signalled.insert(spec.operands[i].tensor);
    }
  }
}

/// Enqueues the node added last. When that fails (an argument maker that throws, no memory), the
/// run counts as if the node had never been there, and takes no more nodes.
void AsyncStream::Impl::enqueue_last(std::function<void(NativeStream)> enqueue) {
  const auto id = static_cast<NodeId>(plan.nodes().size()) - 1;
  const NodeSpec& spec = plan.nodes().back();
  std::map<TensorId, TensorSync> before;
  for (const OperandSpec& operand : spec.operands) {
    const auto known = tensor_syncs.find(operand.tensor);
    if (known != tensor_syncs.end()) before.insert(*known);
  }
  try {
    update_arrivals(spec);
    const Launch launch = launch_of(id, std::move(enqueue));
    queue->launch(launch);
    ++num_launched;
    ++next_node;
    if (!launch.context.empty()) count_in_run(id);
  } catch (const std::exception& error) {
    run->refused = "`" + spec.name + "` could not be launched: " + error.what();
    for (const auto& [tensor, sync] : before) tensor_syncs[tensor] = sync;
    kept.erase(run_base + id);
    kept_nodes.erase(run_base + id);
    node_syncs.erase(run_base + id);
    plan.nodes().pop_back();
    throw;
  }
}

/// A tensor like any other, to be dropped at once: it is reused when the kernel is done. Nodes that
/// are not integrated run one after the other, so those that want as much share one piece.
TensorId AsyncStream::Impl::scratch_of(const NodeSpec& node) {
  if (!node.integrated) {
    const auto known = shared_scratch.find(node.scratch_bytes);
    if (known != shared_scratch.end()) return known->second;
  }
  const TensorId scratch = pool.acquire({.name = node.name + " scratch",
                                         .shape = {static_cast<std::int64_t>(node.scratch_bytes)},
                                         .dtype = DType::kU8},
                                        now());
  if (!node.integrated) shared_scratch.emplace(node.scratch_bytes, scratch);
  return scratch;
}

void AsyncStream::Impl::launch(NodeSpec node, std::function<void(NativeStream)> enqueue) {
  check_running("launch");
  require(run->refused.empty(), "launch", "a run without a refused launch: call end_run() first",
          run->refused);
  require(node.scratch_bytes == 0 || !enqueue, "launch", "a call without scratch");
  collect_dropped();
  std::optional<TensorId> scratch;
  const bool shares_scratch = !node.integrated;
  if (node.scratch_bytes > 0) {
    scratch = scratch_of(node);
    if (node.make_args) {
      node.make_args = [make = node.make_args, at = pool.address(*scratch)](Addresses addresses) {
        addresses.scratch = at;
        return make(addresses);
      };
    }
  }
  const UseMark mark = now();
  try {
    add_to_run(std::move(node));
  } catch (...) {
    if (scratch && !shares_scratch) pool.drop(*scratch);
    throw;
  }
  for (const OperandSpec& operand : plan.nodes().back().operands) pool.used(operand.tensor, mark);
  if (scratch) pool.used(*scratch, mark);
  if (scratch && !shares_scratch) pool.drop(*scratch);
  enqueue_last(std::move(enqueue));
}

/// Global ids start again. Launches so far are no longer known by name: a report of a hang among
/// them would say less.
void AsyncStream::Impl::number_from_zero() {
  kept.clear();
  kept_nodes.clear();
  node_syncs.clear();
  next_node = 0;
}

/// Nodes of other runs share tensors and sync memory with those of the run that hung, so a report
/// must not look at them.
HangContext AsyncStream::Impl::hang_context(NodeId stuck) {
  nodes_of_hang.clear();
  const auto at = kept.find(stuck);
  for (const auto& [id, node] : kept) {
    if (at == kept.end() || node.run == at->second.run) nodes_of_hang[id] = node.spec.get();
  }
  return {nodes_of_hang, plan.tensors(), tensor_syncs, node_syncs, state};
}

AsyncStream::AsyncStream(Device& device, const AsyncStreamOptions& options)
    : impl_(std::make_unique<Impl>(device, options)) {}

AsyncStream::~AsyncStream() {
  try {
    impl_->queue->synchronize();
  } catch (const std::exception&) {
    // Whoever wanted to know has called synchronize(); memory must not go while kernels run.
  }
  impl_->queue.reset();
}

StreamTensor AsyncStream::tensor(const TensorSpec& spec) {
  impl_->collect_dropped();
  const TensorId id = impl_->pool.acquire(spec, impl_->now());
  StreamTensor handle;
  handle.state_ = std::make_shared<StreamTensor::State>(impl_->shared, id, impl_->pool.address(id),
                                                        impl_->plan.tensors()[id].bytes());
  return handle;
}

StreamTensor AsyncStream::wrap(const TensorSpec& spec, void* address) {
  require(address != nullptr, "wrap tensor", "an address", "null for `" + spec.name + "`");
  TensorSpec over = spec;
  over.address = address;
  return tensor(over);
}

const TensorTable& AsyncStream::tensors() const {
  return impl_->plan.tensors();
}

void AsyncStream::begin_run() {
  Impl& s = *impl_;
  s.check_not_poisoned("begin run");
  require(!s.run.has_value(), "begin run", "no run: call end_run() first");
  s.plan.nodes().clear();
  ++s.run_number;
  if (s.next_node > kLastRunBase) s.number_from_zero();
  s.run_base = s.next_node;
  s.launched_before_run = s.num_launched;
  s.run.emplace(s.plan, VerifyOptions{.device = s.device.limits(),
                                      .launch_order = s.options.run.launch_order,
                                      .starvation = s.options.run.starvation});
  s.queue->barrier();
}

void AsyncStream::launch(NodeSpec node) {
  impl_->launch(std::move(node), nullptr);
}

void AsyncStream::call(const std::string& name, const std::vector<TensorId>& reads,
                       const std::vector<TensorId>& writes,
                       std::function<void(NativeStream)> enqueue) {
  require(enqueue != nullptr, "call", "a function to enqueue with", "`" + name + "`");
  NodeSpec node;
  node.name = name;
  node.kernel = "call";
  node.integrated = false;
  node.resources = {};
  node.make_args = [](const Addresses&) { return std::vector<std::byte>{}; };
  for (const TensorId id : reads) node.operands.push_back({.tensor = id});
  for (const TensorId id : writes) {
    node.operands.push_back({.tensor = id, .access = Access::kWrite});
  }
  impl_->launch(std::move(node), std::move(enqueue));
}

void AsyncStream::end_run() {
  Impl& s = *impl_;
  s.check_running("end run");
  for (const TensorId id : s.run->signalled) {
    s.run->updates.push_back(SyncState::update_of(s.tensor_syncs.at(id)));
  }
  if (!s.run->updates.empty()) {
    Launch last = s.state.base_update(s.run_base + static_cast<NodeId>(s.plan.nodes().size()),
                                      s.run->updates);
    for (std::size_t i = 0; i < s.plan.nodes().size(); ++i) {
      last.after.push_back({s.run_base + static_cast<NodeId>(i), Release::kCompleted});
    }
    s.queue->launch(last);
    ++s.num_launched;
    ++s.next_node;
  }
  for (auto& [key, sync] : s.run->borrowed) s.free_syncs[key].push_back(sync);
  s.run.reset();
}

void AsyncStream::wait_for(NativeStream stream) {
  impl_->queue->wait_for(stream);
}
void AsyncStream::block(NativeStream stream) {
  impl_->queue->block(stream);
}

void AsyncStream::synchronize() {
  Impl& s = *impl_;
  s.queue->synchronize();
  if (const Deadlock deadlock = s.queue->deadlock(); deadlock.found()) {
    const NodeId stuck = deadlock.waits.empty() ? -1 : deadlock.waits.front().node;
    if (!s.hang) s.hang = explain(deadlock, s.hang_context(stuck));
  } else if (s.state.aborted() && !s.hang) {
    const HangReport& report = *s.state.report();
    s.hang = explain(report, s.hang_context(static_cast<NodeId>(report.node)));
  }
  if (s.hang) throw Error("run stream", s.hang->sentence);
}

bool AsyncStream::poisoned() const {
  return impl_->hang.has_value() || impl_->state.aborted();
}
const std::optional<Hang>& AsyncStream::hang() const {
  return impl_->hang;
}

void AsyncStream::recover() {
  Impl& s = *impl_;
  s.queue->synchronize();
  s.state.reset();
  s.hang.reset();
  if (!s.run) return;
  for (auto& [key, sync] : s.run->borrowed) s.free_syncs[key].push_back(sync);
  s.run.reset();
}

void AsyncStream::upload(const StreamTensor& tensor, const void* host) {
  // The memory may have been another tensor's, whose kernels are still running.
  const std::int64_t busy = impl_->pool.busy_until(tensor.id());
  if (busy >= 0) impl_->queue->wait_until_completed(busy);
  impl_->device.upload(tensor.address(), host, tensor.bytes());
}
void AsyncStream::download(const StreamTensor& tensor, void* host) {
  impl_->device.download(host, tensor.address(), tensor.bytes());
}

std::vector<SemaphoreView> AsyncStream::semaphores(const StreamTensor& tensor) {
  const auto sync = impl_->tensor_syncs.find(tensor.id());
  require(sync != impl_->tensor_syncs.end(), "read semaphores",
          "a tiled tensor that a kernel was launched with",
          "`" + impl_->plan.tensors()[tensor.id()].spec.name + "`");
  return impl_->state.view(sync->second);
}

std::size_t AsyncStream::bytes_held() const {
  return impl_->pool.bytes_held();
}
std::int64_t AsyncStream::num_in_flight() {
  return impl_->num_launched - impl_->queue->num_completed();
}

Trace AsyncStream::take_trace() {
  Impl& s = *impl_;
  require(s.options.run.tracing == Tracing::kOn, "take trace", "a stream opened with tracing on");
  std::uint64_t dropped = 0;
  std::vector<TileRecord> records = s.state.take_records(dropped);
  const bool modelled = s.queue->model_ticks() >= 0;
  return make_trace({.title = "stream",
                     .clock = modelled ? "modelled" : "measured",
                     .time_unit = modelled ? "ticks" : "ns",
                     .num_sms = s.device.limits().num_sms,
                     .dropped = dropped,
                     .run_of = [&s](NodeId id) { return s.kept.at(id).run; }},
                    std::move(records), s.kept_nodes, s.plan.tensors());
}

}  // namespace tileweave
