// TensorPool: tensors of an AsyncStream, given back late and handed out again in a fixed order.
//
// The user drops a handle at any time; the memory behind it is handed out again only when kernels
// launched from then on start after all that may touch it: `max_in_flight` more have been launched
// in the same run, or a later run has begun; until `busy_until` is complete the host must keep off.
// A tensor in place (`shares_buffer_with`) holds its owner's memory. Ids, with their semaphores,
// are reused only in later runs and for an equal spec, since counts go on. Free memory is handed
// out by exact size, the earliest freed first, so that ranks which do the same make the same
// decisions (paper appendix A). One host thread; owned by its stream.
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "tileweave/plan/tensor.h"
#include "tileweave/runtime/device.h"

namespace tileweave {

/// When a tensor was last used: run, launch within the run, launch since the stream was opened.
struct UseMark {
  std::int64_t run = -1;
  std::int64_t launch = -1;
  std::int64_t number = -1;
};

class TensorPool {
 public:
  TensorPool(Device& device, TensorTable& tensors, std::int64_t max_in_flight)
      : device_(device), tensors_(tensors), max_in_flight_(max_in_flight) {}
  ~TensorPool();
  TensorPool(const TensorPool&) = delete;
  TensorPool& operator=(const TensorPool&) = delete;

  /// A tensor with memory of its own, or over `address` or in place where the spec says so. Throws
  /// Error when the tensor to share with is gone.
  TensorId acquire(const TensorSpec& spec, const UseMark& now);
  /// Whether the user holds a handle.
  bool held(TensorId id) const;
  /// The user's last handle is gone.
  void drop(TensorId id);
  void* address(TensorId id) const { return entries_.at(id).address; }
  /// A launch uses the tensor, and with it its buffer's owner.
  void used(TensorId id, const UseMark& now);
  /// Number of the last launch that may touch the tensor's memory, on behalf of this tensor or of
  /// one that had the memory before; -1: none.
  std::int64_t busy_until(TensorId id) const;
  /// Returns memory of dropped tensors that nothing in flight can touch any more.
  void collect(const UseMark& now);
  /// Bytes of tensors in use or dropped but not yet returned.
  std::size_t bytes_held() const { return bytes_held_; }

 private:
  struct Entry {
    void* address = nullptr;
    std::size_t owned_bytes = 0;  // 0: the user's memory
    UseMark last_use;
    std::int64_t busy_before = -1;  // busy_until of the memory when it was handed out
    std::int32_t num_sharers = 0;   // tensors in place over it
    bool dropped = false;
  };
  struct Piece {
    void* memory = nullptr;
    std::int64_t busy_until = -1;
  };
  static std::string key_of(const TensorSpec& spec);
  Piece take_memory(std::size_t bytes);

  Device& device_;
  TensorTable& tensors_;
  std::int64_t max_in_flight_;
  std::map<TensorId, Entry> entries_;
  std::deque<TensorId> dropped_;  // memory not yet returned
  std::map<std::size_t, std::deque<Piece>> free_memory_;
  std::map<std::string, std::deque<std::pair<TensorId, std::int64_t>>> free_ids_;  // id, last run
  std::size_t bytes_held_ = 0;
};

}  // namespace tileweave
