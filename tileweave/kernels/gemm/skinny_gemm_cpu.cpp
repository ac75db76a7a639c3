// Skinny GEMM on the emulated device: plain loops over the packed weights, so that the contract can
// be held against the node without a GPU. Parts of K and their order are the GPU's; inside a part
// the sum is ascending.
#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "tileweave/kernels/gemm/skinny_gemm.h"
#include "tileweave/kernels/gemm/skinny_gemm_args.h"
#include "tileweave/runtime/cpu/tile_view.h"
#include "tileweave/sync/atomics_cpu.h"
#include "tileweave/sync/sync_cta.h"

namespace tileweave {
namespace {

using Operands = SkinnyGemmOperands;
using Sync = SyncCta<AtomicsCpu, Operands::kSlots>;

float number_at(const void* from, DType type, std::int64_t i) {
  return type == DType::kF32 ? static_cast<const float*>(from)[i]
                             : to_float(static_cast<const BFloat16*>(from)[i]);
}

class Block {
 public:
  Block(CpuLane& lane, const SkinnyGemmArgs& args, Sync& sync)
      : lane_(lane), args_(args), s_(args.schedule), sync_(sync) {}

  bool run(int work) {
    if (!load_x(work)) return false;
    residual_ready_ =
        Ready(args_.residual.ptr == nullptr ||
              static_cast<bool>(sync_.wait_input(Operands::kSlotResidual, {0, s_.group_of(work)})));
    if (!residual_ready_) return false;
    for (int strip = s_.first_strip(work); strip < s_.end_strip(work); ++strip) {
      for (int r = 0; r < kStripRows; ++r) {
        for (int token = 0; token < s_.m; ++token) {
          float total = 0;
          const int first = s_.first_part(work) / s_.span_parts;
          for (int span = first; span * s_.span_parts < s_.end_part(work); ++span) {
            const float sum = sum_of_span(strip, r, token, span);
            if (s_.split_k > 1) *partial(strip, span, r, token) = sum;
            total = span == first ? sum : total + sum;
          }
          if (s_.split_k == 1) put(strip, r, token, total);
        }
      }
    }
    if (s_.split_k > 1) {
      if (!sync_.arrive_last(s_.group_of(work), static_cast<std::uint32_t>(s_.split_k))) {
        return true;
      }
      for (int strip = s_.first_strip(work); strip < s_.end_strip(work); ++strip) {
        for (int r = 0; r < kStripRows; ++r) {
          for (int token = 0; token < s_.m; ++token) {
            float total = *partial(strip, 0, r, token);
            for (int span = 1; span < s_.spans(); ++span) {
              total += *partial(strip, span, r, token);
            }
            put(strip, r, token, total);
          }
        }
      }
    }
    sync_.signal_output(Operands::kSlotY, {0, s_.group_of(work)});
    return true;
  }

 private:
  /// Waits for x slice by slice; columns of the work's parts as fp32, times norm weights where
  /// asked.
  bool load_x(int work) {
    first_k_ = s_.first_k(work);
    const int columns = s_.end_k(work) - first_k_;
    x_.assign(static_cast<std::size_t>(s_.m) * static_cast<std::size_t>(columns), 0.0F);
    width_ = columns;
    scales_.assign(static_cast<std::size_t>(s_.m), 1.0F);
    const bool norm = args_.norm_weight.get() != nullptr;
    for (int k = first_k_; k < s_.end_k(work);) {
      const int slice = k / s_.slice();
      const int end = std::min(s_.end_k(work), (slice + 1) * s_.slice());
      const Ready ready = sync_.wait_input(Operands::kSlotX, {0, slice});
      if (!ready) return false;
      for (int i = 0; i < s_.m; ++i) {
        norm ? norm_row(i, ready) : copy_row(i, k, end, ready);
      }
      k = end;
    }
    return true;
  }

  void copy_row(int i, int begin, int end, const Ready& ready) {
    const MatrixView<const BFloat16> x(static_cast<const BFloat16*>(args_.x.get(ready)), s_.k,
                                       Operands::kX, lane_.checker());
    const BFloat16* from = x.row(i, begin, end - begin);
    for (int k = begin; k < end; ++k) at(i, k) = to_float(from[k - begin]);
  }

