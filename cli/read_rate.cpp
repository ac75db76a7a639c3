#include "cli/read_rate.h"

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <new>
#include <thread>
#include <vector>

namespace tileweave::cli {
namespace {

/// Eight sums, so that the loads and not the additions are what takes time; lines are asked for
/// ahead of the hardware's own prefetch, which alone does not reach what the memory can give.
std::uint64_t sum(const std::uint64_t* from, std::size_t count) {
  constexpr std::size_t kAhead = 1024;  // words
  std::uint64_t sums[8] = {};
  for (std::size_t i = 0; i + 8 <= count; i += 8) {
    __builtin_prefetch(from + std::min(i + kAhead, count));
    for (std::size_t j = 0; j < 8; ++j) sums[j] += from[i + j];
  }
  std::uint64_t all = 0;
  for (const std::uint64_t s : sums) all += s;
  return all;
}

}  // namespace

ReadRate::ReadRate(std::size_t bytes, std::int32_t threads)
    : words_(bytes / sizeof(std::uint64_t)),
      threads_(threads),
      memory_(static_cast<std::uint64_t*>(std::aligned_alloc(64, words_ * sizeof(std::uint64_t)))) {
  if (memory_ == nullptr) throw std::bad_alloc();
  for (std::size_t i = 0; i < words_; ++i) memory_[i] = i * 0x9e3779b97f4a7c15U;
}

ReadRate::~ReadRate() {
  std::free(memory_);
}

double ReadRate::measure() {
  const std::size_t part = words_ / static_cast<std::size_t>(threads_) / 8 * 8;
  std::vector<std::uint64_t> sums(static_cast<std::size_t>(threads_));
  const auto start = std::chrono::steady_clock::now();
  std::vector<std::thread> threads;
  for (std::size_t t = 0; t < sums.size(); ++t) {
    threads.emplace_back([this, part, t, &sums] { sums[t] = sum(memory_ + t * part, part); });
  }
  for (std::thread& thread : threads) thread.join();
  const std::chrono::duration<double> spent = std::chrono::steady_clock::now() - start;
  // The sums must be used, or the reads would not be made.
  std::uint64_t all = 0;
  for (const std::uint64_t s : sums) all ^= s;
  memory_[0] += all & 1U;
  return static_cast<double>(part * sums.size() * sizeof(std::uint64_t)) / spent.count();
}

}  // namespace tileweave::cli
