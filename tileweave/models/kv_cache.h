// KvCache: keys and values of all sequences in pages, one pool of rows per layer.
//
// Token j of a sequence lies at pool row page[j / page_size] * page_size + j % page_size of every
// layer. A step claims the rows of its tokens first (extend), then writes them on the device; rows
// of earlier steps are never written again, so a step may read them without a wait. Host-side
// bookkeeping; not thread-safe.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "tileweave/core/dtype.h"
#include "tileweave/runtime/device_memory.h"

namespace tileweave {

struct KvCacheShape {
  std::int64_t layers = 0;
  std::int64_t row_elements = 0;  // kv_heads * head_dim
  std::int64_t num_pages = 0;
  std::int64_t page_size = 16;  // tokens
  DType dtype = DType::kF32;
};

class KvCache {
 public:
  /// Throws Error when the device is out of memory.
  KvCache(Device& device, const KvCacheShape& shape);

  const KvCacheShape& shape() const { return shape_; }
  std::int64_t pool_rows() const { return shape_.num_pages * shape_.page_size; }
  void* keys(std::int64_t layer) const;    // (pool_rows, row_elements)
  void* values(std::int64_t layer) const;  //

  using SequenceId = std::int32_t;
  SequenceId add();
  /// Gives the sequence's pages back.
  void remove(SequenceId sequence);
  /// Claims rows for `count` more tokens. Throws Error, claiming nothing, when no page is left.
  void extend(SequenceId sequence, std::int64_t count);
  /// Forgets tokens from `length` on: their step failed, or they are to be written anew.
  void truncate(SequenceId sequence, std::int64_t length);
  std::int64_t length(SequenceId sequence) const;
  std::span<const std::int32_t> pages(SequenceId sequence) const;
  /// Pool row of a claimed token.
  std::int32_t row(SequenceId sequence, std::int64_t token) const;
  std::int64_t free_tokens() const;

 private:
  struct Sequence {
    std::vector<std::int32_t> pages = {};
    std::int64_t length = 0;
    bool live = false;
  };
  const Sequence& at(SequenceId sequence) const;

  KvCacheShape shape_;
  DeviceMemory memory_;
  std::vector<std::int32_t> free_pages_;  // the next one is the last
  std::vector<Sequence> sequences_;
};

/// Bytes of the pools.
std::size_t bytes_of(const KvCacheShape& shape);

}  // namespace tileweave