  void norm_row(int i, const Ready& ready) {
    const MatrixView<const float> x(static_cast<const float*>(args_.x.get(ready)), s_.k,
                                    Operands::kX, lane_.checker());
    const float* from = x.row(i, 0, s_.k);
    float squares = 0;
    for (int k = 0; k < s_.k; ++k) squares += from[k] * from[k];
    scales_[static_cast<std::size_t>(i)] = 1.0F / std::sqrt(squares * args_.one_over_k + args_.eps);
    for (int k = first_k_; k < first_k_ + width_; ++k) {
      const float weight = number_at(args_.norm_weight.get(), args_.norm_type, k);
      at(i, k) = to_float(to_bfloat16(from[k] * weight));
    }
  }

  float& at(int i, int k) {
    return x_[static_cast<std::size_t>(i) * static_cast<std::size_t>(width_) +
              static_cast<std::size_t>(k - first_k_)];
  }

  float sum_of(int strip, int r, int token, int part) {
    const PackedLayout strip_of_rows{.n = std::int64_t{s_.num_strips} * kStripRows, .k = s_.k};
    const int end = std::min((part + 1) * kPartColumns, s_.k);
    float sum = 0;
    for (int k = part * kPartColumns; k < end; ++k) {
      const std::int64_t w = strip_of_rows.index_of(std::int64_t{strip} * kStripRows + r, k);
      sum += to_float(args_.w.get()[w]) * at(token, k);
    }
    return sum;
  }

  float sum_of_span(int strip, int r, int token, int span) {
    const int first = span * s_.span_parts;
    float sum = sum_of(strip, r, token, first);
    for (int part = first + 1; part < std::min(first + s_.span_parts, s_.parts()); ++part) {
      sum += sum_of(strip, r, token, part);
    }
    return sum;
  }

  float* partial(int strip, int span, int r, int token) {
    return args_.partials + ((std::int64_t{strip} * s_.spans() + span) * kStripRows + r) * s_.m +
           token;
  }

  void put(int strip, int r, int token, float sum) {
    const int row = s_.row_of(strip, r);
    if (row >= s_.n) return;
    sum *= scales_[static_cast<std::size_t>(token)];
    if (args_.bias.get() != nullptr) sum += number_at(args_.bias.get(), args_.bias_type, row);
    int column = row;
    if (s_.gated) {
      // The gate waits for its up, the next strip of the pair.
      const std::size_t place = static_cast<std::size_t>(r) * static_cast<std::size_t>(s_.m) +
                                static_cast<std::size_t>(token);
      gates_.resize(static_cast<std::size_t>(kStripRows) * static_cast<std::size_t>(s_.m));
      if (strip % 2 == 0) {
        gates_[place] = sum;
        return;
      }
      column = row - s_.n / 2;
      const float gate = gates_[place];
      sum = gate / (1.0F + std::exp(-gate)) * sum;
    }
    if (args_.residual.ptr != nullptr) {
      const MatrixView<const float> residual(args_.residual.get(residual_ready_), s_.columns(),
                                             residual_operand(), lane_.checker());
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

  /// The residual is the node's last operand.
  int residual_operand() const {
    return SkinnyGemmOperands::kY + 1 + (args_.norm_weight.get() != nullptr ? 1 : 0) +
           (args_.bias.get() != nullptr ? 1 : 0);
  }

  CpuLane& lane_;
  const SkinnyGemmArgs& args_;
  const SkinnyGemmSchedule& s_;
  Sync& sync_;
  Ready residual_ready_{false};
  std::vector<float> x_;
  std::vector<float> scales_;  // 1 / rms of each row, which its results are multiplied with
  std::vector<float> gates_;
  int first_k_ = 0;
  int width_ = 0;
};

void skinny_gemm_cpu(CpuLane& lane, const std::byte* arg_bytes, const std::byte* context_bytes) {
  const auto& args = *reinterpret_cast<const SkinnyGemmArgs*>(arg_bytes);
  const auto& context = *reinterpret_cast<const SyncContext<Operands::kSlots>*>(context_bytes);
  Sync sync(context, AtomicsCpu(lane));
  if (!sync.begin_cta()) return;
  Block(lane, args, sync).run(static_cast<int>(sync.remap(lane.block_index())));
}

}  // namespace

void add_skinny_gemm_cpu(KernelLibrary& kernels) {
  for (const SkinnyKernel kernel : {SkinnyKernel::kBulk, SkinnyKernel::kPortable}) {
    for (const int tokens : {1, 8, 16, 32, 64}) {
      for (const bool norm : {false, true}) {
        for (const bool split : {false, true}) {
          kernels.add({.name = skinny_gemm_kernel_name(kernel, tokens, norm, split),
                       .num_sync_slots = Operands::kSlots,
                       .cpu = skinny_gemm_cpu});
        }
      }
    }
  }
}

}  // namespace tileweave
