// Atomics policy of a GPU: PTX for memory, and the group of threads that synchronises together.
//
// `CtaGroup` is the whole block, `WarpGroup` one warp (a producer warp that waits on its own),
// `BarrierGroup<id, threads>` the threads that share a named barrier (consumer warps of a
// warp-specialised block; `first` is their first thread). Costs nothing but its registers.
#pragma once

#include <cstdint>

#include "tileweave/core/coord.h"
#include "tileweave/sync/ptx_launch.cuh"
#include "tileweave/sync/ptx_memory.cuh"
#include "tileweave/sync/wait.h"

namespace tileweave {

struct CtaGroup {
  __device__ static int lane() { return static_cast<int>(threadIdx.x); }
  __device__ static int num_lanes() { return static_cast<int>(blockDim.x); }
  __device__ static void barrier() { __syncthreads(); }
  __device__ static bool barrier_or(bool value) { return __syncthreads_or(value) != 0; }
  __device__ static std::uint32_t broadcast(std::uint32_t value) {
    __shared__ std::uint32_t slot;
    if (threadIdx.x == 0) slot = value;
    __syncthreads();
    const std::uint32_t got = slot;
    __syncthreads();
    return got;
  }
};

struct WarpGroup {
  __device__ static int lane() { return static_cast<int>(threadIdx.x % 32); }
  __device__ static int num_lanes() { return 32; }
  __device__ static void barrier() { __syncwarp(); }
  // Votes and shuffles order no memory, __syncwarp does: it hands a polling lane's acquire on.
  __device__ static bool barrier_or(bool value) {
    const bool any = __any_sync(0xffffffffU, value) != 0;
    __syncwarp();
    return any;
  }
  __device__ static std::uint32_t broadcast(std::uint32_t value) {
    const std::uint32_t got = __shfl_sync(0xffffffffU, value, 0);
    __syncwarp();
    return got;
  }
};

template <int kBarrier, int kThreads, int kFirst = 0>
struct BarrierGroup {
  __device__ static int lane() { return static_cast<int>(threadIdx.x) - kFirst; }
  __device__ static int num_lanes() { return kThreads; }
  __device__ static void barrier() {
    asm volatile("bar.sync %0, %1;" ::"n"(kBarrier), "n"(kThreads) : "memory");
  }
  __device__ static bool barrier_or(bool value) {
    std::uint32_t any;
    asm volatile(
        "{\n .reg .pred mine, all;\n setp.ne.u32 mine, %1, 0;\n"
        " barrier.cta.red.or.pred all, %2, %3, mine;\n selp.u32 %0, 1, 0, all;\n}"
        : "=r"(any)
        : "r"(static_cast<std::uint32_t>(value)), "n"(kBarrier), "n"(kThreads)
        : "memory");
    return any != 0;
  }
};

template <class Group = CtaGroup>
class AtomicsCudaOf {
 public:
  /// Polls without back-off, about 40 us, before a wait counts as long.
  static constexpr std::uint32_t kFastPolls = 64;
  /// A long wait looks at the abort word and the clock once in so many polls.
  static constexpr std::uint32_t kPollsPerCheck = 16;

  __device__ int lane() const { return Group::lane(); }
  __device__ int num_lanes() const { return Group::num_lanes(); }
  __device__ std::int64_t block_index() const { return blockIdx.x; }
  __device__ std::uint32_t sm_index() const { return ptx::sm_index(); }
  __device__ std::uint64_t now_ns() const { return ptx::global_timer_ns(); }

  __device__ void barrier() { Group::barrier(); }
  __device__ bool barrier_or(bool value) { return Group::barrier_or(value); }
  __device__ std::uint32_t broadcast(std::uint32_t value) { return Group::broadcast(value); }

  __device__ std::uint32_t load_acquire(const std::uint32_t* word, bool system_scope) {
    return system_scope ? ptx::load_acquire_sys(word) : ptx::load_acquire_gpu(word);
  }
  __device__ std::uint32_t load_relaxed(const std::uint32_t* word) {
    return ptx::load_relaxed_gpu(word);
  }
  __device__ void add_release(std::uint32_t* word, std::uint32_t n, bool system_scope) {
    if (system_scope) {
      ptx::add_release_sys(word, n);
    } else {
      ptx::add_release_gpu(word, n);
    }
  }
  __device__ void add_relaxed(std::uint32_t* word, std::uint32_t n) {
    ptx::add_relaxed_gpu(word, n);
  }
  __device__ std::uint32_t fetch_add_relaxed(std::uint32_t* word, std::uint32_t n) {
    return ptx::fetch_add_relaxed_gpu(word, n);
  }
  __device__ std::uint32_t fetch_add_acq_rel(std::uint32_t* word, std::uint32_t n) {
    return ptx::fetch_add_acq_rel_gpu(word, n);
  }
  __device__ bool claim(std::uint32_t* word) { return ptx::compare_and_swap_gpu(word, 0, 1) == 0; }
  __device__ void store_release_system(std::uint32_t* word, std::uint32_t value) {
    ptx::store_release_sys(word, value);
  }

  __device__ void pause(const std::uint32_t* /*word*/, const WaitSite& /*site*/) {
    __nanosleep(40);
  }
  __device__ void launch_dependents() { ptx::griddep_launch_dependents(); }
  __device__ void grid_dependency_wait() { ptx::griddep_wait(); }
  /// Call between a wait and a bulk or tensor copy that reads the waited data, in the copying
  /// thread.
  __device__ void fence_async_proxy() { ptx::fence_proxy_async(); }

  __device__ void on_begin() {}
  __device__ void on_work(std::int64_t /*work*/) {}
  __device__ void on_wait(int /*operand*/, const Coord& /*ktile*/) {}
  __device__ void on_signal(int /*operand*/, const Coord& /*ktile*/) {}
};

using AtomicsCuda = AtomicsCudaOf<CtaGroup>;
using AtomicsCudaWarp = AtomicsCudaOf<WarpGroup>;

}  // namespace tileweave
