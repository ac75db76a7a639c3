// The tile-mix kernel: one source for the emulated device and for a GPU.
//
// Every lane reads every input element itself, so each lane's view of memory is tested; lanes share
// the writing. `Views` is told of every box before it is touched (checking views; nothing on a
// GPU).
#pragma once

#include <cstdint>

#include "tests/runtime/tile_mix.h"
#include "tileweave/core/coord.h"
#include "tileweave/core/target.h"
#include "tileweave/sync/sync_cta.h"

namespace tileweave {

struct MixOperand {
  std::uint32_t* ptr;
  std::int64_t stride[kMaxAxes];
  std::int32_t num_axes;
  std::int32_t table;  // where in `tables` its section starts
};

struct MixArgs {
  /// Per operand: num_works + 1 offsets, then kMixEntryWords per touched kernel tile.
  const std::int32_t* tables;
  MixOperand operands[kMaxMixOperands];
  std::int32_t num_inputs;
  std::uint32_t salt;
  std::int64_t num_works;
  std::int64_t num_blocks;
  std::int64_t fault_work;
  const std::uint32_t* fault_switch;  // null: always on
  MixFault fault;
  MixOrder taking;
  std::uint32_t delay_seed;
  std::uint32_t max_delay_ns;
};

/// Axes of the coordinate, coordinate, first element, size.
inline constexpr int kMixEntryWords = 1 + 3 * kMaxAxes;

TW_HOST_DEVICE constexpr std::uint32_t mix32(std::uint32_t hash, std::uint32_t value) {
  hash = (hash ^ value) * 0x9e3779b1U;
  hash ^= hash >> 15;
  hash *= 0x85ebca77U;
  return hash ^ (hash >> 13);
}

/// A kernel tile as the tables describe it.
struct MixTile {
  Coord coord;
  Box box;
};

struct NoMixViews {
  TW_HOST_DEVICE void read(int /*operand*/, const Box& /*box*/) const {}
  TW_HOST_DEVICE void write(int /*operand*/, const Box& /*box*/) const {}
};

/// Maps and targets compiled into the kernel, for one input and one output cut by rows. Launch
/// arguments: rows; of each operand kernel rows and data rows, 32 bits each; the rows of the
/// input's producer.
struct MixRowMaps {
  static LaunchArgs args(std::int64_t rows, std::int64_t in_kernel, std::int64_t in_data,
                         std::int64_t out_kernel, std::int64_t out_data, std::int64_t in_producer) {
    return {{rows, in_kernel | in_data << 32, out_kernel | out_data << 32, in_producer}};
  }
  TW_HOST_DEVICE static TileSpan map(int operand, const Coord& k, const LaunchArgs& args) {
    const std::int64_t kernel = args.v[1 + operand] & 0xffffffff;
    const std::int64_t data = args.v[1 + operand] >> 32;
    const std::int64_t first = k.v[0] * kernel / data;
    const std::int64_t end = min64((k.v[0] + 1) * kernel, args.v[0]);
    TileSpan span;
    span.first.num_axes = span.extent.num_axes = 1;
    span.first.v[0] = first;
    span.extent.v[0] = (end - 1) / data - first + 1;
    return span;
  }
  TW_HOST_DEVICE static std::uint32_t target(int operand, const Coord& d, const LaunchArgs& args) {
    const std::int64_t data = args.v[1 + operand] >> 32;
    const std::int64_t begin = d.v[0] * data;
    const std::int64_t end = min64(begin + data, args.v[0]);
    return static_cast<std::uint32_t>((end - 1) / args.v[3] - begin / args.v[3] + 1);
  }
};

template <int kNumOperands, class Atomics, class Views, class Maps = ContextMaps>
class TileMix {
 public:
  TW_HOST_DEVICE TileMix(const MixArgs& args, const SyncContext<kNumOperands>& context,
                         Atomics atomics, Views views)
      : args_(args), sync_(context, atomics), views_(views) {}

  TW_HOST_DEVICE void run_block() {
    if (!sync_.begin_cta()) return;
    std::int64_t at = first_position();
    while (at >= 0 && at < args_.num_works) {
      if (!run_work(sync_.remap(at))) return;
      at = next_position(at);
    }
    // A block of a claimed order may have got no work at all.
    sync_.wait_for_grid_dependency();
  }

 private:
  TW_HOST_DEVICE std::int64_t first_position() {
    return args_.taking == MixOrder::kClaimed ? sync_.claim() : sync_.atomics().block_index();
  }
  TW_HOST_DEVICE std::int64_t next_position(std::int64_t at) {
    return args_.taking == MixOrder::kClaimed ? sync_.claim() : at + args_.num_blocks;
  }
  TW_HOST_DEVICE bool faulty(MixFault fault, std::int64_t work) const {
    return args_.fault == fault && args_.fault_work == work &&
           (args_.fault_switch == nullptr || *args_.fault_switch != 0);
  }

  TW_HOST_DEVICE const std::int32_t* section(int operand) const {
    return args_.tables + args_.operands[operand].table;
  }
  TW_HOST_DEVICE MixTile tile(int operand, std::int32_t index) const {
    const std::int32_t* entry =
        section(operand) + args_.num_works + 1 + static_cast<std::int64_t>(index) * kMixEntryWords;
    MixTile t;
    t.coord.num_axes = entry[0];
    t.box.begin.num_axes = t.box.size.num_axes = args_.operands[operand].num_axes;
    for (int a = 0; a < kMaxAxes; ++a) {
      t.coord.v[a] = entry[1 + a];
      t.box.begin.v[a] = entry[1 + kMaxAxes + a];
      t.box.size.v[a] = entry[1 + 2 * kMaxAxes + a];
    }
    return t;
  }

