#include <algorithm>
#include <numeric>
#include <optional>

#include "tests/plan/element_check.h"
#include "tests/plan/random_plans.h"
#include "tests/plan/small_plans.h"
#include "tileweave/core/format.h"

namespace tileweave::testing {
namespace {

using Lists = std::vector<std::vector<std::int64_t>>;

std::int64_t draw(Random& random, std::int64_t low, std::int64_t high) {
  return std::uniform_int_distribution<std::int64_t>(low, high)(random);
}
bool chance(Random& random, int percent) {
  return draw(random, 1, 100) <= percent;
}

Shape random_shape(Random& random) {
  Shape shape;
  shape.num_axes = static_cast<int>(draw(random, 1, 3));
  for (int a = 0; a < shape.num_axes; ++a) shape[a] = draw(random, 1, shape.num_axes == 3 ? 4 : 7);
  return shape;
}

/// Halves a box at random until it is small enough or luck ends: a partition.
void cut(Random& random, const Box& box, std::vector<Box>& boxes) {
  const int axis = static_cast<int>(draw(random, 0, box.size.num_axes - 1));
  if (box.size[axis] < 2 || chance(random, 35)) {
    boxes.push_back(box);
    return;
  }
  Box low = box;
  Box high = box;
  low.size[axis] = draw(random, 1, box.size[axis] - 1);
  high.begin[axis] += low.size[axis];
  high.size[axis] -= low.size[axis];
  cut(random, low, boxes);
  cut(random, high, boxes);
}

TileSet random_partition(Random& random, const Shape& shape) {
  if (chance(random, 30)) {
    std::vector<Box> boxes;
    cut(random, {Coord::filled(shape.num_axes, 0), shape}, boxes);
    std::shuffle(boxes.begin(), boxes.end(), random);
    return TileSet::table(shape, boxes);
  }
  Coord tile = shape;
  for (int a = 0; a < shape.num_axes; ++a) tile[a] = draw(random, 1, shape[a] + 1);
  return TileSet::plain({shape, tile});
}

/// Boxes that may overlap and leave holes: a halo read.
TileSet random_boxes(Random& random, const Shape& shape) {
  std::vector<Box> boxes;
  for (std::int64_t n = draw(random, 1, 4); n > 0; --n) {
    Box box{shape, shape};
    for (int a = 0; a < shape.num_axes; ++a) {
      box.begin[a] = draw(random, 0, shape[a] - 1);
      box.size[a] = draw(random, 1, shape[a] - box.begin[a]);
    }
    boxes.push_back(box);
  }
  return TileSet::loose_table(shape, boxes);
}

void set_works(OperandSpec& operand, Lists tiles_of_works) {
  operand.tiles_of_work = [lists = std::move(tiles_of_works)](std::int64_t w) {
    return lists[static_cast<std::size_t>(w)];
  };
}

Lists works_of(const NodeSpec& node, const OperandSpec& operand, const Tensor& tensor) {
  Lists lists;
  for (std::int64_t w = 0; w < node.num_works; ++w) {
    lists.push_back(kernel_tiles_of_work(operand, tensor, w));
  }
  return lists;
}

void set_map(OperandSpec& operand, const Tensor& tensor, const Lists& lists) {
  std::vector<std::int32_t> offsets = {0};
  std::vector<std::int32_t> tiles;
  for (const auto& list : lists) {
    for (const std::int64_t t : list) tiles.push_back(static_cast<std::int32_t>(t));
    offsets.push_back(static_cast<std::int32_t>(tiles.size()));
  }
  operand.map = TileMap::table(kernel_tiles_of(operand, tensor).grid(), offsets, tiles);
}

/// A value tensor and how much of it is made: kernel tiles still to be written, if any.
struct Growing {
  TensorId id;
  TileSet kernel_tiles;
  std::vector<std::int64_t> left;
  std::int32_t ready_after = -1;  // position of the last node that wrote to it
};

class Generator {
 public:
  explicit Generator(Random& random) : random_(random) {}

  Plan run() {
    constant_ = add_tensor(TensorKind::kConstant);
    state_ = add_tensor(TensorKind::kState);
    const std::int64_t num_nodes = draw(random_, 2, 9);
    num_ranks_ = static_cast<std::int32_t>(draw(random_, 1, 3));
    for (std::int64_t n = 0; n < num_nodes; ++n) add_node(n);
    return std::move(plan_);
  }

