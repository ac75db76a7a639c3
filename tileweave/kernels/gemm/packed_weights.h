// Packed weights: W (N, K) bf16 in the order in which tensor cores take it.
//
// Strips of 16 rows, one after the other; a strip is a row of 16 x 16 tiles, ascending k; a tile is
// 512 bytes, 16 per lane: the A fragment of mma.m16n8k16. So any range of k of a strip is one
// contiguous piece, a bulk copy, and a lane's fragment one conflict-free 16-byte load. Rows and
// columns beyond W are zeros. `kPaired` (for a gated product) holds strips of the first half of the
// rows and of the second by turns: gate and up of the same columns lie side by side.
#pragma once

#include <cstddef>
#include <cstdint>

#include "tileweave/core/coord.h"
#include "tileweave/core/dtype.h"
#include "tileweave/runtime/device.h"

namespace tileweave {

enum class StripOrder : std::uint8_t { kRows, kPaired };

inline constexpr std::int64_t kStripRows = 16;
inline constexpr std::int64_t kFragmentColumns = 16;
inline constexpr std::int64_t kFragmentBytes = 512;

/// The layout of one matrix; pure.
struct PackedLayout {
  std::int64_t n = 0;  // rows of W; even where paired
  std::int64_t k = 0;
  StripOrder order = StripOrder::kRows;

  /// Rows of one half where paired, else all.
  TW_HOST_DEVICE constexpr std::int64_t part_rows() const {
    return order == StripOrder::kPaired ? n / 2 : n;
  }
  TW_HOST_DEVICE constexpr std::int64_t num_strips() const {
    return ceil_div(part_rows(), kStripRows) * (order == StripOrder::kPaired ? 2 : 1);
  }
  TW_HOST_DEVICE constexpr std::int64_t fragments() const { return ceil_div(k, kFragmentColumns); }
  TW_HOST_DEVICE constexpr std::int64_t strip_bytes() const { return fragments() * kFragmentBytes; }
  TW_HOST_DEVICE constexpr std::int64_t bytes() const { return num_strips() * strip_bytes(); }
  /// Where element (row, column) lies, in elements.
  TW_HOST_DEVICE constexpr std::int64_t index_of(std::int64_t row, std::int64_t column) const {
    const bool paired = order == StripOrder::kPaired;
    const std::int64_t half = row >= part_rows() ? 1 : 0;
    const std::int64_t in_half = row - half * part_rows();
    const std::int64_t strip = paired ? in_half / kStripRows * 2 + half : row / kStripRows;
    const std::int64_t r = in_half % kStripRows;
    const std::int64_t c = column % kFragmentColumns;
    const std::int64_t lane = r % 8 * 4 + c % 8 / 2;
    const std::int64_t value = (r / 8 + c / 8 * 2) * 2 + c % 2;
    return (strip * fragments() + column / kFragmentColumns) * (kFragmentBytes / 2) + lane * 8 +
           value;
  }
};

/// `to`: layout.bytes() bytes. Plain loops on the host.
void pack_weights(const BFloat16* w, const PackedLayout& layout, BFloat16* to);
/// The same between two places in the device's memory; returns when it is done.
void pack_weights_on(Device& device, const BFloat16* w, const PackedLayout& layout, BFloat16* to);

}  // namespace tileweave