  /// Address of element `e` (row-major within the box).
  TW_HOST_DEVICE std::uint32_t* element(int operand, const Box& box, std::int64_t e) const {
    const MixOperand& op = args_.operands[operand];
    std::int64_t offset = 0;
    for (int a = op.num_axes - 1; a >= 0; --a) {
      offset += (box.begin.v[a] + e % box.size.v[a]) * op.stride[a];
      e /= box.size.v[a];
    }
    return op.ptr + offset;
  }

  TW_HOST_DEVICE std::uint32_t read(int operand, const Box& box, std::uint32_t hash) {
    views_.read(operand, box);
    const std::int64_t volume = box.volume();
    for (std::int64_t e = 0; e < volume; ++e) hash = mix32(hash, *element(operand, box, e));
    return hash;
  }

  TW_HOST_DEVICE void write(int operand, const Box& box, std::uint32_t hash) {
    views_.write(operand, box);
    const std::int64_t volume = box.volume();
    for (std::int64_t e = sync_.atomics().lane(); e < volume; e += sync_.atomics().num_lanes()) {
      *element(operand, box, e) = mix32(hash, static_cast<std::uint32_t>(e));
    }
  }

  /// One element just behind the tile on its last axis, or just before it.
  TW_HOST_DEVICE void write_outside(int operand, Box box) {
    const int last = box.begin.num_axes - 1;
    const std::int64_t length =
        last > 0 ? args_.operands[operand].stride[last - 1] : box.begin.v[last] + box.size.v[last];
    const std::int64_t end = box.begin.v[last] + box.size.v[last];
    if (end < length) {
      box.begin.v[last] = end;
    } else {
      --box.begin.v[0];
      box.size.v[0] = 1;
    }
    box.size.v[last] = 1;
    write(operand, box, 0);
  }

  TW_HOST_DEVICE void delay(std::int64_t work) {
    if (args_.max_delay_ns == 0) return;
    const std::uint64_t begin = sync_.atomics().now_ns();
    // The count of begun blocks differs from run to run.
    const std::uint32_t run = sync_.atomics().load_relaxed(sync_.context().header.begun) / 64;
    const std::uint32_t length =
        mix32(mix32(args_.delay_seed, static_cast<std::uint32_t>(work)), run) % args_.max_delay_ns;
    while (sync_.atomics().now_ns() - begin < length) {
    }
  }

  /// Until somebody else gives up on the run.
  TW_HOST_DEVICE void never_end() {
    const WaitSite site{WaitKind::kMbarrier, 0, 0, 0, 1, false};
    const std::uint32_t* abort = sync_.context().header.abort;
    while (sync_.atomics().load_relaxed(abort) == 0) sync_.atomics().pause(abort, site);
  }

  TW_HOST_DEVICE bool run_work(std::int64_t work) {
    delay(work);
    std::uint32_t hash = mix32(args_.salt, static_cast<std::uint32_t>(work));
    for (int i = 0; i < args_.num_inputs; ++i) {
      const std::int32_t* offsets = section(i);
      for (std::int32_t t = offsets[work]; t < offsets[work + 1]; ++t) {
        const MixTile in = tile(i, t);
        const bool early = i == 0 && faulty(MixFault::kReadEarly, work);
        if (early) hash = read(i, in.box, hash);
        const Ready ready = sync_.wait_input(i, in.coord);
        if (!ready) return false;
        if (!early) hash = read(i, in.box, hash);
      }
    }
    if (faulty(MixFault::kNeverEnds, work)) {
      never_end();
      return false;
    }
    // In place: every lane has read before any lane writes.
    sync_.atomics().barrier();
    // After its last signal a work touches nothing, so what has no semaphores is written first.
    for (const bool signalled : {false, true}) {
      for (int o = args_.num_inputs; o < kNumOperands; ++o) {
        if ((sync_.context().operands[o].words != nullptr) == signalled) put(o, work, hash);
      }
    }
    return true;
  }

  /// Writes and signals the tiles of one output.
  TW_HOST_DEVICE void put(int operand, std::int64_t work, std::uint32_t hash) {
    const std::int32_t* offsets = section(operand);
    for (std::int32_t t = offsets[work]; t < offsets[work + 1]; ++t) {
      const MixTile out = tile(operand, t);
      const bool early = faulty(MixFault::kSignalEarly, work);
      if (early) sync_.signal_output(operand, out.coord);
      write(operand, out.box,
            mix32(hash, static_cast<std::uint32_t>(operand * 1000 + (t - offsets[work]))));
      if (faulty(MixFault::kWriteOutside, work)) write_outside(operand, out.box);
      if (!early && !faulty(MixFault::kSkipSignal, work)) sync_.signal_output(operand, out.coord);
    }
  }

  const MixArgs& args_;
  SyncCta<Atomics, kNumOperands, Maps> sync_;
  Views views_;
};

/// "tile_mix.3": kernel for three operands; "tile_mix.3.lanes2": two lanes on the emulated device.
/// "tile_mix.2.rows": MixRowMaps compiled in.
inline constexpr const char* kMixRowsKernel = "tile_mix.2.rows";
inline std::string mix_kernel_name(int num_operands, int lanes) {
  return "tile_mix." + std::to_string(num_operands) +
         (lanes > 1 ? ".lanes" + std::to_string(lanes) : "");
}

}  // namespace tileweave
