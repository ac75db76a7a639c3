#include "tileweave/plan/read_check.h"

#include <algorithm>
#include <optional>

#include "tileweave/core/format.h"
#include "tileweave/plan/box_cover.h"

namespace tileweave {
namespace {

/// "[0:2, 0:4] of `Y`".
std::string elements_text(const Tensor& tensor, const Box& box) {
  return to_string(box) + " of " + quoted(tensor);
}

/// The data tile of the first element of `box`, -1 where the tensor has none.
std::int64_t tile_at(const Tensor& tensor, const Box& box) {
  if (!tensor.tiled()) return -1;
  Box element = box;
  element.size = Coord::filled(box.begin.num_axes, 1);
  std::vector<std::int64_t> tiles;
  TileFinder(tensor.tiles).meeting(element, tiles);
  return tiles.front();
}

void subtract_writes(std::vector<Box>& rest, const UsedOperand& write) {
  std::vector<std::int64_t> places;
  for (const Box& part : std::vector<Box>(rest)) {
    write.tiles.places_meeting(part, places);
    for (const std::int64_t j : places) subtract(rest, write.tiles.box(j));
  }
}

class ReadCheck {
 public:
  ReadCheck(RunUse& run, const UsedOperand& read, std::vector<Fault>& faults,
            std::vector<DataEdge>& edges)
      : tensor_(run.tensor_of(read)),
        use_(run.use_of(read)),
        read_(read),
        faults_(faults),
        edges_(edges),
        visit_(run.visit) {}

  OpenReads run() {
    if (in_prologue()) {
      for (const UsedOperand* write : use_.writes) check_stable(tensor_, read_, *write, faults_);
    }
    if (tensor_.spec.kind == TensorKind::kState && !in_prologue()) check_same_position();
    OpenReads open{&read_, {}};
    std::vector<std::int64_t> unwritten(static_cast<std::size_t>(read_.tiles.num_touched()));
    for (std::size_t i = 0; i < unwritten.size(); ++i) {
      unwritten[i] = read_.tiles.box(static_cast<std::int64_t>(i)).volume();
    }
    for (const UsedOperand* write : use_.writes) {
      if (write->node->position >= read_.node->position) continue;
      follow(*write, unwritten);
    }
    report_uncovered();
    if (tensor_.spec.kind != TensorKind::kValue) return open;
    for (std::size_t i = 0; i < unwritten.size(); ++i) {
      const auto place = static_cast<std::int64_t>(i);
      // Volumes of writes that overlap say nothing: such a plan is at fault already, and is judged
      // exactly.
      if (unwritten[i] != 0 || (use_.written_twice && has_unwritten(place))) {
        open.places.push_back(place);
      }
    }
    std::erase_if(open.places, [&](std::int64_t place) { return !has_unwritten(place); });
    return open;
  }

 private:
  /// A part of a read that its waits don't cover: where, and whose fault it is.
  struct Gap {
    const UsedOperand* write;
    Box box;
    std::int64_t tile;
    std::int64_t count;
  };

  bool in_prologue() const { return read_.tiles.spec().when == ReadTime::kPrologue; }

  bool has_unwritten(std::int64_t place) const {
    std::vector<Box> rest = {read_.tiles.box(place)};
    for (const UsedOperand* write : use_.writes) {
      if (write->node->position < read_.node->position) subtract_writes(rest, *write);
    }
    return !rest.empty();
  }

  /// Takes the elements that `write` wrote out of the unwritten ones, and judges how the read is
  /// ordered after them.
  void follow(const UsedOperand& write, std::vector<std::int64_t>& unwritten) {
    const bool by_tiles = read_.tiles.synchronises() && write.tiles.synchronises();
    // Both sides name every data tile that their boxes meet, so each covers what both touch.
    const bool covered = read_.tiles.covers_own_box() && write.tiles.covers_own_box();
    bool meets = false;
    for (std::int64_t i = 0; i < read_.tiles.num_touched(); ++i) {
      const Box box = read_.tiles.box(i);
      write.tiles.places_meeting(box, places_);
      meets = meets || !places_.empty();
      for (const std::int64_t j : places_) {
        const Box common = intersect(box, write.tiles.box(j));
        unwritten[static_cast<std::size_t>(i)] -= common.volume();
        if (by_tiles && !covered && !in_prologue()) check_covered(write, i, j, common);
      }
    }
    meets = (meets && !in_prologue()) || (by_tiles && waits_for(write));
    if (meets) add_edge(write.node->id, by_tiles ? Via::kTiles : Via::kCompletion);
  }

