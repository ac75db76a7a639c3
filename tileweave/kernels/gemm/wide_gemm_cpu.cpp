// Wide GEMM on the emulated device: plain loops over the packed weights, so that the contract can
// be held against the node without a GPU. Parts of K and their order are the GPU's; inside a part
// the sum is ascending.
#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "tileweave/kernels/gemm/wide_gemm.h"
#include "tileweave/kernels/gemm/wide_gemm_args.h"
#include "tileweave/runtime/cpu/tile_view.h"
#include "tileweave/sync/atomics_cpu.h"
#include "tileweave/sync/sync_cta.h"

namespace tileweave {
namespace {

using Operands = WideGemmOperands;
using Sync = SyncCta<AtomicsCpu, Operands::kSlots>;
using Sums = std::array<float, static_cast<std::size_t>(kStripRows)>;

class Block {
 public:
  Block(CpuLane& lane, const WideGemmArgs& args, Sync& sync)
      : lane_(lane), args_(args), s_(args.schedule), sync_(sync) {}

  void run(int work) {
    const int tile = s_.tile_of(work);
    const int group = s_.group_of(work);
    const Ready ready = sync_.wait_input(Operands::kSlotX, {tile, 0});
    if (!ready) return;
    residual_ready_ = Ready(true);
    if (args_.residual.ptr != nullptr) {
      residual_ready_ = sync_.wait_input(Operands::kSlotResidual, {tile, group});
      if (!residual_ready_) return;
    }
    const int unit = s_.gated ? 2 : 1;
    const int first = group * kWideTileStrips;
    const int end = std::min(first + kWideTileStrips, s_.num_strips);
    first_token_ = tile * kWideTileTokens;
    const int end_token = std::min(first_token_ + kWideTileTokens, s_.m);
    if (s_.split_k > 1) {
      for (int token = first_token_; token < end_token; ++token) {
        load_row(token, ready);
        for (int strip = first; strip < end; ++strip) keep_parts(work, token, strip);
      }
      if (!sync_.arrive_last(s_.result_of(work), static_cast<std::uint32_t>(s_.split_k))) return;
    }
    for (int token = first_token_; token < end_token; ++token) {
      if (s_.split_k == 1) load_row(token, ready);
      for (int strip = first; strip < end; strip += unit) {
        const Sums sums = sums_of(work, token, strip);
        s_.gated ? put_gated(token, strip, sums, sums_of(work, token, strip + 1))
                 : put(token, strip, sums);
      }
    }
    sync_.signal_output(Operands::kSlotY, {tile, group});
  }

 private:
  void load_row(int token, const Ready& ready) {
    const MatrixView<const BFloat16> x(args_.x.get(ready), s_.k, Operands::kX, lane_.checker());
    const BFloat16* from = x.row(token, 0, s_.k);
    x_.resize(static_cast<std::size_t>(s_.k));
    for (std::size_t k = 0; k < x_.size(); ++k) x_[k] = to_float(from[k]);
  }

  /// Of the rows of a strip, for the row of x that is loaded.
  Sums sums_of_part(int strip, int part) const {
    const PackedLayout strips{.n = std::int64_t{s_.num_strips} * kStripRows, .k = s_.k};
    Sums sums{};
    for (std::int64_t r = 0; r < kStripRows; ++r) {
      float& sum = sums[static_cast<std::size_t>(r)];
      for (std::int64_t k = std::int64_t{part} * kPartColumns;
           k < std::min<std::int64_t>((part + 1) * kPartColumns, s_.k); ++k) {
        const std::int64_t w = strips.index_of(strip * kStripRows + r, k);
        sum += to_float(args_.w.get()[w]) * x_[static_cast<std::size_t>(k)];
      }
    }
    return sums;
  }

  /// Where a work that shares its result with others keeps the sums of a strip's part.
  float* kept(int work, int part, int token, int strip) const {
    const std::int64_t at = std::int64_t{s_.result_of(work)} * s_.parts() + part;
    return args_.partials + at * kWideSums +
           ((token - first_token_) * kWideTileStrips + strip % kWideTileStrips) * kStripRows;
  }

