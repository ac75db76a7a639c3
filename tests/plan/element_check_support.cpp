#include <algorithm>

#include "tests/plan/element_check.h"

namespace tileweave::testing {
namespace {

using Lists = std::vector<std::vector<std::int64_t>>;

/// Row-major indices of the elements of a box.
std::vector<std::int64_t> elements_of(const Shape& shape, const Box& box) {
  std::vector<std::int64_t> all = {0};
  for (int a = 0; a < shape.num_axes; ++a) {
    std::vector<std::int64_t> next;
    for (const std::int64_t prefix : all) {
      for (std::int64_t i = 0; i < box.size[a]; ++i) {
        next.push_back(prefix * shape[a] + box.begin[a] + i);
      }
    }
    all = next;
  }
  return all;
}

std::vector<std::int64_t> tile_of_element(const TileSet& tiles) {
  std::vector<std::int64_t> tile(static_cast<std::size_t>(tiles.shape().volume()), -1);
  for (std::int64_t t = 0; t < tiles.count(); ++t) {
    for (const std::int64_t e : elements_of(tiles.shape(), tiles.box(t))) {
      tile[static_cast<std::size_t>(e)] = t;
    }
  }
  return tile;
}

void sort_unique(std::vector<std::int64_t>& list) {
  std::sort(list.begin(), list.end());
  list.erase(std::unique(list.begin(), list.end()), list.end());
}

/// One kernel tile of one operand of one node, as its works touch it.
struct Touched {
  const NodeSpec* node;
  NodeId id;
  const OperandSpec* operand;
  bool synchronises;
  std::vector<std::int64_t> works;
  std::vector<std::int64_t> elements;
  std::vector<std::int64_t> data_tiles;  // as often as the map names them
};

class ElementCheck {
 public:
  explicit ElementCheck(const Plan& plan) : plan_(plan) {
    for (TensorId t = 0; t < plan.tensors().size(); ++t) {
      const Tensor& tensor = plan.tensors()[t];
      report_.arrivals.emplace_back(static_cast<std::size_t>(tensor.tiles.count()), 0);
      writers_.emplace_back(static_cast<std::size_t>(tensor.spec.shape.volume()));
      tile_of_.push_back(tensor.tiled() ? tile_of_element(tensor.tiles)
                                        : std::vector<std::int64_t>());
    }
  }

  ElementReport run() {
    for (std::size_t n = 0; n < plan_.nodes().size(); ++n) collect(static_cast<NodeId>(n));
    for (const Touched& write : writes_) {
      for (const std::int64_t e : write.elements) writers(write, e).push_back(&write);
      if (!write.synchronises) continue;
      for (const std::int64_t t : write.data_tiles) {
        ++report_.arrivals[tensor(write)][static_cast<std::size_t>(t)];
      }
    }
    check_writes();
    for (const Touched& read : reads_) {
      if (read.synchronises) check_waits(read);
      check_read(read);
    }
    return report_;
  }

 private:
  static std::size_t tensor(const Touched& touched) {
    return static_cast<std::size_t>(touched.operand->tensor);
  }
  TensorKind kind(const Touched& touched) const {
    return plan_.tensors()[touched.operand->tensor].spec.kind;
  }
  std::vector<const Touched*>& writers(const Touched& touched, std::int64_t element) {
    return writers_[tensor(touched)][static_cast<std::size_t>(element)];
  }
  std::int64_t tile_of(const Touched& touched, std::int64_t element) const {
    return tile_of_[tensor(touched)][static_cast<std::size_t>(element)];
  }

  void collect(NodeId id) {
    const NodeSpec& node = plan_.nodes()[static_cast<std::size_t>(id)];
    check_order(node);
    for (const OperandSpec& operand : node.operands) {
      const Tensor& of = plan_.tensors()[operand.tensor];
      const TileSet kernel = kernel_tiles_of(operand, of);
      const bool synchronises = node.integrated && of.tiled() && operand.sync_slot >= 0;
      const Lists tiles = synchronises ? tiles_by_elements(operand, of, node.args) : Lists();
      std::map<std::int64_t, std::vector<std::int64_t>> works;
      for (std::int64_t w = 0; w < node.num_works; ++w) {
        for (const std::int64_t k : kernel_tiles_of_work(operand, of, w)) works[k].push_back(w);
      }
      check_counters(node, operand, kernel.count(), works);
      for (const auto& [k, of_k] : works) {
        if (k < 0 || k >= kernel.count()) {
          report_.kinds.insert(FaultKind::kIndexOverflow);
          continue;
        }
        Touched touched{
            &node, id, &operand, synchronises, of_k, elements_of(of.spec.shape, kernel.box(k)), {}};
        if (synchronises) {
          touched.data_tiles = through_view(operand, of, tiles[static_cast<std::size_t>(k)]);
        }
        (operand.access == Access::kWrite ? writes_ : reads_).push_back(touched);
      }
    }
  }