  /// Whether the read waits for arrivals of `write`; check_waits() has just left its mark on every
  /// tile that the read waits on. A coarse tile makes it wait for more than it reads.
  bool waits_for(const UsedOperand& write) const {
    for (std::int64_t j = 0; j < write.tiles.num_touched(); ++j) {
      for (const std::int64_t t : write.tiles.data_tiles(j)) {
        if (use_.tiles[static_cast<std::size_t>(t)].visit == visit_) return true;
      }
    }
    return false;
  }

  void check_covered(const UsedOperand& write, std::int64_t i, std::int64_t j, const Box& common) {
    const auto waited = read_.tiles.data_tiles(i);
    const auto arrived = write.tiles.data_tiles(j);
    if (!tiles_finder_) tiles_finder_.emplace(tensor_.tiles);
    tiles_finder_->meeting(common, tiles_);
    for (const std::int64_t t : tiles_) {
      std::optional<Gap>* gap = nullptr;
      if (!std::binary_search(waited.begin(), waited.end(), t)) {
        gap = &not_waited_;
      } else if (!std::binary_search(arrived.begin(), arrived.end(), t)) {
        gap = &not_signalled_;
      }
      if (gap == nullptr) continue;
      if (!*gap) *gap = Gap{&write, intersect(common, tensor_.tiles.box(t)), t, 0};
      ++(*gap)->count;
    }
  }

  void report_uncovered() {
    if (not_waited_) {
      faults_.push_back(
          {FaultKind::kUncoveredRead,
           read_.node->text() + " reads " + elements_text(tensor_, not_waited_->box) + ", which " +
               not_waited_->write->node->text() + " writes, without waiting on " +
               tile_text(tensor_, not_waited_->tile) + and_more(not_waited_->count - 1, "part"),
           read_.node->id, read_.tensor(), not_waited_->tile});
    }
    if (not_signalled_) {
      faults_.push_back({FaultKind::kUncoveredRead,
                         read_.node->text() + " reads " +
                             elements_text(tensor_, not_signalled_->box) + ", which " +
                             not_signalled_->write->node->text() + " writes without arriving on " +
                             tile_text(tensor_, not_signalled_->tile) +
                             and_more(not_signalled_->count - 1, "part"),
                         read_.node->id, read_.tensor(), not_signalled_->tile});
    }
  }

  void add_edge(NodeId from, Via via) {
    for (auto edge = edges_.rbegin(); edge != edges_.rend() && edge->to == read_.node->id; ++edge) {
      if (edge->from != from || edge->tensor != read_.tensor()) continue;
      if (via == Via::kCompletion) edge->via = via;
      return;
    }
    edges_.push_back({from, read_.node->id, read_.tensor(), via});
  }

  void check_same_position() {
    for (const UsedOperand* write : use_.writes) {
      if (write->node->position != read_.node->position) continue;
      if (write->node == read_.node) {
        check_own_works(*write);
        continue;
      }
      const Box common = first_common_box(read_, *write);
      if (!common.empty()) faults_.push_back(same_position_fault(tensor_, read_, *write, common));
    }
  }

  /// A work may read the box that it updates itself, but none that another work writes.
  void check_own_works(const UsedOperand& write) {
    for (std::int64_t i = 0; i < read_.tiles.num_touched(); ++i) {
      write.tiles.places_meeting(read_.tiles.box(i), places_);
      for (const std::int64_t j : places_) {
        const std::vector<std::int64_t> readers = read_.tiles.works(i, 2);
        const std::vector<std::int64_t> writers = write.tiles.works(j, 2);
        if (readers.size() == 1 && readers == writers) continue;
        const std::int64_t reader = readers.front() != writers.front() ? readers.front()
                                    : readers.size() > 1               ? readers.back()
                                                                       : readers.front();
        const std::int64_t writer = writers.front() != reader ? writers.front() : writers.back();
        faults_.push_back(
            {FaultKind::kUncoveredRead,
             read_.node->text() + " has work " + std::to_string(reader) + " read " +
                 elements_text(tensor_, intersect(read_.tiles.box(i), write.tiles.box(j))) +
                 ", which its work " + std::to_string(writer) + " writes",
             read_.node->id, read_.tensor(), -1});
        return;
      }
    }
  }

