// rope_kv on the emulated device: cosines and sines of a row tile before the wait, then one head
// after the other.
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "tileweave/kernels/rope/rope_head-inl.h"
#include "hwy/foreach_target.h"
#include "hwy/highway.h"
#include "tileweave/kernels/rope/rope_head-inl.h"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "tileweave/kernels/rope/rope_kv.h"
#include "tileweave/kernels/rope/rope_kv_args.h"
#include "tileweave/runtime/cpu/tile_view.h"
#include "tileweave/sync/atomics_cpu.h"
#include "tileweave/sync/sync_cta.h"

namespace tileweave {
namespace {

HWY_EXPORT(rotate_head);
HWY_EXPORT(normalise_head);

using Operands = RopeKvOperands;

std::vector<float> floats(std::int64_t count) {
  return std::vector<float>(static_cast<std::size_t>(count));
}

/// One block: runs works of rope_kv in the shape of a CUDA kernel.
template <class W>
class RopeKvBlock {
 public:
  using Sync = SyncCta<AtomicsCpu, Operands::kSyncSlots>;

  RopeKvBlock(const RopeKvArgs<W, float>& args, Sync& sync, AccessChecker* checker)
      : args_(args),
        s_(args.schedule),
        sync_(sync),
        checker_(checker),
        half_(s_.head_dim / 2),
        padded_(ceil_div(s_.head_dim, 16) * 16),
        q_(args.q.get(), s_.heads * s_.head_dim, Operands::kQ, checker),
        // Row t lies at pool row slots[t]: the view checks, pool_row() says where.
        k_(args.k.get(), 0, Operands::kK, checker),
        v_(args.v.get(), 0, Operands::kV, checker),
        cosines_(floats(s_.tile_m * half_)),
        sines_(floats(s_.tile_m * half_)) {}

  /// Everything that constants decide: comes before the first wait.
  void prepare(const Coord& tile) {
    if (tile[0] == prepared_) return;
    if (prepared_ < 0 && args_.q_norm.get() != nullptr) {
      head_ = floats(padded_);
      q_weight_ = padded_weight(args_.q_norm, Operands::kQNorm);
      k_weight_ = padded_weight(args_.k_norm, Operands::kKNorm);
    }
    prepared_ = tile[0];
    const std::int64_t first = s_.first_row(tile);
    const std::int64_t count = s_.end_row(tile) - first;
    positions_ = run<std::int32_t>(args_.positions, Operands::kPositions, s_.rows, first, count);
    slots_ = run<std::int32_t>(args_.slots, Operands::kSlots, s_.rows, first, count);
    const float* inv_freq = run<float>(args_.inv_freq, Operands::kInvFreq, half_, 0, half_);
    for (std::int64_t i = 0; i < count; ++i) {
      float* cosines = cosines_.data() + i * half_;
      float* sines = sines_.data() + i * half_;
      for (std::int64_t j = 0; j < half_; ++j) {
        const float angle = static_cast<float>(positions_[i]) * inv_freq[j];
        cosines[j] = std::cos(angle) * args_.attention_factor;
        sines[j] = std::sin(angle) * args_.attention_factor;
      }
    }
  }

  /// False: the run is aborted.
  bool run_tile(const Coord& tile) {
    Ready ready(false);
    for (std::int64_t i = 0; i < s_.num_units(tile); ++i) {
      ready = sync_.wait_input(Operands::kSyncQkv, {tile[0], s_.unit(tile, i)});
      if (!ready) return false;
    }
    const MatrixView<const float> qkv(args_.qkv.get(ready), s_.all_heads() * s_.head_dim,
                                      Operands::kQkv, checker_);
    for (std::int64_t i = s_.first_row(tile); i < s_.end_row(tile); ++i) run_row(qkv, tile, i);
    sync_.signal_output(Operands::kSyncQ, tile);
    sync_.signal_output(Operands::kSyncK, tile);
    sync_.signal_output(Operands::kSyncV, tile);
    return true;
  }

 private:
  template <class T>
  const T* run(const Stable<T>& constant, int operand, std::int64_t length, std::int64_t first,
               std::int64_t count) const {
    return TensorView<const T>(constant.get(), {length}, operand, checker_).run({first}, count);
  }

