// RopeKvArgs: the argument struct of every rope_kv kernel, and which heads a work turns.
#pragma once

#include <cstdint>
#include <string>

#include "tileweave/core/coord.h"
#include "tileweave/core/dtype.h"
#include "tileweave/plan/resources.h"
#include "tileweave/sync/access.h"

namespace tileweave {

inline constexpr KernelResources kRopeKvResources{.threads = 256, .registers_per_thread = 64};

/// Indices of the node's operands, and slots of the kernel's SyncContext.
struct RopeKvOperands {
  static constexpr int kQkv = 0;
  static constexpr int kPositions = 1;
  static constexpr int kSlots = 2;
  static constexpr int kInvFreq = 3;
  static constexpr int kQ = 4;
  static constexpr int kK = 5;
  static constexpr int kV = 6;
  static constexpr int kQNorm = 7;  // only with the fused QK-norm
  static constexpr int kKNorm = 8;
  static constexpr int kSyncQkv = 0;
  static constexpr int kSyncQ = 1;
  static constexpr int kSyncK = 2;
  static constexpr int kSyncV = 3;
  static constexpr int kSyncSlots = 4;
};

/// Work {m, g}: rows of row tile m; key and value heads of group g and the query heads that share
/// them. qkv is cut into units of whole heads, of which every group covers several.
struct RopeKvSchedule {
  std::int64_t rows, heads, kv_heads, head_dim;
  std::int64_t tile_m, tile_kv_heads;

  TW_HOST_DEVICE constexpr std::int64_t queries_per_kv() const { return heads / kv_heads; }
  TW_HOST_DEVICE constexpr std::int64_t all_heads() const { return heads + 2 * kv_heads; }
  TW_HOST_DEVICE constexpr std::int64_t tiles_m() const { return ceil_div(rows, tile_m); }
  TW_HOST_DEVICE constexpr std::int64_t groups() const { return ceil_div(kv_heads, tile_kv_heads); }
  TW_HOST_DEVICE constexpr std::int64_t num_works() const { return tiles_m() * groups(); }
  TW_HOST_DEVICE constexpr Coord tile(std::int64_t work) const {
    return {work / groups(), work % groups()};
  }
  TW_HOST_DEVICE constexpr std::int64_t first_row(const Coord& tile) const {
    return tile[0] * tile_m;
  }
  TW_HOST_DEVICE constexpr std::int64_t end_row(const Coord& tile) const {
    return min64(rows, first_row(tile) + tile_m);
  }
  TW_HOST_DEVICE constexpr std::int64_t first_kv_head(const Coord& tile) const {
    return tile[1] * tile_kv_heads;
  }
  TW_HOST_DEVICE constexpr std::int64_t num_kv_heads(const Coord& tile) const {
    return min64(tile_kv_heads, kv_heads - first_kv_head(tile));
  }

  /// Heads per unit: all of them where there is one group, else a divisor of every first head.
  TW_HOST_DEVICE constexpr std::int64_t unit_heads() const {
    return groups() == 1 ? all_heads() : gcd(tile_kv_heads, kv_heads);
  }
  TW_HOST_DEVICE constexpr std::int64_t units_per_row() const { return all_heads() / unit_heads(); }
  TW_HOST_DEVICE constexpr std::int64_t num_units(const Coord& tile) const {
    return groups() == 1 ? 1 : num_kv_heads(tile) * (queries_per_kv() + 2) / unit_heads();
  }
  /// The i-th unit that `tile` reads, queries before keys before values.
  TW_HOST_DEVICE constexpr std::int64_t unit(const Coord& tile, std::int64_t i) const {
    const std::int64_t first = first_kv_head(tile) / unit_heads();
    const std::int64_t kv_units = num_kv_heads(tile) / unit_heads();
    const std::int64_t q_units = kv_units * queries_per_kv();
    if (i < q_units) return first * queries_per_kv() + i;
    i -= q_units;
    const std::int64_t first_key = heads / unit_heads() + first;
    return i < kv_units ? first_key + i : first_key + kv_heads / unit_heads() + i - kv_units;
  }

 private:
  TW_HOST_DEVICE static constexpr std::int64_t gcd(std::int64_t a, std::int64_t b) {
    while (b != 0) {
      const std::int64_t rest = a % b;
      a = b;
      b = rest;
    }
    return a;
  }
};

/// W: element type of the QK-norm weights; float, and null, without it. T: of the results.
template <class W, class T>
struct RopeKvArgs {
  Produced<float> qkv;
  Stable<std::int32_t> positions, slots;
  Stable<float> inv_freq;
  Stable<W> q_norm, k_norm;
  Output<T> q, k, v;
  RopeKvSchedule schedule;
  std::int64_t pool_rows;
  std::int64_t num_works, num_blocks;
  float attention_factor;
  float eps;
};

/// "rope_kv.bf16.f32": element types of the QK-norm weights (f32 without it) and of the results.
std::string rope_kv_kernel_name(DType weight, DType result);

}  // namespace tileweave
