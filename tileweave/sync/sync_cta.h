// SyncCta: what a kernel calls. At most six added lines turn a GEMM into a tile-synchronised one:
//
//   __global__ void gemm(Args args, SyncContext<2> ctx) {                     // + the context
//     SyncCta<AtomicsCuda, 2> sync(ctx);                                      // +
//     if (!sync.begin_cta()) return;                                          // +
//     const auto work = sync.remap(blockIdx.x);                               // + (optional)
//     const Ready ready = sync.wait_input(0, {tile_m});  if (!ready) return;  // +
//     ...
//     sync.signal_output(1, {tile_m, tile_n});                                // +
//
// Called by all lanes of the group that the Atomics policy stands for (a block, a warp), in uniform
// control flow. One template for both devices; the policy spells the atomics, the group barrier and
// the back-off. docs/protocol.md holds the ordering argument; in short: every lane's writes ->
// group barrier -> release add by one lane per data tile -> acquire load by one lane -> group
// barrier -> every lane's reads.
#pragma once

#include <cstdint>

#include "tileweave/core/coord.h"
#include "tileweave/sync/access.h"
#include "tileweave/sync/context.h"
#include "tileweave/sync/tile_walk.h"
#include "tileweave/sync/wait.h"

namespace tileweave {

template <class Atomics, int kNumOperands, class Maps = ContextMaps>
class SyncCta {
 public:
  TW_HOST_DEVICE explicit SyncCta(const SyncContext<kNumOperands>& context, Atomics atomics = {})
      : context_(context), atomics_(atomics) {}
  SyncCta(const SyncCta&) = delete;
  SyncCta& operator=(const SyncCta&) = delete;
  TW_HOST_DEVICE ~SyncCta() { flush_record(); }

  /// First call of a block. Lets a programmatic consumer launch, counts the block as begun for a
  /// wait kernel. False: the run is aborted, return at once (a kernel that waits may learn of it
  /// only there).
  TW_HOST_DEVICE bool begin_cta() {
    const SyncHeader& h = context_.header;
    if ((h.flags & SyncHeader::kProgrammaticProducer) != 0) atomics_.launch_dependents();
    if ((h.flags & SyncHeader::kCountBegun) != 0 && atomics_.lane() == 0) {
      atomics_.add_relaxed(h.begun, 1);
    }
    if (h.records != nullptr) record_.begin_ns = atomics_.now_ns();
    record_.work = static_cast<std::uint32_t>(atomics_.block_index());
    atomics_.on_begin();
    // A relaxed look is enough: an aborted run's results are thrown away, this only saves time. A
    // kernel that waits uses the answer at its first wait, so that the load's latency hides behind
    // the kernel's prologue instead of delaying every launch.
    aborted_ = atomics_.lane() == 0 && atomics_.load_relaxed(h.abort) != 0;
    if ((h.flags & SyncHeader::kWaits) != 0) return true;
    // All lanes must agree, so one lane looks and the barrier spreads its answer.
    if (!atomics_.barrier_or(aborted_)) return true;
    // griddepcontrol.wait must run in every block of a programmatic consumer before it returns:
    // only then does the kernel after it inherit the order.
    if ((h.flags & SyncHeader::kProgrammaticConsumer) != 0) atomics_.grid_dependency_wait();
    return false;
  }

  /// Work of the block that runs at `position` of the order.
  TW_HOST_DEVICE std::int64_t remap(std::int64_t position) {
    const SyncHeader& h = context_.header;
    std::int64_t work = position;
    if (h.order_form == OrderForm::kRotation) {
      work = position + h.order_offset;
      if (work >= h.num_works) work -= h.num_works;
    } else if (h.order_form == OrderForm::kTable) {
      work = h.order[position];
    }
    set_work(work);
    return work;
  }

  /// Dynamically claimed order: the next position nobody has taken, or -1 when none is left. The
  /// node's counter is the queue; each of its blocks claims until it gets -1.
  TW_HOST_DEVICE std::int64_t claim() {
    const SyncHeader& h = context_.header;
    std::uint32_t ticket = 0;
    if (atomics_.lane() == 0) {
      ticket = atomics_.fetch_add_acq_rel(h.counter.words, 1) - *h.counter.base;
    }
    ticket = atomics_.broadcast(ticket);
    if (ticket < static_cast<std::uint64_t>(h.num_works)) return ticket;
    wait_for_grid_dependency();  // a block that got no work at all must not return before
    if (has_work_) flush_record();
    record_.begin_ns = 0;  // and leaves no record
    return -1;
  }

