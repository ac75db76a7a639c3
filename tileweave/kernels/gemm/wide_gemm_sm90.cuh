// Wide GEMM on sm_90: yᵀ = W xᵀ with wgmma. Two warpgroups multiply 64 rows of W by 128 rows of x
// each, slice after slice of K, from a ring that they fill themselves.
//
// Packed strips are A fragments as they are: 16 bytes per lane from shared memory to registers.
// Rows of x are the B operand. Weights come by bulk copies, the first before the wait for x; rows
// of x by cp.async, since nobody knows their address before that wait. There is no warp that only
// loads: eight warps may have 255 registers each, and the sums take 192.
#pragma once

#include <cstdint>

#include "tileweave/kernels/gemm/ptx_copy.cuh"
#include "tileweave/kernels/gemm/ptx_wgmma.cuh"
#include "tileweave/kernels/gemm/stored_numbers.cuh"
#include "tileweave/kernels/gemm/wide_gemm_args.h"
#include "tileweave/sync/atomics_cuda.cuh"
#include "tileweave/sync/mbarrier.cuh"
#include "tileweave/sync/ptx_memory.cuh"
#include "tileweave/sync/sync_cta.h"

namespace tileweave {

using WideSync = SyncCta<AtomicsCuda, WideGemmOperands::kSlots>;

/// The ring. Of a stage, `weights` completes when its bytes have landed, `rows` when every thread's
/// have, `empty` when every warp has read both.
struct WideRing {
  static constexpr int kStages = WideShared::kStages;
  unsigned char* chunks;
  std::uint64_t *weights, *rows, *empty;

  __device__ __forceinline__ WideRing() {
    extern __shared__ unsigned char wide_memory[];
    constexpr std::uint32_t kMask = WideShared::kAlignment - 1;
    chunks = wide_memory + ((kMask + 1 - (ptx::shared_address(wide_memory) & kMask)) & kMask);
    weights = reinterpret_cast<std::uint64_t*>(chunks + WideShared::kBarriers);
    rows = weights + kStages;
    empty = rows + kStages;
  }
  __device__ __forceinline__ void init() const {
    TW_ROLLED_LOOP
    for (int s = 0; s < kStages; ++s) {
      ptx::mbarrier_init(&weights[s], 1);
      ptx::mbarrier_init(&rows[s], kWideThreads);
      ptx::mbarrier_init(&empty[s], kWideThreads / 32);
    }
    ptx::mbarrier_init_fence();
  }
};

/// A stage of the ring and how often it has been gone round.
struct WidePlace {
  int stage = 0;
  unsigned parity = 0;
  __device__ __forceinline__ void next() {
    if (++stage < WideShared::kStages) return;
    stage = 0;
    parity ^= 1U;
  }
};

/// Brings slices into the ring: the first eight threads a strip of weights each, thread t the
/// 16-byte unit t % 8 of rows t / 8 + 32 j of x, in both tiles.
class WideLoads {
 public:
  __device__ __forceinline__ WideLoads(const WideGemmArgs& args, const WideRing& ring, int work)
      : args_(args), s_(args.schedule), ring_(ring), thread_(static_cast<int>(threadIdx.x)) {
    first_token_ = s_.tile_of(work) * kWideTileTokens;
    first_slice_ = s_.first_part(work) * kSlicesPerPart;
    count_ = min(s_.end_part(work) * kSlicesPerPart, s_.slices()) - first_slice_;
    // The last group may lack strips: the last strip stands in for them, nobody stores it.
    strip_ = min(s_.group_of(work) * kWideTileStrips + min(thread_, kWideTileStrips - 1),
                 s_.num_strips - 1);
  }

  /// Slices of the work; below they are counted from its first one.
  __device__ __forceinline__ int count() const { return count_; }