  std::vector<float> padded_weight(const Stable<W>& weight, int operand) const {
    std::vector<float> padded = floats(padded_);
    const W* from = run<W>(weight, operand, s_.head_dim, 0, s_.head_dim);
    for (std::int64_t j = 0; j < s_.head_dim; ++j) {
      padded[static_cast<std::size_t>(j)] = to_float(from[j]);
    }
    return padded;
  }

  void run_row(const MatrixView<const float>& qkv, const Coord& tile, std::int64_t row) {
    const std::int64_t dim = s_.head_dim;
    const std::int64_t in_tile = row - s_.first_row(tile);
    const std::int64_t slot = slots_[in_tile];
    const std::int64_t first = s_.first_kv_head(tile);
    const std::int64_t end = first + s_.num_kv_heads(tile);
    if (slot < 0 || slot >= args_.pool_rows) {
      const std::int64_t group = s_.queries_per_kv() * dim;
      std::fill_n(q_.row(row, first * group, (end - first) * group), (end - first) * group, 0.0F);
      return;
    }
    const std::int64_t pool_row = slot * s_.kv_heads * dim;
    for (std::int64_t h = first * s_.queries_per_kv(); h < end * s_.queries_per_kv(); ++h) {
      turn(qkv.row(row, h * dim, dim), q_weight_, in_tile, q_.row(row, h * dim, dim));
    }
    for (std::int64_t h = first; h < end; ++h) {
      turn(qkv.row(row, (s_.heads + h) * dim, dim), k_weight_, in_tile,
           k_.row(row, h * dim, dim) + pool_row);
      std::copy_n(qkv.row(row, (s_.heads + s_.kv_heads + h) * dim, dim), dim,
                  v_.row(row, h * dim, dim) + pool_row);
    }
  }

  void turn(const float* from, const std::vector<float>& weight, std::int64_t in_tile, float* to) {
    if (!weight.empty()) {
      std::copy_n(from, s_.head_dim, head_.begin());
      std::fill(head_.begin() + s_.head_dim, head_.end(), 0.0F);
      HWY_DYNAMIC_DISPATCH(normalise_head)
      (head_.data(), weight.data(), s_.head_dim, padded_, args_.eps);
      from = head_.data();
    }
    HWY_DYNAMIC_DISPATCH(rotate_head)
    (from, cosines_.data() + in_tile * half_, sines_.data() + in_tile * half_, to, half_);
  }

  const RopeKvArgs<W, float>& args_;
  const RopeKvSchedule& s_;
  Sync& sync_;
  AccessChecker* checker_;
  std::int64_t half_;
  std::int64_t padded_;
  MatrixView<float> q_, k_, v_;
  std::vector<float> cosines_, sines_;      // (tile_m, half_), of row tile prepared_
  std::vector<float> head_;                 // with the fused QK-norm only
  std::vector<float> q_weight_, k_weight_;  //
  std::int64_t prepared_ = -1;
  const std::int32_t* positions_ = nullptr;  // of the tile's first row on
  const std::int32_t* slots_ = nullptr;
};

template <class W>
void rope_kv_cpu(CpuLane& lane, const std::byte* arg_bytes, const std::byte* context_bytes) {
  const auto& args = *reinterpret_cast<const RopeKvArgs<W, float>*>(arg_bytes);
  const auto& context = *reinterpret_cast<const SyncContext<Operands::kSyncSlots>*>(context_bytes);
  SyncCta<AtomicsCpu, Operands::kSyncSlots> sync(context, AtomicsCpu(lane));
  if (!sync.begin_cta()) return;
  RopeKvBlock<W> block(args, sync, lane.checker());
  for (std::int64_t at = lane.block_index(); at < args.schedule.num_works();
       at += args.num_blocks) {
    const Coord tile = args.schedule.tile(sync.remap(at));
    block.prepare(tile);
    if (!block.run_tile(tile)) return;
  }
}

template <class W>
void add(KernelLibrary& kernels) {
  kernels.add({.name = rope_kv_kernel_name(kDTypeOf<W>, DType::kF32),
               .num_sync_slots = Operands::kSyncSlots,
               .cpu = rope_kv_cpu<W>});
}

}  // namespace

void add_rope_cpu(KernelLibrary& kernels) {
  add<float>(kernels);
  add<BFloat16>(kernels);
  add<Float16>(kernels);
}

}  // namespace tileweave