  std::vector<std::int64_t> through_view(const OperandSpec& operand, const Tensor& of,
                                         std::vector<std::int64_t> tiles) {
    const std::int64_t count = operand.view.empty() ? of.tiles.count() : operand.view.count();
    const auto unknown = [&](std::int64_t t) { return t < 0 || t >= count; };
    if (std::any_of(tiles.begin(), tiles.end(), unknown)) {
      report_.kinds.insert(FaultKind::kIndexOverflow);
    }
    std::erase_if(tiles, unknown);
    if (operand.view.empty()) return tiles;
    const std::vector<std::int64_t> base_of = tile_of_element(of.tiles);
    std::vector<std::int64_t> base;
    for (const std::int64_t v : tiles) {
      for (const std::int64_t e : elements_of(of.spec.shape, operand.view.box(v))) {
        base.push_back(base_of[static_cast<std::size_t>(e)]);
      }
    }
    sort_unique(base);
    return base;
  }

  void check_order(const NodeSpec& node) {
    std::vector<std::int64_t> order;
    if (node.order.form() == OrderForm::kTable) {
      order.assign(node.order.works().begin(), node.order.works().end());
    } else {
      for (std::int64_t p = 0; p < node.num_works; ++p) {
        order.push_back(node.order.at(p, node.num_works));
      }
    }
    std::sort(order.begin(), order.end());
    bool permutation = static_cast<std::int64_t>(order.size()) == node.num_works;
    for (std::size_t p = 0; p < order.size(); ++p) {
      permutation = permutation && order[p] == static_cast<std::int64_t>(p);
    }
    if (!permutation || blocks_of(node) < 1 || blocks_of(node) > node.num_works) {
      report_.kinds.insert(FaultKind::kOrderNotPermutation);
    }
  }

  void check_counters(const NodeSpec& node, const OperandSpec& operand, std::int64_t count,
                      const std::map<std::int64_t, std::vector<std::int64_t>>& works) {
    if (operand.reduction != Reduction::kLastArriver) return;
    for (std::int64_t k = 0; k < count; ++k) {
      if (k >= static_cast<std::int64_t>(node.counter.arrivals.size())) {
        report_.kinds.insert(FaultKind::kTooFewArrivals);
        return;
      }
      std::vector<std::int64_t> distinct;
      if (works.count(k) != 0) distinct = works.at(k);
      sort_unique(distinct);
      const std::size_t counted = node.counter.arrivals[static_cast<std::size_t>(k)];
      if (counted == distinct.size()) continue;
      report_.kinds.insert(counted > distinct.size() ? FaultKind::kTooFewArrivals
                                                     : FaultKind::kTooManyArrivals);
      return;  // one fault per operand: the first kernel tile decides its kind
    }
  }

  void check_writes() {
    for (const Touched& write : writes_) {
      if (kind(write) == TensorKind::kConstant) {
        report_.kinds.insert(FaultKind::kUndeclaredWrite);
        continue;
      }
      std::vector<std::int64_t> distinct = write.works;
      sort_unique(distinct);
      if (distinct.size() != write.works.size() ||
          (distinct.size() > 1 && write.operand->reduction == Reduction::kNone)) {
        report_.kinds.insert(FaultKind::kDoubleWrite);
      }
      for (const std::int64_t e : write.elements) {
        if (writers(write, e).size() > 1) report_.kinds.insert(FaultKind::kDoubleWrite);
      }
    }
  }