  /// Called by whole warps, for ascending slices.
  __device__ __forceinline__ void bring_weights(int slice, int stage) {
    issued_ = slice + 1;
    const int fragments = fragments_of(slice);
    const int bytes = fragments * static_cast<int>(kFragmentBytes);
    if (thread_ == 0) {
      ptx::mbarrier_arrive_expect(&ring_.weights[stage],
                                  static_cast<std::uint32_t>(bytes * kWideTileStrips));
    }
    if (thread_ < kWideTileStrips) {
      const auto* const from = reinterpret_cast<const unsigned char*>(args_.w.get()) +
                               (static_cast<std::int64_t>(strip_) * s_.fragments() +
                                (first_slice_ + slice) * kSliceFragments) *
                                   kFragmentBytes;
      ptx::bulk_load(stage_at(stage) + thread_ * WideStage::kStripBytes, from,
                     static_cast<std::uint32_t>(bytes), &ring_.weights[stage]);
    }
    if (fragments == kSliceFragments) return;
    // Behind the end of K: zeros, so that whoever multiplies need not know where it is.
    const int missing = WideStage::kStripBytes - bytes;
    TW_ROLLED_LOOP
    for (int at = thread_ * 16; at < missing * kWideTileStrips; at += kWideThreads * 16) {
      ptx::store_shared_16(ptx::shared_address(stage_at(stage)) +
                               at / missing * WideStage::kStripBytes + bytes + at % missing,
                           make_uint4(0, 0, 0, 0));
    }
  }

  /// The slice's columns of the work's rows of x, zeros beyond x; then arrives.
  __device__ __forceinline__ void bring_rows(const BFloat16* x, int slice, int stage) const {
    constexpr int kRowsPerStep = kWideThreads / 8;
    const int first_row = thread_ / 8;
    const int unit = thread_ % 8;
    const int rows = s_.m - first_token_ - first_row;
    const int column = (first_slice_ + slice) * WideStage::kColumns + unit * 8;
    const BFloat16* const from =
        x + static_cast<std::int64_t>(first_token_ + first_row) * s_.k + column;
    const std::uint32_t to = ptx::shared_address(stage_at(stage)) + WideStage::kRows +
                             first_row * WideStage::kRowBytes + (unit ^ first_row % 8) * 16;
    std::uint64_t* const barrier = &ring_.rows[stage];
    if (s_.k % 8 == 0) {
#pragma unroll
      for (int tile = 0; tile < WideStage::kTiles; ++tile) {
        const bool inside = column + tile * WideStage::kTileColumns < s_.k;
#pragma unroll
        for (int row = 0; row < kWideTileTokens; row += kRowsPerStep) {
          const bool exists = inside && row < rows;
          const BFloat16* const source =
              from + static_cast<std::int64_t>(row) * s_.k + tile * WideStage::kTileColumns;
          ptx::copy_async_16_or_zeros(
              to + tile * WideStage::kTileBytes + row * WideStage::kRowBytes, exists ? source : x,
              exists);
        }
      }
      if (fragments_of(slice) == kSliceFragments) {
        ptx::copy_async_arrive(barrier);
        return;
      }
      ptx::copy_async_commit();
      ptx::copy_async_wait<0>();
    } else {
      TW_ROLLED_LOOP
      for (int i = 0; i < WideStage::kTiles * kWideTileTokens / kRowsPerStep; ++i) {
        const int tile = i % WideStage::kTiles;
        const int row = i / WideStage::kTiles * kRowsPerStep;
        const int offset = tile * WideStage::kTileColumns;
        const BFloat16* const source = from + static_cast<std::int64_t>(row) * s_.k + offset;
        const int count = row < rows ? s_.k - column - offset : 0;
        ptx::store_shared_16(to + tile * WideStage::kTileBytes + row * WideStage::kRowBytes,
                             elements(source, count));
      }
    }
    ptx::mbarrier_arrive(barrier);  // releases this thread's stores, zeros of weights included
  }

