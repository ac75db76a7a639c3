#include "tileweave/runtime/sync_state.h"

#include <algorithm>
#include <atomic>
#include <cstddef>
#include <cstring>
#include <limits>
#include <span>

namespace tileweave {
namespace {

static_assert(offsetof(SyncContext<3>, header) == 3 * sizeof(OperandSync) &&
                  offsetof(SyncContext<3>, tiles) == 3 * sizeof(OperandSync) + sizeof(SyncHeader) &&
                  sizeof(SyncContext<3>) ==
                      sizeof(SyncHeader) + 3 * (sizeof(OperandSync) + sizeof(OperandTiles)),
              "contexts are written as the operands' words, a header and the operands' tiles");

bool uniform(const std::vector<std::int64_t>& values) {
  return std::all_of(values.begin(), values.end(),
                     [&](std::int64_t v) { return v == values.front(); });
}

std::vector<std::uint32_t> narrow(const std::vector<std::int64_t>& values) {
  std::vector<std::uint32_t> narrowed;
  narrowed.reserve(values.size());
  for (const std::int64_t v : values) narrowed.push_back(static_cast<std::uint32_t>(v));
  return narrowed;
}

void set_axes(std::int64_t (&axes)[kMaxAxes], const Coord& values) {
  for (int a = 0; a < kMaxAxes; ++a) axes[a] = a < values.num_axes ? values[a] : 1;
}

bool is_wide(const OperandTiles& op) {
  constexpr std::int64_t kLimit = std::numeric_limits<std::int32_t>::max();
  std::int64_t tiles = 1;
  for (int a = 0; a < op.num_axes; ++a) {
    if (op.shape[a] > kLimit || op.ktile[a] > kLimit || op.dtile[a] > kLimit ||
        op.producer_ktile[a] > kLimit) {
      return true;
    }
    tiles *= ceil_div(op.shape[a], op.dtile[a]);
  }
  return tiles > kLimit;
}

}  // namespace

std::int32_t num_sync_slots(const NodeSpec& spec) {
  std::int32_t slots = 0;
  for (const OperandSpec& operand : spec.operands) {
    slots = std::max(slots, operand.sync_slot + 1);
  }
  return slots;
}

SyncState::SyncState(Device& device, const RunOptions& options)
    : device_(device), options_(options), memory_(device) {
  abort_ = memory_.words(1);
  num_records_ = memory_.words(1);
  report_ = static_cast<HangReport*>(device_.allocate_shared(sizeof(HangReport)));
  *report_ = HangReport{};
}

SyncState::~SyncState() {
  device_.release_shared(report_);
  device_.release(records_);
}

TensorSync SyncState::make_tensor(const Tensor& tensor, BasesOf bases,
                                  std::vector<std::int64_t> arrivals,
                                  std::optional<Tiling> producer) {
  TensorSync sync;
  const std::int64_t count = tensor.tiles.count();
  const std::int32_t asked = tensor.spec.word_stride;
  if (tensor.spec.semaphores != nullptr) {
    sync.counted = memory_.adopt(tensor.spec.semaphores, count, std::max(asked, 1));
  } else {
    const bool one_base = bases == BasesOf::kTensorIfEqual && uniform(arrivals);
    sync.counted =
        memory_.counted(count, one_base ? 1 : count,
                        asked > 0 ? asked : device_.default_word_stride(), options_.initial_count);
  }
  set_arrivals(sync, std::move(arrivals), producer);
  return sync;
}

void SyncState::set_arrivals(TensorSync& sync, std::vector<std::int64_t> arrivals,
                             std::optional<Tiling> producer) {
  const bool equal = uniform(arrivals);
  sync.target = equal ? static_cast<std::uint32_t>(arrivals.front()) : 0;
  sync.targets = equal ? nullptr : memory_.table(narrow(arrivals));
  sync.arrivals = std::move(arrivals);
  sync.producer = producer;
}

NodeSync SyncState::make_node(const NodeSpec& spec, const TensorTable& tensors) {
  NodeSync node;
  node.begun = memory_.counted(1, 1, 2, options_.initial_count);
  node.completed = memory_.words(1);
  const std::vector<std::uint32_t>& grows = spec.counter.arrivals;
  if (!grows.empty()) {
    const bool equal =
        std::all_of(grows.begin(), grows.end(), [&](std::uint32_t n) { return n == grows[0]; });
    const auto count = static_cast<std::int64_t>(grows.size());
    node.counter = memory_.counted(count, equal ? 1 : count, 1, options_.initial_count);
    node.counter_target = grows.front();
    if (!equal) node.counter_targets = memory_.table(grows);
  }
  for (std::size_t i = 0; i < spec.operands.size(); ++i) {
    const OperandSpec& operand = spec.operands[i];
    const Tensor& tensor = tensors[operand.tensor];
    if (operand.access != Access::kWrite || operand.sync_slot < 0 || !tensor.tiled()) continue;
    node.stamps[static_cast<std::int32_t>(i)] =
        memory_.words(kernel_tiles_of(operand, tensor).count());
  }
  return node;
}

OperandSlot SyncState::operand(const ContextRequest& request, std::int32_t index,
                               const NodeSync& node, const TensorTable& tensors,
                               const std::map<TensorId, TensorSync>& tensor_syncs) {
  const OperandSpec& spec = request.spec->operands[static_cast<std::size_t>(index)];
  const Tensor& tensor = tensors[spec.tensor];
  OperandSlot slot{};
  OperandSync& op = slot.sync;
  OperandTiles& tiles = slot.tiles;
  tiles.num_axes = 1;
  set_axes(tiles.shape, {});
  set_axes(tiles.ktile, {});
  set_axes(tiles.dtile, {});
  set_axes(tiles.producer_ktile, {});
  if (!tensor.tiled() || !request.live[static_cast<std::size_t>(index)]) return slot;

  const TensorSync& sync = tensor_syncs.at(spec.tensor);
  const TileSet kernel = kernel_tiles_of(spec, tensor);
  const TileMap map = map_of(spec, tensor, request.spec->args);
  op.words = sync.counted.words;
  op.base = sync.counted.base;
  tiles.word_stride = sync.counted.word_stride;
  tiles.base_stride = sync.counted.base_stride;
  if (const auto stamps = node.stamps.find(index); stamps != node.stamps.end()) {
    op.stamps = stamps->second;
  }

  if (map.form() == MapForm::kTable) {
    tiles.num_axes = map.kernel_grid().num_axes;
    set_axes(tiles.shape, map.kernel_grid());
    tiles.map_offsets = memory_.table(map.offsets());
    tiles.map_tiles = memory_.table(map.tiles());
  } else {
    const Tiling& grid = map.form() == MapForm::kPlain ? map.kernel() : kernel.tiling();
    tiles.num_axes = grid.shape.num_axes;
    set_axes(tiles.shape, grid.shape);
    set_axes(tiles.ktile, grid.tile);
    set_axes(tiles.dtile, map.data().tile);
  }

  // Target of a waiter: as given by hand, else what the producers make.
  if (spec.target) {
    const TargetMap& target = *spec.target;
    if (target.is_constant()) {
      op.target = static_cast<std::uint32_t>(target.constant_value());
    } else if (target.form() != MapForm::kFunctor) {
      std::vector<std::int64_t> table;
      for (std::int64_t t = 0; t < tensor.tiles.count(); ++t) {
        table.push_back(target.of(tensor.tiles, t, request.spec->args));
      }
      tiles.targets = memory_.table(narrow(table));
    }
  } else if (sync.targets == nullptr) {
    op.target = sync.target;
  } else if (sync.producer && map.form() == MapForm::kPlain) {
    set_axes(tiles.producer_ktile, sync.producer->tile);
    op.flags |= OperandSync::kClosedFormTarget;
  } else {
    tiles.targets = sync.targets;
  }

  if (tensor.tiles.count() == 1 && map.form() != MapForm::kTable && tiles.targets == nullptr) {
    op.flags |= OperandSync::kSingleTile;
  }
  if (tiles.num_axes == 1) op.flags |= OperandSync::kOneAxis;
  if (is_wide(tiles)) op.flags |= OperandSync::kWide;
  return slot;
}

std::vector<std::byte> SyncState::context(const ContextRequest& request, const NodeSync& node,
                                          const TensorTable& tensors,
                                          const std::map<TensorId, TensorSync>& tensor_syncs) {
  const NodeSpec& spec = *request.spec;
  SyncHeader h{};
  h.abort = abort_;
  h.report = report_;
  h.begun = node.begun.words;
  h.records = records_;
  h.num_records = num_records_;
  h.record_capacity = record_capacity_;
  h.deadline_ns = deadline_ns();
  h.num_works = spec.num_works;
  h.args = spec.args;
  h.node = static_cast<std::uint32_t>(request.node);
  h.rank = static_cast<std::uint32_t>(spec.rank);
  h.flags = request.flags;
  for (std::size_t i = 0; i < spec.operands.size(); ++i) {
    const bool polls = request.live[i] && spec.operands[i].access == Access::kRead;
    if (polls) h.flags |= SyncHeader::kWaits;
  }
  h.order_form = spec.order.form();
  if (h.order_form == OrderForm::kRotation) {
    h.order_offset = spec.order.at(0, spec.num_works);
  } else if (h.order_form == OrderForm::kTable) {
    h.order = memory_.table(spec.order.works());
  }
  h.counter.words = node.counter.words;
  h.counter.base = node.counter.base;
  h.counter.base_stride = node.counter.base_stride;

  const auto slots = static_cast<std::size_t>(num_sync_slots(spec));
  if (slots == 0) return to_bytes(h);
  std::vector<OperandSync> operands(slots);
  std::vector<OperandTiles> tiles(slots);
  for (std::size_t i = 0; i < spec.operands.size(); ++i) {
    if (spec.operands[i].sync_slot < 0) continue;
    const auto at = static_cast<std::size_t>(spec.operands[i].sync_slot);
    const OperandSlot slot =
        operand(request, static_cast<std::int32_t>(i), node, tensors, tensor_syncs);
    operands[at] = slot.sync;
    tiles[at] = slot.tiles;
  }
  std::vector<std::byte> bytes;
  const auto append = [&bytes](const auto& values) {
    const auto raw = std::as_bytes(std::span(values));
    bytes.insert(bytes.end(), raw.begin(), raw.end());
  };
  append(operands);
  append(std::vector<SyncHeader>{h});
  append(tiles);
  return bytes;
}

std::uint64_t SyncState::deadline_ns() const {
  return device_.finds_deadlock() ? 0 : options_.deadline_ns;
}

WaitKernelSync SyncState::wait_kernel(NodeId id, const NodeSpec& spec) const {
  return {report_, deadline_ns(), static_cast<std::uint32_t>(id),
          static_cast<std::uint32_t>(spec.rank)};
}

BaseUpdate SyncState::update_of(const TensorSync& tensor) {
  return {tensor.counted.base, tensor.targets, tensor.target,
          static_cast<std::int32_t>(tensor.counted.bases), tensor.counted.base_stride};
}

std::vector<BaseUpdate> SyncState::updates_of(const NodeSync& node, const NodeSpec& spec) {
  std::vector<BaseUpdate> updates = {
      {node.begun.base, nullptr, static_cast<std::uint32_t>(blocks_of(spec)), 1, 0},
      {node.completed, nullptr, 1, 1, 0}};
  if (node.counter.words != nullptr) {
    updates.push_back({node.counter.base, node.counter_targets, node.counter_target,
                       static_cast<std::int32_t>(node.counter.bases), node.counter.base_stride});
  }
  return updates;
}

Launch SyncState::base_update(NodeId id, const std::vector<BaseUpdate>& updates) {
  std::vector<BaseUpdate> entries;
  for (const BaseUpdate& update : updates) {
    for (std::int32_t at = 0; at < update.count; at += kBaseUpdateWords) {
      entries.push_back({update.base + static_cast<std::int64_t>(at) * update.stride,
                         update.targets == nullptr ? nullptr : update.targets + at, update.target,
                         std::min(kBaseUpdateWords, update.count - at), update.stride});
    }
  }
  const auto num_entries = static_cast<std::int32_t>(entries.size());
  Launch launch;
  launch.node = id;
  launch.name = "base update";
  launch.kernel = &device_.kernels().find(kBaseUpdateKernel);
  launch.num_blocks = std::min<std::int64_t>(ceil_div(num_entries, kBaseUpdateThreads), 64);
  launch.num_works = launch.num_blocks;
  launch.resources = {.threads = kBaseUpdateThreads};
  launch.abort = abort_;
  launch.cost = {.prologue = 0, .per_work = 0};
  launch.args = to_bytes(BaseUpdateArgs{memory_.table(entries), abort_, num_entries});
  return launch;
}

bool SyncState::aborted() const {
  // The report is published with a system-scope release after its other fields.
  return std::atomic_ref<std::uint32_t>(report_->state).load(std::memory_order_acquire) ==
         HangReport::kComplete;
}

std::uint32_t SyncState::read_word(const std::uint32_t* word) const {
  std::uint32_t value = 0;
  device_.download(&value, word, sizeof value);
  return value;
}

std::vector<SemaphoreView> SyncState::view(const TensorSync& tensor) const {
  const CountedWords& c = tensor.counted;
  std::vector<std::uint32_t> words(c.num_words());
  std::vector<std::uint32_t> bases(c.num_base_words());
  device_.download(words.data(), c.words, words.size() * sizeof(std::uint32_t));
  device_.download(bases.data(), c.base, bases.size() * sizeof(std::uint32_t));
  std::vector<SemaphoreView> views;
  for (std::int64_t t = 0; t < c.count; ++t) {
    views.push_back({words[static_cast<std::size_t>(t * c.word_stride)],
                     bases[static_cast<std::size_t>(t * c.base_stride)],
                     static_cast<std::uint32_t>(tensor.arrivals[static_cast<std::size_t>(t)])});
  }
  return views;
}

void SyncState::reset() {
  memory_.reset();
  *report_ = HangReport{};
}

void SyncState::allocate_records(std::uint32_t capacity) {
  records_ = static_cast<TileRecord*>(device_.allocate(sizeof(TileRecord) * capacity));
  record_capacity_ = capacity;
}

std::vector<TileRecord> SyncState::take_records(std::uint64_t& dropped) {
  const std::uint32_t claimed = read_word(num_records_);
  std::vector<TileRecord> records(std::min(claimed, record_capacity_));
  if (!records.empty()) {
    device_.download(records.data(), records_, records.size() * sizeof(TileRecord));
  }
  device_.fill(num_records_, 0, sizeof claimed);
  dropped = claimed - records.size();
  // Opened by a block that found no work.
  std::erase_if(records, [](const TileRecord& record) { return record.begin_ns == 0; });
  return records;
}

}  // namespace tileweave