  void check_waits(const Touched& read) {
    for (const std::int64_t t : read.data_tiles) {
      std::int64_t arrivals = 0;
      bool late = false;
      bool written = false;
      for (const Touched& write : writes_) {
        if (tensor(write) != tensor(read) || kind(write) == TensorKind::kConstant) continue;
        const bool earlier = write.node->position < read.node->position;
        for (const std::int64_t e : write.elements) {
          written = written || (earlier && tile_of(write, e) == t);
        }
        if (!write.synchronises) continue;
        const auto here = std::count(write.data_tiles.begin(), write.data_tiles.end(), t);
        arrivals += here;
        late = late || (here > 0 && !earlier);
        if (here > 0 && earlier) add_edge(write, read, Via::kTiles);
      }
      if (late) {
        report_.kinds.insert(FaultKind::kBackwardWait);
        continue;
      }
      const std::int64_t target =
          read.operand->target
              ? read.operand->target->of(plan_.tensors()[read.operand->tensor].tiles, t,
                                         read.node->args)
              : arrivals;
      if (target < arrivals || target < 0) {
        report_.kinds.insert(FaultKind::kTooManyArrivals);
      } else if (target > arrivals) {
        report_.kinds.insert(arrivals == 0 ? FaultKind::kUnsatisfiedWait
                                           : FaultKind::kTooFewArrivals);
      } else if (target == 0 && !written && kind(read) != TensorKind::kState) {
        report_.kinds.insert(FaultKind::kUnsatisfiedWait);
      }
    }
  }

  void check_read(const Touched& read) {
    if (kind(read) == TensorKind::kConstant) return;
    const bool prologue = read.operand->when == ReadTime::kPrologue;
    for (const std::int64_t e : read.elements) {
      bool written = false;
      for (const Touched* write : writers(read, e)) {
        if (prologue) report_.kinds.insert(FaultKind::kStableReadOfWrittenBox);
        if (write->node->position < read.node->position) {
          written = true;
          if (!prologue) check_ordered(read, *write, e);
        } else if (kind(read) == TensorKind::kState && !prologue) {
          check_state(read, *write);
        }
      }
      if (!written && kind(read) == TensorKind::kValue) {
        report_.kinds.insert(FaultKind::kUncoveredRead);
      }
    }
  }

  void check_ordered(const Touched& read, const Touched& write, std::int64_t e) {
    const bool by_tiles = read.synchronises && write.synchronises;
    add_edge(write, read, by_tiles ? Via::kTiles : Via::kCompletion);
    if (!by_tiles) return;
    const auto names = [t = tile_of(read, e)](const Touched& touched) {
      return std::count(touched.data_tiles.begin(), touched.data_tiles.end(), t) > 0;
    };
    if (!names(read) || !names(write)) report_.kinds.insert(FaultKind::kUncoveredRead);
  }

  void check_state(const Touched& read, const Touched& write) {
    if (write.node->position > read.node->position) {
      report_.overwrites.insert({read.id, write.id, read.operand->tensor});
    } else if (write.node != read.node) {
      report_.kinds.insert(FaultKind::kUncoveredRead);
    } else {
      std::vector<std::int64_t> works = read.works;
      works.insert(works.end(), write.works.begin(), write.works.end());
      sort_unique(works);
      if (works.size() > 1) report_.kinds.insert(FaultKind::kUncoveredRead);
    }
  }

  void add_edge(const Touched& from, const Touched& to, Via via) {
    const auto [edge, added] = report_.edges.insert({{from.id, to.id, to.operand->tensor}, via});
    if (!added && via == Via::kCompletion) edge->second = via;
  }

  const Plan& plan_;
  ElementReport report_;
  std::vector<Touched> writes_;
  std::vector<Touched> reads_;
  std::vector<std::vector<std::vector<const Touched*>>> writers_;  // [tensor][element]
  std::vector<std::vector<std::int64_t>> tile_of_;                 // [tensor][element]
};

}  // namespace

Lists tiles_by_elements(const OperandSpec& operand, const Tensor& tensor, const LaunchArgs& args) {
  const TileSet kernel = kernel_tiles_of(operand, tensor);
  const std::vector<std::int64_t> tile =
      tile_of_element(operand.view.empty() ? tensor.tiles : operand.view);
  Lists lists;
  for (std::int64_t k = 0; k < kernel.count(); ++k) {
    std::vector<std::int64_t> list;
    if (operand.map) {
      list = operand.map->tiles_of(kernel.coord(k), args);
    } else {
      for (const std::int64_t e : elements_of(tensor.spec.shape, kernel.box(k))) {
        list.push_back(tile[static_cast<std::size_t>(e)]);
      }
      sort_unique(list);
    }
    lists.push_back(list);
  }
  return lists;
}

ElementReport check_elements(const Plan& plan) {
  return ElementCheck(plan).run();
}

}  // namespace tileweave::testing