  /// Returns when no copy of this thread is in flight: copies write to the block's shared memory.
  /// They depend on nothing and always land: no deadline.
  __device__ __forceinline__ void drain() const {
    ptx::copy_async_commit();
    ptx::copy_async_wait<0>();
    if (thread_ >= 32) return;
    TW_ROLLED_LOOP
    for (int i = max(0, issued_ - WideRing::kStages); i < issued_; ++i) {
      const auto parity = static_cast<std::uint32_t>(i / WideRing::kStages % 2);
      while (!ptx::mbarrier_try_wait(&ring_.weights[i % WideRing::kStages], parity)) {
      }
    }
  }

 private:
  __device__ __forceinline__ unsigned char* stage_at(int stage) const {
    return ring_.chunks + stage * WideStage::kBytes;
  }
  /// Fragments of W that a slice has: fewer at the end of K.
  __device__ __forceinline__ int fragments_of(int slice) const {
    return min(kSliceFragments, s_.fragments() - (first_slice_ + slice) * kSliceFragments);
  }
  /// Eight elements at any address, zeros from `count` on.
  __device__ __forceinline__ static uint4 elements(const BFloat16* from, int count) {
    std::uint32_t words[4] = {};
    TW_ROLLED_LOOP
    for (int e = 7; e >= 0; --e) {
#pragma unroll
      for (int w = 3; w > 0; --w) words[w] = words[w] << 16 | words[w - 1] >> 16;
      words[0] = words[0] << 16 | (e < count ? from[e].bits : 0U);
    }
    return make_uint4(words[0], words[1], words[2], words[3]);
  }

  const WideGemmArgs& args_;
  const WideGemmSchedule& s_;
  const WideRing& ring_;
  int thread_;
  int first_token_;
  int strip_;
  int first_slice_;
  int count_;
  int issued_ = 0;  // slices whose weights are on their way
};

/// Products and sums of one warpgroup: 64 rows of W, two halves of 64 rows of x.
class WideSums {
 public:
  static constexpr int kHalves = 2;
  static constexpr int kCount = 32;  // of a half, per thread

  __device__ __forceinline__ explicit WideSums(const WideRing& ring) : ring_(ring) {
    const int thread = static_cast<int>(threadIdx.x);
    const std::uint32_t chunks = ptx::shared_address(ring.chunks);
    weights_ = chunks + thread / 32 * WideStage::kStripBytes + thread % 32 * 16;
    rows_ = chunks + WideStage::kRows;
  }

  /// Sums over the work's slices; the first stages are on their way. Where `parts` is not null each
  /// part's go there, one after the other, instead of into the total. False for a warp whose wait
  /// failed: it has taken part in every product, since these need all warps of the group, but its
  /// sums are worth nothing.
  __device__ __forceinline__ bool run(WideLoads& loads, const BFloat16* x, float* parts,
                                      const SyncHeader& header) {
    const int slices = loads.count();
    bool alive = true;
    WidePlace at;
    WidePlace before;
    TW_ROLLED_LOOP
    for (int first = 0; first < slices; first += kSlicesPerPart) {
      float part[kHalves][kCount] = {};
      TW_ROLLED_LOOP
      for (int slice = first; slice < min(slices, first + kSlicesPerPart); ++slice) {
        if (alive) alive = wait_full(at, header);
        std::uint32_t a[kSliceFragments][4];
#pragma unroll
        for (int f = 0; f < kSliceFragments; ++f) {
          load_fragment(
              a[f], weights_ + at.stage * WideStage::kBytes + f * static_cast<int>(kFragmentBytes));
        }
        float acc[2][kCount];
        multiply(acc, a, at.stage, 0);
        end_products(acc, part[0]);
        // The stage of the slice before is free when the other warpgroup has read it too. It may
        // be half a slice behind: hence not earlier, and not later, since copies take their time.
        const int next = slice + WideRing::kStages - 1;
        const bool brings = slice > 0 && next < slices;
        if (alive && brings) {
          alive = agreed(wait_mbarrier(&ring_.empty[before.stage], before.parity,
                                       static_cast<std::uint32_t>(before.stage), header));
        }
        multiply(acc, a, at.stage, 1);
        if (alive && brings) {
          loads.bring_weights(next, before.stage);
          loads.bring_rows(x, next, before.stage);
        }
        end_products(acc, part[1]);
        __syncwarp();
        if (alive && threadIdx.x % 32 == 0) ptx::mbarrier_arrive(&ring_.empty[at.stage]);
        before = at;
        at.next();
      }
      if (parts != nullptr) {
        keep(part, parts);
        parts += kWideSums;
        continue;
      }
#pragma unroll
      for (int half = 0; half < kHalves; ++half) {
#pragma unroll
        for (int i = 0; i < kCount; ++i) total_[half][i] += part[half][i];
      }
    }
    return alive;
  }

