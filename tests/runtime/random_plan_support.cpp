#include "tests/runtime/random_plan.h"

#include <algorithm>
#include <numeric>
#include <random>
#include <utility>

namespace tileweave {
namespace {

constexpr std::int64_t kMaxTiles = 14;

class Random {
 public:
  explicit Random(std::uint64_t seed) : engine_(seed) {}
  /// In [0, n).
  std::int64_t below(std::int64_t n) {
    return static_cast<std::int64_t>(engine_() % static_cast<std::uint64_t>(n));
  }
  std::int64_t between(std::int64_t low, std::int64_t high) { return low + below(high - low + 1); }
  bool chance(double probability) {
    return static_cast<double>(engine_() >> 11) * 0x1p-53 < probability;
  }
  std::uint32_t word() { return static_cast<std::uint32_t>(engine_()); }
  template <class T>
  const T& pick(const std::vector<T>& from) {
    return from[static_cast<std::size_t>(below(static_cast<std::int64_t>(from.size())))];
  }
  template <class T>
  void shuffle(std::vector<T>& values) {
    for (std::size_t i = values.size(); i > 1; --i) {
      std::swap(values[i - 1],
                values[static_cast<std::size_t>(below(static_cast<std::int64_t>(i)))]);
    }
  }

 private:
  std::mt19937_64 engine_;
};

Shape random_shape(Random& random, std::int64_t max_elements) {
  Shape shape;
  shape.num_axes = static_cast<int>(random.between(1, 3));
  std::int64_t room = max_elements;
  for (int a = 0; a < shape.num_axes; ++a) {
    shape[a] = random.chance(0.1) ? 1 : random.between(1, std::min<std::int64_t>(room, 17));
    room = std::max<std::int64_t>(1, room / shape[a]);
  }
  return shape;
}

/// Grid of boxes of one size, ragged as it comes.
TileSet random_grid(Random& random, const Shape& shape) {
  Tiling tiling{shape, shape};
  for (int a = 0; a < shape.num_axes; ++a) {
    if (random.chance(0.7)) tiling.tile[a] = random.between(1, shape[a]);
  }
  // A tile may be longer than its axis.
  if (random.chance(0.05)) tiling.tile[0] = shape[0] + 3;
  while (tiling.count() > kMaxTiles) {
    const int a = static_cast<int>(random.below(shape.num_axes));
    tiling.tile[a] = std::min(shape[a], tiling.tile[a] + 1 + tiling.tile[a] / 2);
  }
  return TileSet::plain(tiling);
}

/// Boxes from cutting a box in two again and again, in any order.
std::vector<Box> random_cuts(Random& random, const Box& whole, std::int64_t max_boxes) {
  std::vector<Box> boxes = {whole};
  const std::int64_t attempts = random.between(0, 2 * max_boxes);
  for (std::int64_t i = 0; i < attempts && std::ssize(boxes) < max_boxes; ++i) {
    Box& box = boxes[static_cast<std::size_t>(random.below(std::ssize(boxes)))];
    const int a = static_cast<int>(random.below(box.size.num_axes));
    if (box.size[a] < 2) continue;
    Box rest = box;
    const std::int64_t first = random.between(1, box.size[a] - 1);
    box.size[a] = first;
    rest.begin[a] += first;
    rest.size[a] -= first;
    boxes.push_back(rest);
  }
  random.shuffle(boxes);
  return boxes;
}

Box whole_box(const Shape& shape) {
  return {Coord::filled(shape.num_axes, 0), shape};
}

TileSet random_partition(Random& random, const Shape& shape) {
  if (random.chance(0.7)) return random_grid(random, shape);
  return TileSet::table(shape, random_cuts(random, whole_box(shape), kMaxTiles));
}

/// Any boxes, with overlaps and holes.
TileSet random_boxes(Random& random, const Shape& shape) {
  std::vector<Box> boxes;
  const std::int64_t count = random.between(1, 6);
  for (std::int64_t i = 0; i < count; ++i) {
    Box box = whole_box(shape);
    for (int a = 0; a < shape.num_axes; ++a) {
      box.begin[a] = random.below(shape[a]);
      box.size[a] = random.between(1, shape[a] - box.begin[a]);
    }
    boxes.push_back(box);
  }
  return TileSet::loose_table(shape, std::move(boxes));
}

class PlanMaker {
 public:
  explicit PlanMaker(const RandomPlanOptions& options)
      : options_(options), random_(options.seed * 0x9e3779b97f4a7c15ULL + 0x1234567U) {}

