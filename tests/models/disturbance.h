// Disturbance: while one lives, kernels of random sizes take SMs away for random times, so that
// blocks of everything else on the GPU begin and wait at moments that no plan foresees. They end by
// themselves: what runs beside them is late, and never stuck. For tests only.
#pragma once

#include <cstdint>
#include <memory>

namespace tileweave {

class Disturbance {
 public:
  /// Throws Error where the GPU refuses. Not while a graph is being recorded.
  explicit Disturbance(std::uint64_t seed);
  ~Disturbance();
  Disturbance(const Disturbance&) = delete;
  Disturbance& operator=(const Disturbance&) = delete;

  /// Kernels that have run so far.
  std::int64_t kernels() const;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace tileweave