  /// The total of parts that works have kept, in ascending order.
  __device__ __forceinline__ void add_up(const float* parts, int count) {
    TW_ROLLED_LOOP
    for (int p = 0; p < count; ++p, parts += kWideSums) {
#pragma unroll
      for (int half = 0; half < kHalves; ++half) {
#pragma unroll
        for (int i = 0; i < kCount; ++i) total_[half][i] += parts[kept(half, i)];
      }
    }
  }

  /// Puts the sums to (128 rows of x, 64 rows of W) f32 at `to`, as `place` has it.
  __device__ __forceinline__ void store(float* to) const {
    const int thread = static_cast<int>(threadIdx.x) % kWideGroupThreads;
    const int row = thread / 32 * 16 + thread % 32 / 4;
    const int token = thread % 4 * 2;
#pragma unroll
    for (int half = 0; half < kHalves; ++half) {
#pragma unroll
      for (int i = 0; i < kCount; ++i) {
        to[place(half * 64 + i / 4 * 8 + token + i % 2, row + i / 2 % 2 * 8)] = total_[half][i];
      }
    }
  }
  /// Rows change places by eights, so that neither side meets bank conflicts.
  __device__ __forceinline__ static int place(int token, int row) {
    return token * 64 + (row ^ token / 2 % 4 * 8);
  }

 private:
  /// Where a thread's sums lie among those of a part.
  __device__ __forceinline__ static int kept(int half, int i) {
    return (half * kCount + i) * kWideThreads + static_cast<int>(threadIdx.x);
  }
  __device__ __forceinline__ static void keep(const float (&part)[kHalves][kCount], float* to) {
#pragma unroll
    for (int half = 0; half < kHalves; ++half) {
#pragma unroll
      for (int i = 0; i < kCount; ++i) to[kept(half, i)] = part[half][i];
    }
  }

  /// A warp goes on or gives up as one.
  __device__ __forceinline__ static bool agreed(bool got) {
    return __all_sync(0xffffffffU, got) != 0;
  }

  __device__ __forceinline__ bool wait_full(const WidePlace& at, const SyncHeader& header) const {
    const auto stage = static_cast<std::uint32_t>(at.stage);
    bool there = wait_mbarrier(&ring_.weights[stage], at.parity, stage, header);
    there = there && wait_mbarrier(&ring_.rows[stage], at.parity, stage, header);
    ptx::fence_proxy_async_shared();  // rows of x came through the generic proxy
    return agreed(there);
  }

  /// The products of a slice; asynchronous.
  __device__ __forceinline__ void multiply(float (&acc)[2][kCount],
                                           const std::uint32_t (&a)[kSliceFragments][4], int stage,
                                           int half) const {
    const std::uint32_t rows = rows_ + stage * WideStage::kBytes + half * 64 * WideStage::kRowBytes;
    ptx::wgmma_fence();
#pragma unroll
    for (int f = 0; f < kSliceFragments; ++f) {
      const std::uint64_t b = ptx::wgmma_descriptor(
          rows + f / WideStage::kTileFragments * WideStage::kTileBytes +
          f % WideStage::kTileFragments * static_cast<int>(kFragmentColumns) * 2);
      if (f < 2) {
        ptx::wgmma_m64n64k16_first(acc[f % 2], a[f], b);
      } else {
        ptx::wgmma_m64n64k16(acc[f % 2], a[f], b);
      }
    }
    ptx::wgmma_commit();
  }