 private:
  TensorId add_tensor(TensorKind kind) {
    TensorSpec spec{.name = "T" + std::to_string(plan_.tensors().size()),
                    .shape = chance(random_, 25) && plan_.tensors().size() > 0
                                 ? plan_.tensors()[0].spec.shape
                                 : random_shape(random_),
                    .kind = kind};
    if (kind != TensorKind::kConstant && chance(random_, 85)) {
      spec.tile_table = random_partition(random_, spec.shape);
    }
    return plan_.tensor(spec);
  }

  void place(NodeSpec& node) {
    const bool first = plan_.nodes().empty();
    node.position = first ? 0 : plan_.nodes().back().position;
    const std::int32_t last_rank = first ? -1 : plan_.nodes().back().rank;
    if (last_rank + 1 < num_ranks_ && chance(random_, 40)) {
      node.rank = static_cast<std::int32_t>(draw(random_, last_rank + 1, num_ranks_ - 1));
    } else {
      node.position += first ? 0 : static_cast<std::int32_t>(draw(random_, 1, 2));
      node.rank = static_cast<std::int32_t>(draw(random_, 0, num_ranks_ - 1));
    }
  }

  void add_node(std::int64_t index) {
    node_ = node("N" + std::to_string(index), draw(random_, 1, 6), {});
    place(node_);
    node_.integrated = chance(random_, 90);
    next_slot_ = 0;
    node_.args.v[0] = draw(random_, 0, 9);
    for (std::int64_t reads = draw(random_, 0, 3); reads > 0; --reads) add_read();
    if (index == 0 && chance(random_, 50)) {
      add_write(state_, random_partition(random_, plan_.tensors()[state_].spec.shape), true);
      state_ready_after_ = node_.position;
    }
    for (std::int64_t writes = draw(random_, 1, 2); writes > 0; --writes) add_value();
    random_order();
    plan_.add(node_);
  }

  std::int32_t slot(TensorId id) {
    const bool takes = node_.integrated && plan_.tensors()[id].tiled() && chance(random_, 88);
    return takes ? next_slot_++ : -1;
  }

  void add_read() {
    std::vector<const Growing*> ready;
    for (const Growing& value : values_) {
      if (value.left.empty() && value.ready_after < node_.position) ready.push_back(&value);
    }
    TensorId id = constant_;
    if (!ready.empty() && chance(random_, 80)) {
      id = ready[static_cast<std::size_t>(
                     draw(random_, 0, static_cast<std::int64_t>(ready.size()) - 1))]
               ->id;
    } else if (state_ready_after_ < node_.position && chance(random_, 60) &&
               !plan_.nodes().empty()) {
      id = state_;
    }
    const Tensor& tensor = plan_.tensors()[id];
    const Shape& shape = tensor.spec.shape;
    OperandSpec operand = read(id, {}, slot(id));
    if (chance(random_, 80)) {
      operand.kernel_tiles =
          chance(random_, 25) ? random_boxes(random_, shape) : random_partition(random_, shape);
    }
    if (id == constant_ && chance(random_, 50)) operand.when = ReadTime::kPrologue;
    read_some_tiles(operand, tensor);
    if (operand.sync_slot >= 0) {
      if (chance(random_, 25)) operand.view = random_partition(random_, shape);
      make_raw(operand, tensor);
    }
    node_.operands.push_back(operand);
  }

  void read_some_tiles(OperandSpec& operand, const Tensor& tensor) {
    const std::int64_t count = kernel_tiles_of(operand, tensor).count();
    if (count == 1 || (count >= node_.num_works && chance(random_, 50))) return;
    Lists lists(static_cast<std::size_t>(node_.num_works));
    for (auto& list : lists) {
      for (std::int64_t n = draw(random_, 0, 3); n > 0; --n) {
        list.push_back(draw(random_, 0, count - 1));
      }
    }
    set_works(operand, lists);
  }

