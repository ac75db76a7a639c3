// SyncMemory: small pieces of device memory for semaphores, counters and tables.
//
// Pieces come from chunks and live as long as the SyncMemory. Counted words start at `initial`
// together with their bases, so that a fresh tile has no arrivals; `reset` sets all of them and all
// plain words back to zero (device idle). Throws Error when the device is out of memory.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <span>
#include <string>
#include <vector>

#include "tileweave/runtime/device.h"

namespace tileweave {

/// Words that only grow, and where the current run started. Where words are apart, each has its
/// base beside it, so that a waiter fetches both with one cache line; where they are packed, bases
/// are packed too: 1 (all words share it) or `count`.
struct CountedWords {
  std::uint32_t* words = nullptr;
  std::uint32_t* base = nullptr;
  std::int64_t count = 0;
  std::int64_t bases = 0;
  std::int32_t word_stride = 1;
  std::int32_t base_stride = 0;  // words between bases; 0: there is one

  /// Words from the first count to the last. What a user's memory holds behind them, and between
  /// them, is not ours.
  std::size_t num_words() const { return static_cast<std::size_t>((count - 1) * word_stride + 1); }
  std::size_t num_base_words() const {
    return static_cast<std::size_t>((bases - 1) * base_stride + 1);
  }
};

class SyncMemory {
 public:
  explicit SyncMemory(Device& device) : device_(device) {}
  ~SyncMemory();
  SyncMemory(const SyncMemory&) = delete;
  SyncMemory& operator=(const SyncMemory&) = delete;

  CountedWords counted(std::int64_t count, std::int64_t bases, std::int32_t word_stride,
                       std::uint32_t initial);
  /// Counted words in memory that the user owns, going on from the counts that stand there.
  CountedWords adopt(std::uint32_t* words, std::int64_t count, std::int32_t word_stride);
  /// Zeroed words, zeroed again by reset().
  std::uint32_t* words(std::int64_t count);
  /// A read-only copy of host values; equal values share one copy, so that asking again and again
  /// (a stream, run after run) takes no more memory. reset() leaves it alone.
  template <class T>
  const T* table(const std::vector<T>& values) {
    return static_cast<const T*>(table_bytes(std::as_bytes(std::span(values))));
  }
  void reset();

 private:
  struct Chunk {
    std::byte* memory;
    std::size_t size;
    std::size_t used;
  };
  struct Region {
    std::uint32_t* words;
    std::size_t bytes;
  };
  std::byte* take(std::size_t bytes);
  const void* table_bytes(std::span<const std::byte> bytes);
  std::uint32_t* filled(const std::vector<std::uint32_t>& values);

  Device& device_;
  std::vector<Chunk> chunks_;
  std::vector<Region> zeroed_by_reset_;
  std::map<std::string, const void*> tables_;  // by content
};

}  // namespace tileweave