  MixPlan make() {
    PlanOptions& plan = mix_.plan.options();
    plan.name = "random plan " + std::to_string(options_.seed);
    plan.num_streams = options_.num_streams > 0 ? options_.num_streams
                                                : static_cast<std::int32_t>(random_.between(1, 3));
    plan.edge = random_edge();
    // Streams of all ranks must fit the hardware queues.
    num_ranks_ = !random_.chance(0.3) ? 1 : plan.num_streams == 3 ? 2 : 3;
    is_chain_ = random_.chance(0.25);
    tick_ = add_filled(mix_, {.name = "tick", .shape = {2, 3}, .kind = TensorKind::kState},
                       random_.word());
    states_.push_back({tick_});
    for (std::int64_t i = random_.between(1, 2); i > 0; --i) {
      constants_.push_back(add_filled(mix_,
                                      {.name = "constant " + std::to_string(i),
                                       .shape = random_shape(random_, options_.max_elements),
                                       .kind = TensorKind::kConstant},
                                      random_.word()));
    }
    const std::int64_t num_positions = random_.between(2, options_.max_positions);
    for (position_ = 0; position_ < num_positions; ++position_) add_position();
    while (!partly_written_.empty()) {
      add_position();
      ++position_;
    }
    add_last_node();
    return std::move(mix_);
  }

 private:
  struct Value {
    TensorId tensor = kNoTensor;
    std::int32_t written_at = 0;  // the last position that writes it
    bool read = false;
  };
  struct State {
    TensorId tensor = kNoTensor;
    std::int32_t written_at = -1;
  };
  /// A value of which some boxes are still to be written, by later nodes.
  struct PartlyWritten {
    TensorId tensor;
    std::vector<std::vector<Box>> parts;
  };

  EdgePolicy random_edge() {
    const std::int64_t kind = random_.below(10);
    EdgePolicy edge;
    edge.kind = kind == 0 ? EdgeKind::kFull : kind == 1 ? EdgeKind::kProgrammatic : EdgeKind::kTile;
    edge.start = std::vector<StartRule>{
        StartRule::kNone, StartRule::kNone, StartRule::kWaitAll, StartRule::kLaunchCompletion,
        StartRule::kWaitFirst}[static_cast<std::size_t>(random_.below(5))];
    if (edge.start == StartRule::kWaitFirst && options_.wait_first == WaitFirst::kLeftOut) {
      edge.start = StartRule::kLaunchCompletion;
    }
    return edge;
  }

  void add_position() {
    const std::size_t before = values_.size();
    bool any = false;
    for (std::int32_t rank = 0; rank < num_ranks_; ++rank) {
      if (rank + 1 < num_ranks_ ? random_.chance(0.2) : any && random_.chance(0.2)) continue;
      add_node(rank, before);
      any = true;
    }
  }

  /// Values that a node at this position may read.
  std::vector<std::size_t> readable(std::size_t before) const {
    std::vector<std::size_t> found;
    for (std::size_t v = 0; v < before; ++v) {
      if (values_[v].written_at < position_) found.push_back(v);
    }
    return found;
  }

  MixNode begin_node(std::int32_t rank) {
    MixNode node{.name = "node " + std::to_string(mix_.nodes.size()),
                 .rank = rank,
                 .position = position_,
                 .salt = random_.word(),
                 .delay_seed = random_.word(),
                 .max_delay_ns = options_.max_delay_ns};
    if (random_.chance(0.7)) node.edge = random_edge();
    node.lanes = random_.chance(0.3) ? 2 : 1;
    node.resources.threads = static_cast<std::int32_t>(32 * random_.between(1, 4));
    node.resources.shared_bytes =
        random_.chance(0.5) ? 0 : random_.below(options_.max_shared / 128) * 128;
    return node;
  }

  void add_node(std::int32_t rank, std::size_t before) {
    MixNode node = begin_node(rank);
    if (add_in_place(node, before)) return;
    choose_outputs(node);
    choose_inputs(node, before);
    finish(node);
  }

  /// y takes the buffer of x: every work reads and writes the same tile.
  bool add_in_place(MixNode& node, std::size_t before) {
    const std::vector<std::size_t> candidates = readable(before);
    if (candidates.empty() || !random_.chance(0.15)) return false;
    const std::size_t v = random_.pick(candidates);
    const TensorSpec old = mix_.plan.tensors()[values_[v].tensor].spec;
    if (values_[v].read || old.output || old.shares_buffer_with != kNoTensor) return false;
    const TileSet tiles = random_partition(random_, old.shape);
    TensorSpec spec{.name = "value " + std::to_string(num_values_++) + " in place",
                    .shape = old.shape,
                    .shares_buffer_with = values_[v].tensor,
                    .output = random_.chance(0.4)};
    tile(spec);
    const TensorId y = add_value(mix_, spec);
    node.num_works = tiles.count();
    node.inputs = {{.tensor = values_[v].tensor, .kernel_tiles = tiles}};
    node.outputs = {{.tensor = y, .kernel_tiles = tiles}};
    values_.erase(values_.begin() + static_cast<std::ptrdiff_t>(v));
    values_.push_back({y, position_});
    finish(node);
    return true;
  }