  /// By hand what would be derived, in one of the forms.
  void make_raw(OperandSpec& operand, const Tensor& tensor) {
    const TileSet kernel = kernel_tiles_of(operand, tensor);
    const TileSet& led_to = operand.view.empty() ? tensor.tiles : operand.view;
    if (chance(random_, 30)) {
      if (kernel.is_plain() && led_to.is_plain() && chance(random_, 50)) {
        operand.map = TileMap::plain(kernel.tiling(), led_to.tiling());
        if (chance(random_, 50)) {
          operand.map = TileMap::functor(
              kernel.grid(), led_to.tiling(), [kernel, led_to](const Coord& k, const LaunchArgs&) {
                return tiles_meeting(led_to.tiling(), kernel.tiling().box(k));
              });
        }
      } else {
        set_map(operand, tensor, tiles_by_elements(operand, tensor, node_.args));
      }
    }
    if (operand.access == Access::kRead && chance(random_, 30)) {
      const std::vector<std::int64_t> arrivals =
          check_elements(plan_).arrivals[static_cast<std::size_t>(operand.tensor)];
      const bool equal = std::all_of(arrivals.begin(), arrivals.end(),
                                     [&](std::int64_t n) { return n == arrivals[0]; });
      if (equal && chance(random_, 60)) {
        operand.target = TargetMap::constant(arrivals[0]);
      } else if (chance(random_, 50)) {
        operand.target = TargetMap::table(arrivals);
      } else {
        // Launch arguments reach the functor: the node's first one is taken off again.
        operand.target = TargetMap::functor([arrivals, tiles = tensor.tiles, off = node_.args.v[0]](
                                                const Coord& at, const LaunchArgs& args) {
          return arrivals[static_cast<std::size_t>(tiles.linear(at))] + args.v[0] - off;
        });
      }
    }
  }

  void add_value() {
    std::vector<Growing*> open;
    for (Growing& value : values_) {
      if (!value.left.empty() && !written_here(value.id)) open.push_back(&value);
    }
    if (open.empty() || chance(random_, 50)) {
      const TensorId id = add_tensor(TensorKind::kValue);
      Growing value{id, random_partition(random_, plan_.tensors()[id].spec.shape), {}, -1};
      value.left.resize(static_cast<std::size_t>(value.kernel_tiles.count()));
      std::iota(value.left.begin(), value.left.end(), 0);
      std::shuffle(value.left.begin(), value.left.end(), random_);
      values_.push_back(value);
      open = {&values_.back()};
    }
    Growing& value = *open[static_cast<std::size_t>(
        draw(random_, 0, static_cast<std::int64_t>(open.size()) - 1))];
    std::vector<std::int64_t> mine = value.left;
    if (chance(random_, 30))
      mine.resize(
          static_cast<std::size_t>(draw(random_, 1, static_cast<std::int64_t>(mine.size()))));
    value.left.erase(value.left.begin(),
                     value.left.begin() + static_cast<std::ptrdiff_t>(mine.size()));
    value.ready_after = node_.position;
    write_tiles(value.id, value.kernel_tiles, mine);
  }

  bool written_here(TensorId id) const {
    return std::any_of(node_.operands.begin(), node_.operands.end(), [&](const OperandSpec& o) {
      return o.tensor == id && o.access == Access::kWrite;
    });
  }

  void add_write(TensorId id, const TileSet& kernel_tiles, bool some) {
    std::vector<std::int64_t> tiles(static_cast<std::size_t>(kernel_tiles.count()));
    std::iota(tiles.begin(), tiles.end(), 0);
    if (some) tiles.resize(static_cast<std::size_t>(draw(random_, 1, kernel_tiles.count())));
    write_tiles(id, kernel_tiles, tiles);
  }

  void write_tiles(TensorId id, const TileSet& kernel_tiles,
                   const std::vector<std::int64_t>& tiles) {
    OperandSpec operand = write(id, kernel_tiles, slot(id));
    Lists lists(static_cast<std::size_t>(node_.num_works));
    const bool reduce = node_.counter.arrivals.empty() && chance(random_, 25);
    if (reduce) {
      operand.reduction = Reduction::kLastArriver;
      node_.counter.arrivals.assign(static_cast<std::size_t>(kernel_tiles.count()), 0);
    }
    for (const std::int64_t k : tiles) {
      std::vector<std::int64_t> works(static_cast<std::size_t>(node_.num_works));
      std::iota(works.begin(), works.end(), 0);
      std::shuffle(works.begin(), works.end(), random_);
      works.resize(static_cast<std::size_t>(reduce ? draw(random_, 1, node_.num_works) : 1));
      for (const std::int64_t w : works) lists[static_cast<std::size_t>(w)].push_back(k);
      if (reduce) {
        node_.counter.arrivals[static_cast<std::size_t>(k)] =
            static_cast<std::uint32_t>(works.size());
      }
    }
    set_works(operand, lists);
    if (operand.sync_slot >= 0) make_raw(operand, plan_.tensors()[id]);
    node_.operands.push_back(operand);
  }

