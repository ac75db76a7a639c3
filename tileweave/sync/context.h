// What a kernel needs to synchronise on data tiles: plain structs passed by value as a kernel
// parameter, the same bytes on the emulated device and on a GPU.
//
// The runtime fills a SyncContext<N> for each launch of a node with N operands that carry
// semaphores (any N; the paper has one input and one output). All pointers are device pointers
// that live as long as the plan. Nothing in a context changes between runs, so it may be baked
// into a graph node: what changes (counts, bases, abort) lies behind the pointers.
#pragma once

#include <cstdint>

#include "tileweave/core/coord.h"
#include "tileweave/tile/tile_map.h"
#include "tileweave/tile/tile_order.h"
#include "tileweave/trace/record.h"

namespace tileweave {

/// What a waiter was waiting on when it gave up.
enum class WaitKind : std::uint32_t {
  kSemaphore = 0,  // data-tile semaphore of an operand
  kMbarrier = 1,   // shared-memory barrier inside a block
  kBegun = 2,      // a wait kernel counting begun blocks
};

/// Written once by the first waiter whose deadline expires; the host reads it (host-mapped memory
/// on a GPU). Valid when state == kComplete.
struct HangReport {
  static constexpr std::uint32_t kEmpty = 0;
  static constexpr std::uint32_t kComplete = 2;
  std::uint32_t state;
  std::uint32_t kind;  // WaitKind
  std::uint32_t node;  // waiting node's position
  std::uint32_t rank;
  std::uint32_t operand;  // operand index of the waiting node
  std::uint32_t tile;     // linear data tile (semaphore), stage (mbarrier)
  std::uint32_t seen;     // word value last seen
  std::uint32_t base;     // base of the run
  std::uint32_t target;   // arrivals wanted since base
  std::uint32_t block;    // waiting block
  std::uint32_t sm;
  std::uint32_t unused;
  std::uint64_t waited_ns;
};

/// Semaphores of one operand: what every wait and every signal reads.
struct alignas(16) OperandSync {
  static constexpr std::uint32_t kSystemScope = 1;  // words shared with peers or library kernels
  static constexpr std::uint32_t kSingleTile = 2;   // one data tile, and a constant target
  static constexpr std::uint32_t kWide = 4;         // some extent or tile is 2^31 or more
  static constexpr std::uint32_t kClosedFormTarget = 8;  // from producer_ktile, else `target`
  static constexpr std::uint32_t kOneAxis = 16;          // a kernel tile's coordinate is its number

  std::uint32_t* words;       // data-tile semaphores; null: nothing to wait for or signal
  const std::uint32_t* base;  // counts at the start of this run
  std::uint32_t* stamps;      // arrivals per kernel tile, for hang reports; may be null
  std::uint32_t target;       // constant target
  std::uint32_t flags;
};

/// How an operand's kernel tiles map to data tiles: read only where a tensor has several of them.
struct alignas(16) OperandTiles {
  const std::uint32_t* targets;     // arrivals per data tile (table form), else null
  const std::int32_t* map_offsets;  // CSR table map, else null
  const std::int32_t* map_tiles;
  std::int32_t word_stride;  // words between neighbouring data tiles' semaphores
  std::int32_t base_stride;  // the same for bases; 0: one base word for the whole tensor
  std::int64_t shape[kMaxAxes];
  std::int64_t ktile[kMaxAxes];  // kernel tiles of this node (table map: 1, shape = kernel grid)
  std::int64_t dtile[kMaxAxes];  // data tiles of the tensor
  std::int64_t producer_ktile[kMaxAxes];  // closed-form target: kernel tiles of the producer
  std::int32_t num_axes;
};

/// All of one operand, as contexts are filled.
struct OperandSlot {
  OperandSync sync;
  OperandTiles tiles;
};

/// A counter that blocks of one node share: last arriver of a split tile, queue of a claimed order.
/// Follows the semaphore rule: it only grows and a device-resident base says where a run starts.
struct CounterSync {
  std::uint32_t* words;
  const std::uint32_t* base;
  std::int32_t base_stride;
};

struct alignas(16) SyncHeader {
  static constexpr std::uint32_t kProgrammaticConsumer = 1;  // launched early by PDL: must wait
  static constexpr std::uint32_t kProgrammaticProducer = 2;  // lets the next kernel launch early
  static constexpr std::uint32_t kAssertReady =
      4;  // serial: a wait that is not satisfied is a fault
  static constexpr std::uint32_t kCountBegun = 8;  // begin_cta counts this block as begun
  static constexpr std::uint32_t kWaits = 16;      // some operand polls: abort is looked at there

  // Read by every block.
  std::uint32_t flags;
  std::uint32_t node;
  std::uint32_t* abort;  // device word: non-zero asks every block to leave
  std::uint32_t* begun;  // blocks of this node that have begun, since load or recover()
  TileRecord* records;   // trace ring, or null
  // Read by few.
  const std::int32_t* order;  // table order, else null
  std::int64_t order_offset;  // rotation
  std::int64_t num_works;
  OrderForm order_form;
  std::uint32_t rank;
  HangReport* report;
  std::uint64_t deadline_ns;   // longest wait; 0: none (quiescence is watched instead)
  CounterSync counter;         // words null when the node has none
  std::uint32_t* num_records;  // records claimed so far (may exceed the capacity: dropped)
  std::uint32_t record_capacity;
  LaunchArgs args;
};

/// The order matters: a kernel fetches its parameter by cache lines, each of which is a miss in
/// every launch, some of them between the last arrival and the next signal. So what every block
/// reads lies together, at the front: the operands' words, and the header, which begins with it.
template <int kNumOperands>
struct SyncContext {
  static constexpr int kOperands = kNumOperands;
  OperandSync operands[kNumOperands];
  SyncHeader header;
  OperandTiles tiles[kNumOperands];

  TW_HOST_DEVICE constexpr void set(int operand, const OperandSlot& slot) {
    operands[operand] = slot.sync;
    tiles[operand] = slot.tiles;
  }
};

}  // namespace tileweave
