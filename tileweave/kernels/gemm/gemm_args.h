// GemmArgs: the argument struct of every GEMM kernel, the same bytes on both devices, and the names
// and element types under which kernels are registered.
#pragma once

#include <cstdint>
#include <string>

#include "tileweave/core/dtype.h"
#include "tileweave/kernels/gemm/gemm.h"
#include "tileweave/kernels/gemm/gemm_schedule.h"
#include "tileweave/sync/access.h"

namespace tileweave {

/// One block: what the CUDA kernel is compiled with, and what the emulated device charges.
inline constexpr int kGemmThreads = 256;
inline constexpr std::int64_t kGemmSharedBytes = 2 * 32 * (64 + 4) * 4;
inline constexpr KernelResources kGemmResources{
    .threads = kGemmThreads, .registers_per_thread = 128, .shared_bytes = kGemmSharedBytes};

/// Indices of the node's operands, and slots of the kernel's SyncContext. Bias and residual follow
/// C where they exist, bias first; the bias has no slot.
struct GemmOperands {
  static constexpr int kA = 0;
  static constexpr int kB = 1;
  static constexpr int kC = 2;
  static constexpr int kCount = 3;
  static constexpr int kSlotResidual = 3;
  static constexpr int kSlotsWithResidual = 4;
};

/// TA, TB, TC: element types of A, B and the result.
template <class TA, class TB, class TC>
struct GemmArgs {
  Produced<TA> a;
  Stable<TB> b_stable;      // B is constant: may be read before any wait
  Produced<TB> b_produced;  // B is written during the run: slot kB is waited for
  Output<TC> c;
  float* partials;  // (num_partial_slots, tile_m, tile_n); gated: two tiles per slot
  GemmSchedule schedule;
  std::int64_t prefetch_k;  // elements of K of a constant B brought near before the first wait
  BLayout b_layout;

  TW_HOST_DEVICE constexpr bool b_is_produced() const { return b_produced.ptr != nullptr; }
  TW_HOST_DEVICE constexpr const TB* b(const Ready& ready) const {
    return b_is_produced() ? b_produced.get(ready) : b_stable.get();
  }
  /// Kernel tile of B, read for element `k_at` of K of C tile `tile`.
  TW_HOST_DEVICE constexpr Coord b_tile(std::int64_t tile, std::int64_t k_at) const {
    const std::int64_t col = tile % schedule.tiles_n();
    const std::int64_t slice = schedule.slice_of(k_at);
    return b_layout == BLayout::kKxN ? Coord{slice, col} : Coord{col, slice};
  }
};

struct GemmEpilogueArgs {
  Stable<void> bias = {};  // null: none
  DType bias_type = DType::kF32;
  Produced<float> residual = {};  // null: none
  int bias_operand = -1;          // indices of the node's operands
  int residual_operand = -1;
  GemmActivation activation = GemmActivation::kNone;
  bool gated = false;
};

/// Argument struct of the kernels with an epilogue.
template <class TA, class TB, class TC>
struct GemmFusedArgs {
  GemmArgs<TA, TB, TC> gemm;
  GemmEpilogueArgs epilogue;
};

/// What a kernel can do beyond the sums; a residual takes a slot, so it takes a kernel of its own.
enum class GemmForm : std::uint8_t { kPlain, kEpilogue, kResidual };

constexpr int num_slots(GemmForm form) {
  return form == GemmForm::kResidual ? GemmOperands::kSlotsWithResidual : GemmOperands::kCount;
}

/// Element types of one kernel.
template <class TA, class TB, class TC>
struct GemmTypes {
  using A = TA;
  using B = TB;
  using C = TC;
  static bool match(DType a, DType b, DType c) {
    return a == kDTypeOf<TA> && b == kDTypeOf<TB> && c == kDTypeOf<TC>;
  }
};

/// Combinations that both devices have.
template <class Visit>
void for_each_common_gemm_types(Visit visit) {
  visit(GemmTypes<float, float, float>{});
  visit(GemmTypes<float, float, BFloat16>{});
  visit(GemmTypes<BFloat16, BFloat16, float>{});
  visit(GemmTypes<BFloat16, BFloat16, BFloat16>{});
}
/// And those of the CPU.
template <class Visit>
void for_each_gemm_types(Visit visit) {
  for_each_common_gemm_types(visit);
  visit(GemmTypes<float, BFloat16, float>{});
  visit(GemmTypes<float, Float16, float>{});
}

/// "gemm.f32.bf16.f32": A, B, C; then ".epilogue" or ".residual" (which may do all the rest too).
std::string gemm_kernel_name(DType a, DType b, DType c, GemmForm form);

}  // namespace tileweave