  void tile(TensorSpec& spec) {
    if (random_.chance(0.12)) return;  // no semaphores
    spec.tile_table = random_partition(random_, spec.shape);
    spec.word_stride = random_.chance(0.3) ? static_cast<std::int32_t>(random_.between(1, 9)) : 0;
  }

  TensorId new_value(const Shape& shape) {
    TensorSpec spec{.name = "value " + std::to_string(num_values_++),
                    .shape = shape,
                    .output = random_.chance(0.4)};
    tile(spec);
    return add_value(mix_, spec);
  }

  void choose_outputs(MixNode& node) {
    const std::int64_t num_outputs = random_.chance(0.25) ? 2 : 1;
    std::vector<std::int64_t> counts;
    for (std::int64_t o = 0; o < num_outputs; ++o) {
      MixOperandSpec output =
          o == 0 && !partly_written_.empty() && random_.chance(0.7) ? next_part() : new_output();
      counts.push_back(output.kernel_tiles.count());
      node.outputs.push_back(std::move(output));
    }
    node.num_works = random_.chance(0.6) ? counts[0] : random_.between(1, counts[0]);
    for (std::size_t o = 0; o < node.outputs.size(); ++o) {
      if (counts[o] == node.num_works && random_.chance(0.7)) continue;  // work w writes tile w
      auto& tiles = node.outputs[o].tiles_of_work;
      tiles.resize(static_cast<std::size_t>(node.num_works));
      for (std::int64_t k = 0; k < counts[o]; ++k) {
        tiles[static_cast<std::size_t>(random_.below(node.num_works))].push_back(k);
      }
    }
  }

  MixOperandSpec new_output() {
    Shape shape = random_shape(random_, options_.max_elements);
    if (num_ranks_ > 1 && random_.chance(0.4)) {  // a rank axis in front
      Shape ranked{num_ranks_};
      for (int a = 0; a < shape.num_axes; ++a) ranked.v[ranked.num_axes++] = shape[a];
      shape = ranked;
    }
    const TensorId id = new_value(shape);
    if (shape[0] < 2 || !random_.chance(0.3)) {
      values_.push_back({id, position_});
      return {.tensor = id, .kernel_tiles = random_partition(random_, shape)};
    }
    // This node writes the first slices of axis 0, later ones the rest.
    std::vector<std::vector<Box>> parts;
    std::int64_t at = 0;
    while (at < shape[0]) {
      Box part = whole_box(shape);
      part.begin[0] = at;
      part.size[0] = parts.size() == 2 ? shape[0] - at : random_.between(1, shape[0] - at);
      at += part.size[0];
      parts.push_back(random_cuts(random_, part, 6));
    }
    partly_written_.push_back({id, std::move(parts)});
    return next_part();
  }

  MixOperandSpec next_part() {
    PartlyWritten& value = partly_written_.front();
    const TensorId id = value.tensor;
    MixOperandSpec output{.tensor = id,
                          .kernel_tiles = TileSet::loose_table(mix_.plan.tensors()[id].spec.shape,
                                                               value.parts.back())};
    value.parts.pop_back();
    if (value.parts.empty()) {
      values_.push_back({id, position_});
      partly_written_.erase(partly_written_.begin());
    }
    return output;
  }

  void choose_inputs(MixNode& node, std::size_t before) {
    const std::size_t room = kMaxMixOperands - node.outputs.size();
    const std::vector<std::size_t> found = readable(before);
    const auto wanted = static_cast<std::size_t>(
        is_chain_ ? 1
                  : random_.between(1, static_cast<std::int64_t>(std::min<std::size_t>(room, 4))));
    for (std::size_t i = 0; i < wanted && !found.empty(); ++i) {
      // The newest ones are read most, so that long chains come about.
      const std::size_t v =
          is_chain_ || random_.chance(0.5)
              ? found[found.size() - 1 - std::min<std::size_t>(i, found.size() - 1)]
              : random_.pick(found);
      values_[v].read = true;
      const TensorId id = values_[v].tensor;
      const bool twice = std::any_of(node.inputs.begin(), node.inputs.end(),
                                     [&](const MixOperandSpec& in) { return in.tensor == id; });
      if (twice && random_.chance(0.8)) continue;
      node.inputs.push_back(random_input(id, node.num_works));
    }
    if (node.inputs.empty() || (node.inputs.size() < room && random_.chance(0.1))) {
      const State& state = random_.pick(states_);
      const TensorId id =
          node.inputs.empty() || state.written_at >= position_ ? tick_ : state.tensor;
      node.inputs.push_back(random_input(id, node.num_works));
    }
    if (node.inputs.size() < room && random_.chance(0.3)) {
      node.inputs.push_back(random_input(random_.pick(constants_), node.num_works));
    }
    if (node.inputs.size() + 1 < room && node.outputs.size() < 2 && random_.chance(0.12)) {
      add_own_state(node);
    }
  }