  /// Waits until every data tile that `ktile` of `operand` meets is complete. After it returns
  /// true, every lane may read those tiles. One lane polls each data tile.
  TW_HOST_DEVICE Ready wait_input(int operand, const Coord& ktile) {
    const SyncHeader& h = context_.header;
    const OperandSync& op = context_.operands[operand];
    wait_for_grid_dependency();
    if (op.words == nullptr) {
      atomics_.on_wait(operand, ktile);
      return Ready(true);
    }
    if (h.records != nullptr && record_.wait_ns == 0) record_.wait_ns = atomics_.now_ns();
    bool failed = aborted_;
    const TileWalk walk = Maps::walk(op, operand, ktile, h.args);
    for (std::int64_t i = atomics_.lane(); i < walk.count; i += atomics_.num_lanes()) {
      const std::int64_t tile = walk.at(i);
      const std::uint32_t base = op.base[tile * op.base_stride];
      const WaitSite site{WaitKind::kSemaphore,
                          static_cast<std::uint32_t>(operand),
                          static_cast<std::uint32_t>(tile),
                          base,
                          Maps::target(op, operand, tile, h.args),
                          (op.flags & OperandSync::kSystemScope) != 0};
      if (!wait_word(atomics_, op.words + tile * op.word_stride, site, h)) {
        failed = true;
        break;
      }
    }
    // The barrier hands the polling lanes' acquires on to every lane of the group.
    const Ready ready(!atomics_.barrier_or(failed));
    if (h.records != nullptr) record_.ready_ns = ready ? atomics_.now_ns() : 0;
    if (ready) atomics_.on_wait(operand, ktile);
    return ready;
  }

  /// Arrives once on every data tile that `ktile` of `operand` meets. Every lane must have issued
  /// its writes of the tile (and waited for its own bulk stores: `wait_group 0`) before the call. A
  /// work passes all its waits before its first signal and touches no tensor of the plan after its
  /// last one: the proofs that buffers are free again rest on that.
  TW_HOST_DEVICE void signal_output(int operand, const Coord& ktile) {
    const SyncHeader& h = context_.header;
    const OperandSync& op = context_.operands[operand];
    wait_for_grid_dependency();
    atomics_.on_signal(operand, ktile);
    if (op.words != nullptr) {
      // Orders every lane's writes before the releases below (cumulativity through the barrier).
      atomics_.barrier();
      const TileWalk walk = Maps::walk(op, operand, ktile, h.args);
      for (std::int64_t i = atomics_.lane(); i < walk.count; i += atomics_.num_lanes()) {
        atomics_.add_release(op.words + walk.at(i) * op.word_stride, 1,
                             (op.flags & OperandSync::kSystemScope) != 0);
      }
      // After the release: a stamp serves hang reports only and must not delay a waiter.
      if (op.stamps != nullptr && atomics_.lane() == 0) {
        atomics_.add_relaxed(op.stamps + kernel_tile_index(op, ktile), 1);
      }
    }
    if (h.records != nullptr) record_.signal_ns = atomics_.now_ns();
  }

  /// Fixed-order reductions (split-K, Stream-K): called by every work that contributed to reduction
  /// slot `slot` after it stored its partial result. True in exactly one of `contributions` works,
  /// the last to arrive, which may then read all partials and must add them up in a fixed order.
  TW_HOST_DEVICE bool arrive_last(std::int64_t slot, std::uint32_t contributions) {
    const CounterSync& counter = context_.header.counter;
    atomics_.barrier();  // every lane's partial is ordered before the arrival
    bool last = false;
    if (atomics_.lane() == 0) {
      const std::uint32_t before = atomics_.fetch_add_acq_rel(counter.words + slot, 1);
      last = before + 1 - counter.base[slot * counter.base_stride] == contributions;
    }
    return atomics_.barrier_or(last);  // and the last arriver's acquire reaches every lane
  }

  /// Executes griddepcontrol.wait once if this launch is a programmatic consumer.
  TW_HOST_DEVICE void wait_for_grid_dependency() {
    if (grid_waited_ || (context_.header.flags & SyncHeader::kProgrammaticConsumer) == 0) return;
    atomics_.grid_dependency_wait();
    grid_waited_ = true;
  }

  /// Ends the trace record of the current work and starts the next one's (persistent blocks).
  TW_HOST_DEVICE void set_work(std::int64_t work) {
    if (context_.header.records != nullptr && has_work_) {
      flush_record();
      record_ = TileRecord{};
      record_.begin_ns = atomics_.now_ns();
    }
    has_work_ = true;
    record_.work = static_cast<std::uint32_t>(work);
    atomics_.on_work(work);
  }

  TW_HOST_DEVICE Atomics& atomics() { return atomics_; }
  TW_HOST_DEVICE const SyncContext<kNumOperands>& context() const { return context_; }

 private:
  TW_HOST_DEVICE static std::int64_t kernel_tile_index(const OperandSync& op, const Coord& ktile) {
    std::int64_t index = 0;
    for (int a = 0; a < op.num_axes; ++a) {
      const std::int64_t at = a < ktile.num_axes ? ktile.v[a] : 0;
      index = index * ceil_div(op.shape[a], op.ktile[a]) + at;
    }
    return index;
  }

  TW_HOST_DEVICE void flush_record() {
    const SyncHeader& h = context_.header;
    if (h.records == nullptr || record_.begin_ns == 0) return;
    if (atomics_.lane() == 0) {
      const std::uint32_t slot = atomics_.fetch_add_relaxed(h.num_records, 1);
      if (slot < h.record_capacity) {
        record_.node = h.node;
        record_.rank = h.rank;
        record_.sm = atomics_.sm_index();
        record_.end_ns = atomics_.now_ns();
        h.records[slot] = record_;
      }
    }
    record_.begin_ns = 0;
  }

  const SyncContext<kNumOperands>& context_;
  Atomics atomics_;
  TileRecord record_{};
  bool grid_waited_ = false;
  bool has_work_ = false;  // set_work was called
  bool aborted_ = false;   // lane 0: the run was aborted before this block began
};

}  // namespace tileweave
