// EventPool: CUDA events without timing, taken and given back.
//
// An event may be given back as soon as every wait for it has been enqueued: a wait keeps the state
// that it saw at its call. Events that took part in a stream capture must not be used outside it;
// each capture has a pool of its own.
#pragma once

#include <cuda_runtime.h>

#include <vector>

#include "tileweave/runtime/cuda/cuda_status.cuh"

namespace tileweave {

class EventPool {
 public:
  EventPool() = default;
  ~EventPool() {
    for (const cudaEvent_t event : all_) cudaEventDestroy(event);
  }
  EventPool(const EventPool&) = delete;
  EventPool& operator=(const EventPool&) = delete;

  cudaEvent_t take() {
    if (free_.empty()) {
      cudaEvent_t event = nullptr;
      check_cuda(cudaEventCreateWithFlags(&event, cudaEventDisableTiming), "create an event");
      all_.push_back(event);
      return event;
    }
    const cudaEvent_t event = free_.back();
    free_.pop_back();
    return event;
  }
  void give_back(cudaEvent_t event) { free_.push_back(event); }

 private:
  std::vector<cudaEvent_t> all_;
  std::vector<cudaEvent_t> free_;
};

}  // namespace tileweave