  void random_order() {
    if (chance(random_, 30)) node_.order = TileOrder::rotation(draw(random_, -9, 9));
    if (chance(random_, 30)) {
      std::vector<std::int32_t> works(static_cast<std::size_t>(node_.num_works));
      std::iota(works.begin(), works.end(), 0);
      std::shuffle(works.begin(), works.end(), random_);
      node_.order = TileOrder::table(works);
    }
    if (chance(random_, 50)) node_.num_blocks = draw(random_, 1, node_.num_works);
  }

  Random& random_;
  Plan plan_;
  NodeSpec node_;
  std::int32_t next_slot_ = 0;
  std::int32_t num_ranks_ = 1;
  TensorId constant_ = kNoTensor;
  TensorId state_ = kNoTensor;
  std::int32_t state_ready_after_ = -1;
  std::vector<Growing> values_;
};

class Mutation {
 public:
  Mutation(Plan& plan, Random& random) : plan_(plan), random_(random) {}

  std::string run() {
    NodeSpec& node = plan_.nodes()[static_cast<std::size_t>(
        draw(random_, 0, static_cast<std::int64_t>(plan_.nodes().size()) - 1))];
    const std::string of = " of " + node.name;
    const std::int64_t kind = draw(random_, 0, 8);
    if (kind == 0) return change_order(node) + of;
    if (kind == 1) return move_node(node);
    if (kind == 2) return change_counter(node);
    if (node.operands.empty()) return "";
    OperandSpec& operand = node.operands[static_cast<std::size_t>(
        draw(random_, 0, static_cast<std::int64_t>(node.operands.size()) - 1))];
    const Tensor& tensor = plan_.tensors()[operand.tensor];
    const bool waits = operand.sync_slot >= 0 && tensor.tiled();
    std::string what;
    if (kind <= 4 && waits) what = change_map(node, operand, tensor);
    if (kind == 5 && waits && operand.access == Access::kRead) {
      what = change_target(operand, tensor);
    }
    if (kind == 6) what = change_works(node, operand, tensor);
    if (kind == 7) what = drop_slot(node, operand);
    if (kind == 8) what = change_operand(operand, tensor);
    return what.empty() ? "" : what + " on " + tensor.spec.name + of;
  }

 private:
  std::size_t index(std::size_t size) {
    return static_cast<std::size_t>(draw(random_, 0, static_cast<std::int64_t>(size) - 1));
  }

  std::string change_order(NodeSpec& node) {
    std::vector<std::int32_t> works;
    for (std::int64_t p = 0; p < node.num_works; ++p) {
      works.push_back(static_cast<std::int32_t>(node.order.at(p, node.num_works)));
    }
    const std::int64_t how = draw(random_, 0, 4);
    if (how == 0) std::swap(works[index(works.size())], works[index(works.size())]);
    if (how == 1) works[index(works.size())] = works[index(works.size())];
    if (how == 2) works.pop_back();
    if (how == 3) works.push_back(static_cast<std::int32_t>(draw(random_, -1, node.num_works)));
    if (how == 4) node.num_blocks = draw(random_, 0, node.num_works + 1);
    node.order = TileOrder::table(works);
    return "order changed";
  }

  std::string move_node(NodeSpec& node) {
    auto& nodes = plan_.nodes();
    const std::size_t at = static_cast<std::size_t>(&node - nodes.data());
    const std::size_t to = index(nodes.size());
    if (at == to) return "";
    const std::string what = "nodes " + node.name + " and " + nodes[to].name + " swapped";
    std::swap(nodes[at], nodes[to]);
    std::swap(nodes[at].position, nodes[to].position);
    std::swap(nodes[at].rank, nodes[to].rank);
    return what;
  }

  std::string change_counter(NodeSpec& node) {
    if (node.counter.arrivals.empty()) return "";
    if (chance(random_, 20)) {
      node.counter.arrivals.pop_back();
    } else {
      node.counter.arrivals[index(node.counter.arrivals.size())] += chance(random_, 50) ? 1U : ~0U;
    }
    for (std::uint32_t& count : node.counter.arrivals) count &= 0xffffU;
    return "counter changed of " + node.name;
  }

