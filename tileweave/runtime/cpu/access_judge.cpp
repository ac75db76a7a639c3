#include "tileweave/runtime/cpu/access_judge.h"

#include <algorithm>
#include <atomic>

#include "tileweave/core/error.h"
#include "tileweave/core/format.h"

namespace tileweave::cpu {

namespace {

/// What is left of `box` without `hole`, as disjoint boxes.
void subtract(Box box, const Box& hole, std::vector<Box>& rest) {
  if (intersect(box, hole).empty()) {
    rest.push_back(box);
    return;
  }
  for (int a = 0; a < box.begin.num_axes; ++a) {
    const std::int64_t begin = box.begin[a];
    const std::int64_t end = begin + box.size[a];
    const std::int64_t hole_begin = max64(begin, hole.begin[a]);
    const std::int64_t hole_end = min64(end, hole.begin[a] + hole.size[a]);
    if (begin < hole_begin) {
      Box before = box;
      before.size[a] = hole_begin - begin;
      rest.push_back(before);
    }
    if (hole_end < end) {
      Box after = box;
      after.begin[a] = hole_end;
      after.size[a] = end - hole_end;
      rest.push_back(after);
    }
    box.begin[a] = hole_begin;
    box.size[a] = hole_end - hole_begin;
  }
}

}  // namespace

bool covered_by(const Box& box, const std::vector<Box>& boxes) {
  for (const Box& one : boxes) {
    if (contains(one, box)) return true;
  }
  std::vector<Box> left = {box};
  for (const Box& one : boxes) {
    std::vector<Box> still;
    for (const Box& part : left) subtract(part, one, still);
    left = std::move(still);
    if (left.empty()) return true;
  }
  return false;
}

AccessJudge::AccessJudge(const Launch& launch, const std::byte* context, std::int64_t block)
    : launch_(launch), block_(block) {
  const OperandSync* slots = nullptr;
  const std::int32_t num_slots = launch.kernel != nullptr ? launch.kernel->num_sync_slots : 0;
  if (context != nullptr && num_slots > 0) {
    slots = reinterpret_cast<const OperandSync*>(context);
    header_ = reinterpret_cast<const SyncHeader*>(slots + num_slots);
  }
  for (const OperandSpec& spec : launch.spec->operands) {
    const Tensor& tensor = (*launch.tensors)[spec.tensor];
    const bool synchronised = spec.sync_slot >= 0 && spec.sync_slot < num_slots &&
                              slots != nullptr && slots[spec.sync_slot].words != nullptr;
    operands_.push_back({&spec, &tensor, kernel_tiles_of(spec, tensor), synchronised, {}});
  }
  if (header_ != nullptr) return;
  work_ = block;
  for (std::int64_t work = block; work < launch.num_works; work += launch.num_blocks) {
    add_tiles_of(work);
  }
}

void AccessJudge::begin_work(std::int64_t work) {
  work_ = work;
  worked_ = false;
  for (Operand& operand : operands_) operand.tiles.clear();
  if (work >= 0 && work < launch_.spec->num_works) add_tiles_of(work);
}

void AccessJudge::add_tiles_of(std::int64_t work) {
  for (Operand& operand : operands_) {
    for (const std::int64_t k : kernel_tiles_of_work(*operand.spec, *operand.tensor, work)) {
      operand.tiles.push_back({k, operand.kernel_tiles.box(k)});
    }
  }
}

void AccessJudge::on_begin() {
  begin_work(block_);
}

void AccessJudge::on_work(std::int64_t work) {
  if (worked_) end_work();
  begin_work(work);
}

void AccessJudge::on_end() {
  if (worked_) end_work();
}

bool AccessJudge::aborted() const {
  if (header_ == nullptr || header_->abort == nullptr) return false;
  return std::atomic_ref<std::uint32_t>(*header_->abort).load(std::memory_order_relaxed) != 0;
}

void AccessJudge::end_work() const {
  if (aborted()) return;
  for (std::size_t i = 0; i < operands_.size(); ++i) {
    const Operand& operand = operands_[i];
    if (!operand.synchronised || operand.spec->access != Access::kWrite ||
        operand.spec->reduction != Reduction::kNone) {
      continue;
    }
    for (const KernelTile& tile : operand.tiles) {
      if (tile.done) continue;
      refuse(static_cast<int>(i), "ended without signalling " + to_string(tile.box),
             "a signal for every kernel tile that the work writes");
    }
  }
}

void AccessJudge::refuse(int operand, const std::string& act, const std::string& expected) const {
  const OperandSpec& spec = *operands_[static_cast<std::size_t>(operand)].spec;
  throw Error("check accesses of node " + std::to_string(launch_.node) + " `" + launch_.name + "`",
              expected,
              "work " + std::to_string(work_) + " of block " + std::to_string(block_) + ", which " +
                  act + " of operand " + std::to_string(operand) + " `" +
                  (*launch_.tensors)[spec.tensor].spec.name + "`");
}

int AccessJudge::index_of_slot(int slot) const {
  for (std::size_t i = 0; i < operands_.size(); ++i) {
    if (operands_[i].spec->sync_slot == slot) return static_cast<int>(i);
  }
  throw Error("check accesses of node " + std::to_string(launch_.node) + " `" + launch_.name + "`",
              "an operand with sync slot " + std::to_string(slot), "none");
}

AccessJudge::KernelTile& AccessJudge::declared_tile(int slot, const Coord& ktile,
                                                    const char* verb) {
  worked_ = true;
  const int index = index_of_slot(slot);
  Operand& operand = operands_[static_cast<std::size_t>(index)];
  const Coord grid = operand.kernel_tiles.grid();
  std::int64_t linear = 0;
  bool inside = ktile.num_axes <= grid.num_axes;
  for (int a = 0; a < grid.num_axes; ++a) {
    const std::int64_t at = a < ktile.num_axes ? ktile[a] : 0;
    inside = inside && at >= 0 && at < grid[a];
    linear = linear * grid[a] + at;
  }
  const auto found = std::find_if(operand.tiles.begin(), operand.tiles.end(),
                                  [&](const KernelTile& t) { return t.index == linear; });
  if (!inside || found == operand.tiles.end()) {
    refuse(index, std::string(verb) + " kernel tile " + to_string(ktile),
           "only kernel tiles that the work declares");
  }
  return *found;
}

void AccessJudge::on_wait(int slot, const Coord& ktile) {
  declared_tile(slot, ktile, "waits for").done = true;
}

void AccessJudge::on_signal(int slot, const Coord& ktile) {
  KernelTile& tile = declared_tile(slot, ktile, "signals");
  if (tile.done) {
    refuse(index_of_slot(slot), "signals kernel tile " + to_string(ktile) + " again",
           "one signal for each kernel tile");
  }
  tile.done = true;
}

AccessJudge::Operand& AccessJudge::operand_of(int operand, const Box& box) {
  worked_ = true;
  const auto count = static_cast<int>(operands_.size());
  if (operand < 0 || operand >= count) {
    throw Error(
        "check accesses of node " + std::to_string(launch_.node) + " `" + launch_.name + "`",
        "an operand index below " + std::to_string(count),
        std::to_string(operand) + " for " + to_string(box));
  }
  return operands_[static_cast<std::size_t>(operand)];
}

void AccessJudge::on_read(int index, const Box& box) {
  Operand& operand = operand_of(index, box);
  std::vector<Box> declared;
  std::vector<Box> waited;
  for (const KernelTile& tile : operand.tiles) {
    declared.push_back(tile.box);
    if (tile.done) waited.push_back(tile.box);
  }
  if (!covered_by(box, declared)) {
    refuse(index, "reads " + to_string(box), "reads inside the declared kernel tiles");
  }
  if (operand.spec->access == Access::kWrite) return;  // what it wrote itself
  const bool programmatic =
      header_ != nullptr && (header_->flags & SyncHeader::kProgrammaticConsumer) != 0;
  if (operand.spec->when == ReadTime::kPrologue) {
    if (operand.tensor->spec.kind == TensorKind::kValue) {
      refuse(index, "reads " + to_string(box) + " in the prologue",
             "prologue reads of constants and unwritten state only");
    }
    return;
  }
  if (operand.tensor->spec.kind == TensorKind::kConstant) return;
  if (operand.synchronised && !covered_by(box, waited)) {
    refuse(index, "reads " + to_string(box) + " before its wait",
           "reads of a synchronised operand after the wait that covers them");
  }
  if (programmatic && !grid_waited_) {
    refuse(index, "reads " + to_string(box) + " before the grid dependency wait",
           "no produced data before the dependency has completed");
  }
}

void AccessJudge::on_write(int index, const Box& box) {
  Operand& operand = operand_of(index, box);
  if (operand.spec->access != Access::kWrite) {
    refuse(index, "writes " + to_string(box), "writes to outputs only");
  }
  std::vector<Box> declared;
  for (const KernelTile& tile : operand.tiles) declared.push_back(tile.box);
  if (!covered_by(box, declared)) {
    refuse(index, "writes " + to_string(box), "writes inside the declared kernel tiles");
  }
  for (const KernelTile& tile : operand.tiles) {
    if (tile.done && !intersect(tile.box, box).empty()) {
      refuse(index, "writes " + to_string(box) + " after its signal",
             "writes before the signal only");
    }
  }
  if (header_ != nullptr && (header_->flags & SyncHeader::kProgrammaticConsumer) != 0 &&
      !grid_waited_) {
    refuse(index, "writes " + to_string(box) + " before the grid dependency wait",
           "no write before the dependency has completed");
  }
}

}  // namespace tileweave::cpu