  void keep_parts(int work, int token, int strip) const {
    for (int part = s_.first_part(work); part < s_.end_part(work); ++part) {
      const Sums sums = sums_of_part(strip, part);
      std::copy(sums.begin(), sums.end(), kept(work, part, token, strip));
    }
  }

  Sums sums_of(int work, int token, int strip) const {
    Sums total{};
    for (int part = 0; part < s_.parts(); ++part) {
      Sums sums{};
      if (s_.split_k > 1) {
        std::copy_n(kept(work, part, token, strip), sums.size(), sums.begin());
      } else {
        sums = sums_of_part(strip, part);
      }
      for (std::size_t r = 0; r < sums.size(); ++r) {
        total[r] = part == 0 ? sums[r] : total[r] + sums[r];
      }
    }
    return total;
  }

  float with_bias(float sum, int row) const {
    if (args_.bias.get() == nullptr) return sum;
    return sum + (args_.bias_type == DType::kF32
                      ? static_cast<const float*>(args_.bias.get())[row]
                      : to_float(static_cast<const BFloat16*>(args_.bias.get())[row]));
  }

  void put(int token, int strip, const Sums& sums) {
    for (int r = 0; r < kStripRows; ++r) {
      const int row = strip * static_cast<int>(kStripRows) + r;
      if (row < s_.n) store(token, row, with_bias(sums[static_cast<std::size_t>(r)], row));
    }
  }

  void put_gated(int token, int strip, const Sums& gates, const Sums& ups) {
    for (int r = 0; r < kStripRows; ++r) {
      const int column = strip / 2 * static_cast<int>(kStripRows) + r;
      if (column >= s_.columns()) return;
      const float gate = with_bias(gates[static_cast<std::size_t>(r)], column);
      const float up = with_bias(ups[static_cast<std::size_t>(r)], s_.columns() + column);
      store(token, column, gate / (1.0F + std::exp(-gate)) * up);
    }
  }

  void store(int token, int column, float sum) {
    if (args_.residual.ptr != nullptr) {
      // The node's last operand.
      const int operand = Operands::kY + 1 + (args_.bias.get() != nullptr ? 1 : 0);
      const MatrixView<const float> residual(args_.residual.get(residual_ready_), s_.columns(),
                                             operand, lane_.checker());
      sum += *residual.row(token, column, 1);
    }
    if (args_.y_type == DType::kF32) {
      const MatrixView<float> y(static_cast<float*>(args_.y.get()), s_.columns(), Operands::kY,
                                lane_.checker());
      *y.row(token, column, 1) = sum;
    } else {
      const MatrixView<BFloat16> y(static_cast<BFloat16*>(args_.y.get()), s_.columns(),
                                   Operands::kY, lane_.checker());
      *y.row(token, column, 1) = to_bfloat16(sum);
    }
  }

  CpuLane& lane_;
  const WideGemmArgs& args_;
  const WideGemmSchedule& s_;
  Sync& sync_;
  Ready residual_ready_{false};
  std::vector<float> x_;
  int first_token_ = 0;
};

void wide_gemm_cpu(CpuLane& lane, const std::byte* arg_bytes, const std::byte* context_bytes) {
  const auto& args = *reinterpret_cast<const WideGemmArgs*>(arg_bytes);
  const auto& context = *reinterpret_cast<const SyncContext<Operands::kSlots>*>(context_bytes);
  Sync sync(context, AtomicsCpu(lane));
  if (!sync.begin_cta()) return;
  Block(lane, args, sync).run(static_cast<int>(sync.remap(lane.block_index())));
}

}  // namespace

void add_wide_gemm_cpu(KernelLibrary& kernels) {
  kernels.add({.name = kWideGemmKernel, .num_sync_slots = Operands::kSlots, .cpu = wide_gemm_cpu});
}

}  // namespace tileweave
