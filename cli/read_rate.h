// How fast this machine's threads read memory: the ceiling of decoding on a CPU.
#pragma once

#include <cstddef>
#include <cstdint>

namespace tileweave::cli {

/// Bytes per second of one pass of `threads` over `bytes` of memory in all, each its own part, in
/// order, after one pass to warm up.
class ReadRate {
 public:
  ReadRate(std::size_t bytes, std::int32_t threads);
  ~ReadRate();
  ReadRate(const ReadRate&) = delete;
  ReadRate& operator=(const ReadRate&) = delete;

  double measure();

 private:
  std::size_t words_;
  std::int32_t threads_;
  std::uint64_t* memory_;
};

}  // namespace tileweave::cli