  __device__ __forceinline__ static void end_products(float (&acc)[2][kCount],
                                                      float (&part)[kCount]) {
    ptx::wgmma_wait();
    ptx::wgmma_hold(acc[0]);
    ptx::wgmma_hold(acc[1]);
#pragma unroll
    for (int i = 0; i < kCount; ++i) part[i] += acc[0][i] + acc[1][i];
  }

  __device__ __forceinline__ static void load_fragment(std::uint32_t (&a)[4],
                                                       std::uint32_t address) {
    asm volatile("ld.shared.v4.u32 {%0, %1, %2, %3}, [%4];"
                 : "=r"(a[0]), "=r"(a[1]), "=r"(a[2]), "=r"(a[3])
                 : "r"(address)
                 : "memory");
  }

  const WideRing& ring_;
  std::uint32_t weights_, rows_;
  float total_[kHalves][kCount] = {};
};

/// From a warpgroup's sums in shared memory to y: bias, gate, residual. A thread takes four columns
/// of y at a time.
class WideResults {
 public:
  __device__ __forceinline__ WideResults(const WideGemmArgs& args, int work, const float* residual)
      : args_(args), s_(args.schedule), residual_(residual) {
    first_token_ = s_.tile_of(work) * kWideTileTokens;
    const int group = static_cast<int>(threadIdx.x) / kWideGroupThreads;
    width_ = s_.group_columns() / 2;
    first_column_ = (s_.group_of(work) * 2 + group) * width_;
  }

  __device__ __forceinline__ void run(const float* sums) const {
    const int thread = static_cast<int>(threadIdx.x) % kWideGroupThreads;
    const int quads = width_ / 4;
    const int quad = thread % quads;
    const int column = first_column_ + quad * 4;
    const int columns = min(4, s_.columns() - column);
    const int tokens = min(kWideTileTokens, s_.m - first_token_);
    const int row = s_.gated ? quad / 4 * 32 + quad % 4 * 4 : quad * 4;
    if (columns <= 0) return;
    float bias[2][4] = {};
    for (int e = 0; e < columns && args_.bias.get() != nullptr; ++e) {
      bias[0][e] = load_number(args_.bias.get(), args_.bias_type, column + e);
      if (s_.gated) {
        bias[1][e] = load_number(args_.bias.get(), args_.bias_type, s_.columns() + column + e);
      }
    }
    const bool vectors = s_.columns() % 4 == 0;
#pragma unroll 4
    for (int token = thread / quads; token < tokens; token += kWideGroupThreads / quads) {
      const std::int64_t at =
          static_cast<std::int64_t>(first_token_ + token) * s_.columns() + column;
      float value[4];
      sums_of(sums, token, row, bias[0], value);
      if (s_.gated) {
        float up[4];
        sums_of(sums, token, row + static_cast<int>(kStripRows), bias[1], up);
#pragma unroll
        for (int e = 0; e < 4; ++e) value[e] = silu(value[e]) * up[e];
      }
      vectors ? put_four(at, value) : put_some(at, value, columns);
    }
  }

 private:
  __device__ __forceinline__ static void sums_of(const float* sums, int token, int row,
                                                 const float (&bias)[4], float (&value)[4]) {
    const float4 four = *reinterpret_cast<const float4*>(sums + WideSums::place(token, row));
    value[0] = four.x + bias[0];
    value[1] = four.y + bias[1];
    value[2] = four.z + bias[2];
    value[3] = four.w + bias[3];
  }

