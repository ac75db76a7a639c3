#include "tileweave/plan/write_check.h"

#include "tileweave/core/format.h"
#include "tileweave/plan/read_check.h"

namespace tileweave {
namespace {

class WriteCheck {
 public:
  WriteCheck(RunUse& run, const UsedOperand& write, std::vector<Fault>& faults)
      : tensor_(run.tensor_of(write)), use_(run.use_of(write)), write_(write), faults_(faults) {}

  void check_reduction() {
    if (write_.tiles.spec().reduction == Reduction::kLastArriver) return;
    std::int64_t shared = 0;
    std::int64_t first = 0;
    for (std::int64_t i = 0; i < write_.tiles.num_touched(); ++i) {
      if (write_.tiles.num_works(i) > 1 && shared++ == 0) first = i;
    }
    if (shared == 0) return;
    const std::vector<std::int64_t> works = write_.tiles.works(first, 2);
    double_write("has works " + std::to_string(works[0]) + " and " + std::to_string(works[1]) +
                 " write kernel tile " + std::to_string(write_.tiles.touched(first)) + " of " +
                 quoted(tensor_) + " without a declared reduction" +
                 and_more(shared - 1, "kernel tile"));
  }

  /// Boxes of one operand overlap only where they come from a table.
  void check_own_boxes() {
    if (write_.tiles.kernel_tiles().is_plain()) return;
    for (std::int64_t i = 0; i < write_.tiles.num_touched(); ++i) {
      const Box box = write_.tiles.box(i);
      write_.tiles.places_meeting(box, places_);
      for (const std::int64_t j : places_) {
        if (j <= i) continue;
        double_write("writes " + to_string(intersect(box, write_.tiles.box(j))) + " of " +
                     quoted(tensor_) + " twice, as kernel tiles " +
                     std::to_string(write_.tiles.touched(i)) + " and " +
                     std::to_string(write_.tiles.touched(j)));
        return;
      }
    }
  }

  void check_other_writes() {
    for (const UsedOperand* other : use_.writes) {
      const Box common = first_common_box(write_, *other);
      if (common.empty()) continue;
      double_write("writes " + to_string(common) + " of " + quoted(tensor_) + ", which " +
                   (other->node == write_.node
                        ? "it writes as operand " + std::to_string(other->tiles.index()) + " too"
                        : other->node->text() + " has written"));
    }
  }

  void arrive() {
    if (!write_.tiles.synchronises()) return;
    bool waited = false;
    std::int64_t overflow = -1;
    for (std::int64_t i = 0; i < write_.tiles.num_touched(); ++i) {
      for (const std::int64_t t : write_.tiles.data_tiles(i)) {
        TileUse& tile = use_.tiles[static_cast<std::size_t>(t)];
        if (++tile.arrivals > kMaxIndex && overflow < 0) overflow = t;
        tile.last_signaller = write_.node;
        waited = waited || tile.waited;
      }
    }
    if (overflow >= 0) {
      faults_.push_back({FaultKind::kIndexOverflow,
                         write_.node->text() + " brings the arrivals on " +
                             tile_text(tensor_, overflow) + " to more than 2^31 - 1",
                         write_.node->id, write_.tensor(), overflow});
    }
    if (!waited) return;
    for (const UsedOperand* read : use_.reads) report_earlier_wait(*read);
  }

  void check_prologue_reads() {
    for (const UsedOperand* read : use_.reads) {
      if (read->tiles.spec().when == ReadTime::kPrologue) {
        check_stable(tensor_, *read, write_, faults_);
      }
    }
  }

  void find_overwrites(std::vector<Overwrite>& overwrites) {
    if (tensor_.spec.kind != TensorKind::kState) return;
    for (const UsedOperand* read : use_.reads) {
      if (read->tiles.spec().when == ReadTime::kPrologue) continue;
      const Box common = first_common_box(*read, write_);
      if (common.empty()) continue;
      if (read->node->position == write_.node->position) {
        faults_.push_back(same_position_fault(tensor_, *read, write_, common));
      } else {
        overwrites.push_back({read->node->id, write_.node->id, write_.tensor()});
      }
    }
  }

  void enter() { use_.writes.push_back(&write_); }

 private:
  void double_write(const std::string& rest) {
    use_.written_twice = true;
    faults_.push_back({FaultKind::kDoubleWrite, write_.node->text() + " " + rest, write_.node->id,
                       write_.tensor(), -1});
  }

  void report_earlier_wait(const UsedOperand& read) {
    if (!read.tiles.synchronises()) return;
    std::vector<char> met(use_.tiles.size(), 0);
    std::int64_t count = 0;
    std::int64_t first = -1;
    for (std::int64_t i = 0; i < read.tiles.num_touched(); ++i) {
      for (const std::int64_t t : read.tiles.data_tiles(i)) {
        char& seen = met[static_cast<std::size_t>(t)];
        if (seen != 0 || use_.tiles[static_cast<std::size_t>(t)].last_signaller != write_.node) {
          continue;
        }
        seen = 1;
        if (count++ == 0 || t < first) first = t;
      }
    }
    if (count == 0) return;
    faults_.push_back({FaultKind::kBackwardWait,
                       read.node->at() + " waits on " + tile_text(tensor_, first) + " for " +
                           write_.node->at() + and_more(count - 1, "tile"),
                       read.node->id, read.tensor(), first});
  }

  const Tensor& tensor_;
  TensorUse& use_;
  const UsedOperand& write_;
  std::vector<Fault>& faults_;
  std::vector<std::int64_t> places_;
};

}  // namespace

void record_write(RunUse& run, const UsedOperand& write, std::vector<Fault>& faults,
                  std::vector<Overwrite>& overwrites) {
  const Tensor& tensor = run.tensor_of(write);
  if (tensor.spec.kind == TensorKind::kConstant) {
    faults.push_back({FaultKind::kUndeclaredWrite,
                      write.node->text() + " writes " + quoted(tensor) + ", which is a constant",
                      write.node->id, write.tensor(), -1});
    return;
  }
  WriteCheck check(run, write, faults);
  check.check_reduction();
  check.check_own_boxes();
  check.check_other_writes();
  check.arrive();
  check.check_prologue_reads();
  check.find_overwrites(overwrites);
  check.enter();
}

}  // namespace tileweave