  const Tensor& tensor_;
  TensorUse& use_;
  const UsedOperand& read_;
  std::vector<Fault>& faults_;
  std::vector<DataEdge>& edges_;
  std::int32_t visit_;
  std::vector<std::int64_t> places_;
  std::vector<std::int64_t> tiles_;
  std::optional<TileFinder> tiles_finder_;
  std::optional<Gap> not_waited_;
  std::optional<Gap> not_signalled_;
};

}  // namespace

OpenReads record_read(RunUse& run, const UsedOperand& read, std::vector<Fault>& faults,
                      std::vector<DataEdge>& edges) {
  if (run.tensor_of(read).spec.kind == TensorKind::kConstant) return {&read, {}};
  OpenReads open = ReadCheck(run, read, faults, edges).run();
  run.use_of(read).reads.push_back(&read);
  return open;
}

void close_reads(RunUse& run, const OpenReads& open, std::vector<Fault>& faults) {
  const UsedOperand& read = *open.read;
  const Tensor& tensor = run.tensor_of(read);
  const TensorUse& use = run.use_of(read);
  std::int64_t never = 0;
  std::int64_t late = 0;
  Fault never_fault{FaultKind::kUncoveredRead, "", read.node->id, read.tensor(), -1};
  Fault late_fault = never_fault;
  for (const std::int64_t place : open.places) {
    std::vector<Box> rest = {read.tiles.box(place)};
    for (const UsedOperand* write : use.writes) {
      if (write->node->position < read.node->position) subtract_writes(rest, *write);
    }
    const UsedOperand* late_writer = nullptr;
    Box late_box;
    for (const UsedOperand* write : use.writes) {
      if (write->node->position < read.node->position) continue;
      std::vector<std::int64_t> places;
      for (const Box& part : std::vector<Box>(rest)) {
        write->tiles.places_meeting(part, places);
        for (const std::int64_t j : places) {
          if (late_writer == nullptr) late_box = intersect(part, write->tiles.box(j));
          late_writer = late_writer == nullptr ? write : late_writer;
          subtract(rest, write->tiles.box(j));
        }
      }
    }
    if (late_writer != nullptr && late++ == 0) {
      late_fault.tile = tile_at(tensor, late_box);
      late_fault.sentence =
          read.node->at() + " reads " + elements_text(tensor, late_box) + ", which " +
          (late_writer->node == read.node ? "it writes itself"
                                          : "is written only by " + late_writer->node->at());
    }
    if (!rest.empty() && never++ == 0) {
      never_fault.tile = tile_at(tensor, rest.front());
      never_fault.sentence = read.node->text() + " reads " + elements_text(tensor, rest.front()) +
                             ", which no node before it writes";
    }
  }
  const bool told = std::any_of(faults.begin(), faults.end(), [&](const Fault& fault) {
    return fault.kind == FaultKind::kBackwardWait && fault.node == read.node->id &&
           fault.tensor == read.tensor();
  });
  if (never > 0) {
    never_fault.sentence += and_more(never - 1, "kernel tile");
    faults.push_back(never_fault);
  }
  if (late > 0 && !told) {
    late_fault.sentence += and_more(late - 1, "kernel tile");
    faults.push_back(late_fault);
  }
}

void check_stable(const Tensor& tensor, const UsedOperand& read, const UsedOperand& write,
                  std::vector<Fault>& faults) {
  const Box common = first_common_box(read, write);
  if (common.empty()) return;
  faults.push_back(
      {FaultKind::kStableReadOfWrittenBox,
       read.node->text() + " reads " + elements_text(tensor, common) + " in its prologue, but " +
           (read.node == write.node ? "it" : write.node->text()) + " writes that in the same run",
       read.node->id, read.tensor(), tile_at(tensor, common)});
}

Fault same_position_fault(const Tensor& tensor, const UsedOperand& read, const UsedOperand& write,
                          const Box& common) {
  return {FaultKind::kUncoveredRead,
          read.node->at() + " reads " + elements_text(tensor, common) + ", which " +
              write.node->at() + " writes",
          read.node->id, read.tensor(), tile_at(tensor, common)};
}

}  // namespace tileweave