  /// A state that this node alone updates, every work its own tile.
  void add_own_state(MixNode& node) {
    const Shape shape{node.num_works, random_.between(1, 4)};
    const TensorId id = add_filled(mix_,
                                   {.name = "state " + std::to_string(states_.size()),
                                    .shape = shape,
                                    .kind = TensorKind::kState},
                                   random_.word());
    const TileSet rows = TileSet::plain({shape, {1, shape[1]}});
    node.inputs.push_back({.tensor = id, .kernel_tiles = rows});
    node.outputs.push_back({.tensor = id, .kernel_tiles = rows});
    states_.push_back({id, position_});
  }

  MixOperandSpec random_input(TensorId id, std::int64_t num_works) {
    const Tensor& tensor = mix_.plan.tensors()[id];
    MixOperandSpec input{.tensor = id};
    const std::int64_t how = random_.below(10);
    if (how >= 2) {
      input.kernel_tiles = how < 7 ? random_partition(random_, tensor.spec.shape)
                                   : random_boxes(random_, tensor.spec.shape);
    }
    if (tensor.tiled() && random_.chance(0.15)) {
      input.view = random_partition(random_, tensor.spec.shape);
    }
    const std::int64_t count = input.kernel_tiles.empty() ? 1 : input.kernel_tiles.count();
    if ((count == num_works || count == 1) && random_.chance(0.7)) return input;
    for (std::int64_t w = 0; w < num_works; ++w) {
      std::vector<std::int64_t>& tiles = input.tiles_of_work.emplace_back();
      const std::int64_t touched = std::min<std::int64_t>(count, random_.between(1, 3));
      while (std::ssize(tiles) < touched) {
        const std::int64_t k = random_.below(count);
        if (std::find(tiles.begin(), tiles.end(), k) == tiles.end()) tiles.push_back(k);
      }
    }
    return input;
  }

  void finish(MixNode& node) {
    if (random_.chance(0.35)) node.num_blocks = random_.between(1, node.num_works);
    if (random_.chance(0.15)) node.taking = MixOrder::kClaimed;
    const std::int64_t order = random_.below(3);
    if (order == 1) node.order = TileOrder::rotation(random_.below(node.num_works));
    if (order == 2) {
      std::vector<std::int32_t> works(static_cast<std::size_t>(node.num_works));
      std::iota(works.begin(), works.end(), 0);
      random_.shuffle(works);
      node.order = TileOrder::table(std::move(works));
    }
    add_mix(mix_, std::move(node));
  }

  /// Advances the tick, so that the next run computes something else.
  void add_last_node() {
    MixNode node = begin_node(0);
    const Shape shape = mix_.plan.tensors()[tick_].spec.shape;
    const TileSet tiles = TileSet::plain({shape, {1, 3}});
    node.num_works = 2;
    node.inputs = {{.tensor = tick_, .kernel_tiles = tiles}};
    const std::vector<std::size_t> found = readable(values_.size());
    if (!found.empty()) {
      node.inputs.push_back(random_input(values_[random_.pick(found)].tensor, node.num_works));
    }
    node.outputs = {{.tensor = tick_, .kernel_tiles = tiles}};
    finish(node);
  }

  RandomPlanOptions options_;
  Random random_;
  MixPlan mix_;
  std::int32_t num_ranks_ = 1;
  bool is_chain_ = false;
  std::int32_t position_ = 0;
  TensorId tick_ = kNoTensor;
  std::vector<TensorId> constants_;
  std::vector<Value> values_;
  std::vector<State> states_;
  std::vector<PartlyWritten> partly_written_;
  std::int64_t num_values_ = 0;
};

}  // namespace

MixPlan random_plan(const RandomPlanOptions& options) {
  return PlanMaker(options).make();
}

std::vector<TensorId> observable(const MixPlan& mix) {
  std::vector<TensorId> found;
  const TensorTable& tensors = mix.plan.tensors();
  for (TensorId id = 0; id < tensors.size(); ++id) {
    const TensorSpec& spec = tensors[id].spec;
    if (spec.output || spec.kind == TensorKind::kState) found.push_back(id);
  }
  return found;
}

}  // namespace tileweave
