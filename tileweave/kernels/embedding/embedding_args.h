// EmbeddingArgs: the argument struct of every embedding kernel.
#pragma once

#include <cstdint>
#include <string>

#include "tileweave/core/dtype.h"
#include "tileweave/plan/resources.h"
#include "tileweave/sync/access.h"
#include "tileweave/tile/tiling.h"

namespace tileweave {

inline constexpr KernelResources kEmbeddingResources{.threads = 256, .registers_per_thread = 32};

/// Indices of the node's operands, and slots of the kernel's SyncContext.
struct EmbeddingOperands {
  static constexpr int kIds = 0;
  static constexpr int kTable = 1;
  static constexpr int kOut = 2;
  static constexpr int kSlotIds = 0;
  static constexpr int kSlotTable = 1;
  static constexpr int kSlotOut = 2;
  static constexpr int kSlots = 3;
};

template <class T, class Y>
struct EmbeddingArgs {
  Produced<std::int32_t> ids;
  Stable<T> table_stable;      // a constant table, else null
  Produced<T> table_produced;  // any other
  Output<Y> out;
  Tiling tiles;  // of out: tile `work` is the box of a work
  std::int64_t table_rows;
  std::int64_t num_blocks;

  TW_HOST_DEVICE constexpr bool table_is_produced() const { return table_stable.ptr == nullptr; }
  TW_HOST_DEVICE constexpr const T* table(const Ready& ready) const {
    return table_is_produced() ? table_produced.get(ready) : table_stable.get();
  }
};

/// "embedding.bf16.f32": element types of table and out.
std::string embedding_kernel_name(DType table, DType out);

}  // namespace tileweave
