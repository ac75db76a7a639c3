// SyncCta: what a kernel calls. At most six added lines turn a GEMM into a tile-synchronised one:
//
//   __global__ void gemm(Args args, const __grid_constant__ SyncContext<2> ctx) {   // +
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
  TW_HOST_DEVICE ~SyncCta() { close_record(); }

  /// First call of a block. Lets a programmatic consumer launch, counts the block as begun for a
  /// wait kernel. False: the run is aborted, return at once (a kernel that waits may learn of it
  /// only there).
  TW_HOST_DEVICE bool begin_cta() {
    const SyncHeader& h = context_.header;
    if ((h.flags & SyncHeader::kProgrammaticProducer) != 0) atomics_.launch_dependents();
    // A relaxed look is enough: an aborted run's results are thrown away, this only saves time. A
    // kernel that waits uses the answer at its first wait, so that the load's latency hides behind
    // the kernel's prologue, and the first poll, instead of delaying every launch.
    if (atomics_.lane() == 0) {
      abort_ = atomics_.load_relaxed(h.abort);
      if ((h.flags & SyncHeader::kCountBegun) != 0) atomics_.add_relaxed(h.begun, 1);
    }
    if (h.records != nullptr) record_ = open_record(atomics_, h, atomics_.block_index());
    atomics_.on_begin();
    if ((h.flags & SyncHeader::kWaits) != 0) return true;
    // All lanes must agree, so one lane looks and the barrier spreads its answer.
    if (!atomics_.barrier_or(abort_ != 0)) return true;
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
    if (!has_work_ && record_ != nullptr) record_->begin_ns = 0;  // and leaves no record
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
    if (record_ != nullptr && record_->wait_ns == 0) record_->wait_ns = atomics_.now_ns();
    bool failed = false;
    if (!is_plain_word(op)) {
      failed = abort_ != 0 || !wait_tiles(atomics_, h, op, context_.tiles[operand], operand, ktile);
    } else if (atomics_.lane() == 0) {
      failed = !wait_plain_word(op, operand);
    }
    // The barrier hands the polling lanes' acquires on to every lane of the group.
    const Ready ready(!atomics_.barrier_or(failed));
    if (record_ != nullptr) record_->ready_ns = ready ? atomics_.now_ns() : 0;
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
      if (!is_plain_word(op)) {
        signal_tiles(atomics_, h, op, context_.tiles[operand], operand, ktile);
      } else if (atomics_.lane() == 0) {
        atomics_.add_release(op.words, 1, false);
      }
      // After the release: a stamp serves hang reports only and must not delay a waiter.
      if (op.stamps != nullptr && atomics_.lane() == 0) {
        const std::int64_t k = (op.flags & OperandSync::kOneAxis) != 0
                                   ? ktile.v[0]
                                   : detail::kernel_tile_index(context_.tiles[operand], ktile);
        atomics_.add_relaxed(op.stamps + k, 1);
      }
    }
    if (record_ != nullptr) record_->signal_ns = atomics_.now_ns();
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

  /// Executes griddepcontrol.wait if this launch is a programmatic consumer; again costs nothing, a
  /// flag to remember it by would (a register that lives through the kernel).
  TW_HOST_DEVICE void wait_for_grid_dependency() {
    if ((context_.header.flags & SyncHeader::kProgrammaticConsumer) != 0) {
      atomics_.grid_dependency_wait();
    }
  }

  /// Ends the trace record of the current work and starts the next one's (persistent blocks).
  TW_HOST_DEVICE void set_work(std::int64_t work) {
    if (context_.header.records != nullptr && has_work_) {
      close_record();
      record_ = open_record(atomics_, context_.header, work);
    }
    has_work_ = true;
    if (record_ != nullptr) record_->work = static_cast<std::uint32_t>(work);
    atomics_.on_work(work);
  }

  TW_HOST_DEVICE Atomics& atomics() { return atomics_; }
  TW_HOST_DEVICE const SyncContext<kNumOperands>& context() const { return context_; }

 private:
  /// One data tile, one constant target, device scope: the case that a kernel has in line.
  TW_HOST_DEVICE static bool is_plain_word(const OperandSync& op) {
    constexpr std::uint32_t kAsked = OperandSync::kSingleTile | OperandSync::kSystemScope;
    if constexpr (Maps::kPlain == PlainWords::kAll) return true;
    if constexpr (Maps::kPlain == PlainWords::kNone) return false;
    return (op.flags & kAsked) == OperandSync::kSingleTile;
  }

  /// Lane 0's wait for one word. The loads of abort word, base and word are all on their way before
  /// the first answer is needed: most waits begin long after the last arrival, or long before.
  TW_HOST_DEVICE bool wait_plain_word(const OperandSync& op, int operand) {
    const std::uint32_t base = *op.base;
    const std::uint32_t seen = atomics_.load_acquire(op.words, false);
    if (abort_ != 0) return false;
    if (reached(seen, base, op.target)) return true;
    const WaitSite site{
        .operand = static_cast<std::uint32_t>(operand), .base = base, .target = op.target};
    return wait_word(atomics_, op.words, site, context_.header);
  }

  // Several data tiles: out of line, since the index arithmetic is long and a kernel whose tensors
  // have one data tile each would have to fetch around it in every launch. The references lead into
  // the kernel's parameter, which is why it should be __grid_constant__. Nothing else is passed by
  // reference: what has an address lives in local memory, and an acquire empties the L1 cache.
  TW_NO_INLINE TW_HOST_DEVICE static bool wait_tiles(Atomics atomics, const SyncHeader& h,
                                                     const OperandSync& op,
                                                     const OperandTiles& tiles, int operand,
                                                     const Coord ktile) {
    const TileWalk walk = Maps::walk(op, tiles, operand, ktile, h.args);
    TW_ROLLED_LOOP
    for (std::int64_t i = atomics.lane(); i < walk.count; i += atomics.num_lanes()) {
      const std::int64_t tile = walk.at(i);
      const std::uint32_t base = op.base[tile * tiles.base_stride];
      const WaitSite site{WaitKind::kSemaphore,
                          static_cast<std::uint32_t>(operand),
                          static_cast<std::uint32_t>(tile),
                          base,
                          Maps::target(op, tiles, operand, tile, h.args),
                          (op.flags & OperandSync::kSystemScope) != 0};
      if (!wait_word(atomics, op.words + tile * tiles.word_stride, site, h)) return false;
    }
    return true;
  }
  TW_NO_INLINE TW_HOST_DEVICE static void signal_tiles(Atomics atomics, const SyncHeader& h,
                                                       const OperandSync& op,
                                                       const OperandTiles& tiles, int operand,
                                                       const Coord ktile) {
    const bool system_scope = (op.flags & OperandSync::kSystemScope) != 0;
    const TileWalk walk = Maps::walk(op, tiles, operand, ktile, h.args);
    TW_ROLLED_LOOP
    for (std::int64_t i = atomics.lane(); i < walk.count; i += atomics.num_lanes()) {
      atomics.add_release(op.words + walk.at(i) * tiles.word_stride, 1, system_scope);
    }
  }

  TW_HOST_DEVICE void close_record() {
    if (record_ != nullptr) record_->end_ns = atomics_.now_ns();
  }

  /// A record of the trace ring for lane 0; null for other lanes, and when the ring is full. Events
  /// are written to it as they come: kept in registers they would crowd out those of the kernel.
  TW_NO_INLINE TW_HOST_DEVICE static TileRecord* open_record(Atomics atomics, const SyncHeader& h,
                                                             std::int64_t work) {
    if (atomics.lane() != 0) return nullptr;
    const std::uint32_t slot = atomics.fetch_add_relaxed(h.num_records, 1);
    if (slot >= h.record_capacity) return nullptr;
    TileRecord* record = h.records + slot;
    *record = TileRecord{};
    record->node = h.node;
    record->rank = h.rank;
    record->work = static_cast<std::uint32_t>(work);
    record->sm = atomics.sm_index();
    record->begin_ns = atomics.now_ns();
    return record;
  }

  const SyncContext<kNumOperands>& context_;
  Atomics atomics_;
  TileRecord* record_ = nullptr;  // of the current work, on lane 0 of a traced run
  bool has_work_ = false;         // set_work was called
  std::uint32_t abort_ = 0;       // lane 0: the abort word when this block began
};

}  // namespace tileweave
