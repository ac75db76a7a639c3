// Embedding on a GPU: eight neighbouring elements per thread at a time, four such groups in flight.
//
// Any architecture from sm_80, any shape and tiling; groups that are not aligned to 16 bytes go
// element by element. A work of up to 8192 elements has all its loads on their way at once.
#pragma once

#include <cstdint>

#include "tileweave/core/packed_elements.cuh"
#include "tileweave/kernels/embedding/embedding_args.h"
#include "tileweave/sync/atomics_cuda.cuh"
#include "tileweave/sync/sync_cta.h"
#include "tileweave/tile/matrix_tile.h"

namespace tileweave {

inline constexpr int kEmbeddingThreads = 256;
static_assert(kEmbeddingResources.threads == kEmbeddingThreads);

/// Rows of one work.
template <class T, class Y>
class EmbeddingTile {
 public:
  static constexpr int kWidth = 8;
  static constexpr int kBatch = 4;

  __device__ EmbeddingTile(const EmbeddingArgs<T, Y>& args, const MatrixTile& tile)
      : out_(args.out.get()),
        cols_(args.tiles.shape[1]),
        table_rows_(args.table_rows),
        tile_(tile) {}

  __device__ void gather(const std::int32_t* ids, const T* table) const {
    // Groups of eight that do not cross an edge, and lie aligned.
    if ((cols_ | tile_.first_col | tile_.cols) % kWidth == 0 && is_aligned(table) &&
        is_aligned(out_)) {
      gather_groups(ids, table);
    } else {
      gather_elements(ids, table);
    }
  }

 private:
  /// First element of the table's row for this row of out, or -1 where the id names none.
  __device__ std::int64_t table_row(const std::int32_t* ids, std::int64_t row) const {
    const std::int64_t id = ids[row];
    return id >= 0 && id < table_rows_ ? id * cols_ : -1;
  }

  __device__ void gather_groups(const std::int32_t* ids, const T* table) const {
    const auto across = static_cast<unsigned>(tile_.cols / kWidth);
    const unsigned count = static_cast<unsigned>(tile_.rows) * across;
    TW_ROLLED_LOOP
    for (unsigned first = threadIdx.x; first < count; first += kBatch * kEmbeddingThreads) {
      std::int64_t from[kBatch];
      std::int64_t to[kBatch];
#pragma unroll
      for (int b = 0; b < kBatch; ++b) {
        const unsigned group = first + static_cast<unsigned>(b) * kEmbeddingThreads;
        if (group >= count) break;
        const unsigned in_tile = group / across;
        const std::int64_t row = tile_.first_row + in_tile;
        const std::int64_t col = tile_.first_col + (group - in_tile * across) * kWidth;
        to[b] = row * cols_ + col;
        const std::int64_t start = table_row(ids, row);
        from[b] = start < 0 ? -1 : start + col;
      }
      Packed<T, kWidth> packed[kBatch];
#pragma unroll
      for (int b = 0; b < kBatch; ++b) {
        if (first + static_cast<unsigned>(b) * kEmbeddingThreads >= count) break;
        packed[b] = {};  // the zeros of every type
        if (from[b] >= 0) packed[b] = load_packed<kWidth>(table + from[b]);
      }
#pragma unroll
      for (int b = 0; b < kBatch; ++b) {
        if (first + static_cast<unsigned>(b) * kEmbeddingThreads >= count) break;
        float values[kWidth];
        unpack(packed[b], values);
        store_packed(out_ + to[b], pack<Y>(values));
      }
    }
  }

  __device__ void gather_elements(const std::int32_t* ids, const T* table) const {
    const std::int64_t count = tile_.rows * tile_.cols;
    TW_ROLLED_LOOP
    for (std::int64_t i = threadIdx.x; i < count; i += kEmbeddingThreads) {
      const std::int64_t row = tile_.first_row + i / tile_.cols;
      const std::int64_t col = tile_.first_col + i % tile_.cols;
      const std::int64_t start = table_row(ids, row);
      const float value = start < 0 ? 0.0F : to_float(table[start + col]);
      out_[row * cols_ + col] = from_float<Y>(value);
    }
  }

  Y* out_;
  std::int64_t cols_, table_rows_;
  MatrixTile tile_;
};

template <class T, class Y>
__global__ void __launch_bounds__(kEmbeddingThreads)
    embedding_cuda(const __grid_constant__ EmbeddingArgs<T, Y> args,
                   const __grid_constant__ SyncContext<EmbeddingOperands::kSlots> context) {
  using Operands = EmbeddingOperands;
  SyncCta<AtomicsCuda, Operands::kSlots> sync(context);
  if (!sync.begin_cta()) return;
  const std::int64_t works = matrix_tiles(args.tiles);
  for (std::int64_t at = blockIdx.x; at < works; at += gridDim.x) {
    const MatrixTile tile = matrix_tile(args.tiles, sync.remap(at));
    const EmbeddingTile<T, Y> work(args, tile);
    Ready ready = sync.wait_input(Operands::kSlotIds, {tile.m});
    if (!ready) return;
    const std::int32_t* const ids = args.ids.get(ready);
    if (args.table_is_produced()) {
      ready = sync.wait_input(Operands::kSlotTable, {0, tile.n});
      if (!ready) return;
    }
    work.gather(ids, args.table(ready));
    sync.signal_output(Operands::kSlotOut, {tile.m, tile.n});
  }
}

}  // namespace tileweave