  std::string change_map(const NodeSpec& node, OperandSpec& operand, const Tensor& tensor) {
    Lists lists = tiles_by_elements(operand, tensor, node.args);
    auto& list = lists[index(lists.size())];
    const std::int64_t how = draw(random_, 0, 3);
    if (how == 3) {
      list.push_back(draw(random_, 0, tensor.tiles.count() - 1));
    } else if (list.empty()) {
      return "";
    } else if (how == 0) {
      list.erase(list.begin() + static_cast<std::ptrdiff_t>(index(list.size())));
    } else {
      list[index(list.size())] += how == 1 ? 1 : -1;
    }
    set_map(operand, tensor, lists);
    return "map entry changed";
  }

  std::string change_target(OperandSpec& operand, const Tensor& tensor) {
    std::vector<std::int64_t> targets =
        check_elements(plan_).arrivals[static_cast<std::size_t>(operand.tensor)];
    const std::size_t t = index(targets.size());
    targets[t] += chance(random_, 50) ? 1 : -1;
    operand.target = TargetMap::table(targets);
    return "target " + std::to_string(t) + " of " + tensor.tiles.describe() + " changed";
  }

  std::string change_works(const NodeSpec& node, OperandSpec& operand, const Tensor& tensor) {
    Lists lists = works_of(node, operand, tensor);
    auto& list = lists[index(lists.size())];
    const std::int64_t how = draw(random_, 0, 2);
    if (how == 2) {
      list.push_back(draw(random_, 0, kernel_tiles_of(operand, tensor).count() - 1));
    } else if (list.empty()) {
      return "";
    } else if (how == 0) {
      list.erase(list.begin() + static_cast<std::ptrdiff_t>(index(list.size())));
    } else {
      list[index(list.size())] += chance(random_, 50) ? 1 : -1;
    }
    set_works(operand, lists);
    return "works changed";
  }

  static std::string drop_slot(NodeSpec& node, OperandSpec& operand) {
    if (operand.sync_slot < 0) return "";
    for (OperandSpec& other : node.operands) {
      if (other.sync_slot > operand.sync_slot) --other.sync_slot;
    }
    operand.sync_slot = -1;
    operand.target.reset();
    return "sync slot dropped";
  }

  std::string change_operand(OperandSpec& operand, const Tensor& tensor) {
    if (operand.access == Access::kRead && chance(random_, 40)) {
      operand.when = ReadTime::kPrologue;
      return "read moved to the prologue";
    }
    if (chance(random_, 40)) return change_box(operand, tensor);
    std::vector<TensorId> alike;
    for (TensorId id = 0; id < plan_.tensors().size(); ++id) {
      const Tensor& other = plan_.tensors()[id];
      if (id != operand.tensor && other.spec.shape == tensor.spec.shape) alike.push_back(id);
    }
    if (alike.empty()) return "";
    operand.map.reset();
    operand.target.reset();
    operand.tensor = alike[index(alike.size())];
    return "moved to " + plan_.tensors()[operand.tensor].spec.name;
  }

  std::string change_box(OperandSpec& operand, const Tensor& tensor) {
    const TileSet kernel = kernel_tiles_of(operand, tensor);
    std::vector<Box> boxes;
    for (std::int64_t k = 0; k < kernel.count(); ++k) boxes.push_back(kernel.box(k));
    Box& box = boxes[index(boxes.size())];
    const int axis = static_cast<int>(draw(random_, 0, tensor.spec.shape.num_axes - 1));
    box.begin[axis] = draw(random_, 0, tensor.spec.shape[axis] - 1);
    box.size[axis] = draw(random_, 1, tensor.spec.shape[axis] - box.begin[axis]);
    operand.kernel_tiles = TileSet::loose_table(tensor.spec.shape, boxes);
    operand.map.reset();
    return "box " + to_string(box) + " changed";
  }

  Plan& plan_;
  Random& random_;
};

}  // namespace

Plan random_plan(Random& random) {
  return Generator(random).run();
}

std::string mutate(Plan& plan, Random& random) {
  return Mutation(plan, random).run();
}

}  // namespace tileweave::testing
