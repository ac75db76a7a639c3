// GemmArgs: the argument struct of every GEMM kernel, the same bytes on both devices.
#pragma once

#include <cstdint>
#include <string>

#include "tileweave/kernels/gemm/gemm.h"
#include "tileweave/kernels/gemm/gemm_schedule.h"
#include "tileweave/sync/access.h"

namespace tileweave {

/// One block: what the CUDA kernel is compiled with, and what the emulated device charges.
inline constexpr int kGemmThreads = 256;
inline constexpr std::int64_t kGemmSharedBytes = 2 * 32 * (64 + 4) * 4;
inline constexpr KernelResources kGemmResources{
    .threads = kGemmThreads, .registers_per_thread = 128, .shared_bytes = kGemmSharedBytes};

/// Slots of the kernel's SyncContext, and indices of the node's operands.
struct GemmOperands {
  static constexpr int kA = 0;
  static constexpr int kB = 1;
  static constexpr int kC = 2;
  static constexpr int kCount = 3;
};

/// T: element type of A and B; C: element type of the result.
template <class T, class C>
struct GemmArgs {
  Produced<T> a;
  Stable<T> b_stable;      // B is constant: may be read before any wait
  Produced<T> b_produced;  // B is written during the run: slot kB is waited for
  Output<C> c;
  float* partials;  // (num_partial_slots, tile_m, tile_n)
  GemmSchedule schedule;
  std::int64_t prefetch_k;  // elements of K of a constant B brought near before the first wait
  BLayout b_layout;

  TW_HOST_DEVICE constexpr bool b_is_produced() const { return b_produced.ptr != nullptr; }
  TW_HOST_DEVICE constexpr const T* b(const Ready& ready) const {
    return b_is_produced() ? b_produced.get(ready) : b_stable.get();
  }
  /// Kernel tile of B, read for element `k_at` of K of C tile `tile`.
  TW_HOST_DEVICE constexpr Coord b_tile(std::int64_t tile, std::int64_t k_at) const {
    const std::int64_t col = tile % schedule.tiles_n();
    const std::int64_t slice = schedule.slice_of(k_at);
    return b_layout == BLayout::kKxN ? Coord{slice, col} : Coord{col, slice};
  }
};

/// "gemm.f32.bf16": operands f32, result bf16.
std::string gemm_kernel_name(DType operands, DType result);

}  // namespace tileweave
