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
    const int first_token = tile * kWideTileTokens;
    for (int token = first_token; token < std::min(first_token + kWideTileTokens, s_.m); ++token) {
      load_row(token, ready);
      for (int strip = first; strip < end; strip += unit) {
        const Sums sums = sums_of(strip);
        s_.gated ? put_gated(token, strip, sums, sums_of(strip + 1)) : put(token, strip, sums);
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
  Sums sums_of(int strip) const {
    const PackedLayout strips{.n = std::int64_t{s_.num_strips} * kStripRows, .k = s_.k};
    Sums total{};
    for (std::int64_t first = 0; first < s_.k; first += kPartColumns) {
      const std::int64_t end = std::min<std::int64_t>(first + kPartColumns, s_.k);
      for (std::int64_t r = 0; r < kStripRows; ++r) {
        float part = 0;
        for (std::int64_t k = first; k < end; ++k) {
          const std::int64_t w = strips.index_of(strip * kStripRows + r, k);
          part += to_float(args_.w.get()[w]) * x_[static_cast<std::size_t>(k)];
        }
        float& sum = total[static_cast<std::size_t>(r)];
        sum = first == 0 ? part : sum + part;
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