  __device__ __forceinline__ void put_four(std::int64_t at, float (&value)[4]) const {
    if (residual_ != nullptr) {
      const float4 r = *reinterpret_cast<const float4*>(residual_ + at);
      value[0] += r.x;
      value[1] += r.y;
      value[2] += r.z;
      value[3] += r.w;
    }
    if (args_.y_type == DType::kF32) {
      *reinterpret_cast<float4*>(static_cast<float*>(args_.y.get()) + at) =
          make_float4(value[0], value[1], value[2], value[3]);
    } else {
      *reinterpret_cast<uint2*>(static_cast<BFloat16*>(args_.y.get()) + at) =
          make_uint2(pack_bf16(value[0], value[1]), pack_bf16(value[2], value[3]));
    }
  }

  __device__ __forceinline__ void put_some(std::int64_t at, const float (&value)[4],
                                           int columns) const {
#pragma unroll
    for (int e = 0; e < 4; ++e) {
      if (e >= columns) break;
      const float sum = residual_ == nullptr ? value[e] : value[e] + residual_[at + e];
      if (args_.y_type == DType::kF32) {
        static_cast<float*>(args_.y.get())[at + e] = sum;
      } else {
        static_cast<BFloat16*>(args_.y.get())[at + e] = to_bfloat16(sum);
      }
    }
  }

  const WideGemmArgs& args_;
  const WideGemmSchedule& s_;
  const float* residual_;
  int first_token_;
  int width_;  // columns of y of a warpgroup
  int first_column_;
};

__global__ void __launch_bounds__(kWideThreads, 1)
    wide_gemm_sm90(const __grid_constant__ WideGemmArgs args,
                   const __grid_constant__ SyncContext<WideGemmOperands::kSlots> context) {
  using Operands = WideGemmOperands;
  const WideRing ring;
  if (threadIdx.x == 0) ring.init();
  __syncthreads();
  WideSync sync(context);
  if (!sync.begin_cta()) return;
  const WideGemmSchedule& s = args.schedule;
  const int work = static_cast<int>(sync.remap(blockIdx.x));
  const int tile = s.tile_of(work);
  const int group = s.group_of(work);
  WideLoads loads(args, ring, work);
  const int ahead = min(loads.count(), WideRing::kStages);
  TW_ROLLED_LOOP
  for (int i = 0; i < ahead; ++i) loads.bring_weights(i, i);
  const Ready ready = sync.wait_input(Operands::kSlotX, {tile, 0});
  if (!ready) return loads.drain();
  const float* residual = nullptr;
  if (args.residual.ptr != nullptr) {
    const Ready too = sync.wait_input(Operands::kSlotResidual, {tile, group});
    if (!too) return loads.drain();
    residual = args.residual.get(too);
  }
  const BFloat16* const x = args.x.get(ready);
  TW_ROLLED_LOOP
  for (int i = 0; i < ahead; ++i) loads.bring_rows(x, i, i);
  WideSums sums(ring);
  const int result = s.result_of(work);
  float* const parts =
      s.split_k == 1 ? nullptr
                     : args.partials + static_cast<std::int64_t>(result) * s.parts() * kWideSums;
  const bool alive =
      sums.run(loads, x,
               parts == nullptr ? nullptr
                                : parts + static_cast<std::int64_t>(s.first_part(work)) * kWideSums,
               context.header);
  // Behind this barrier all have read the ring, and all copies have landed: room for the sums.
  if (sync.atomics().barrier_or(!alive)) return loads.drain();
  if (parts != nullptr) {
    if (!sync.arrive_last(result, static_cast<std::uint32_t>(s.split_k))) return;
    sums.add_up(parts, s.parts());
  }
  constexpr int kSums = kWideTileTokens * 64;
  float* const own =
      reinterpret_cast<float*>(ring.chunks) + threadIdx.x / kWideGroupThreads * kSums;
  sums.store(own);
  __syncthreads();
  WideResults(args, work, residual).run(own);
  sync.signal_output(Operands::kSlotY, {tile, group});
}

}  // namespace tileweave
