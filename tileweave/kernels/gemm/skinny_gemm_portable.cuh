// Skinny GEMM on sm_80 and later: every warp brings its own weights by cp.async, and multiplies.
//
// No warp that loads, no barriers around the ring: a lane copies exactly the bytes that it reads.
#pragma once

#include <cstdint>

#include "tileweave/kernels/gemm/skinny_gemm_consumer.cuh"

namespace tileweave {

/// The `Weights` of skinny_consume: a lane's pieces of its warp's fragments, one group of copies a
/// stage. Construction fills the ring. Lives as long as copies may be in flight: they write to the
/// block's shared memory.
class PortableWeights {
 public:
  template <class Work>
  __device__ __forceinline__ PortableWeights(const SkinnyGemmArgs& args, const Work& work)
      : stages_(args.stages), policy_(ptx::evict_first_policy()) {
    const SkinnyGemmSchedule& s = args.schedule;
    const int first = work.k_begin() / static_cast<int>(kFragmentColumns);
    count_ = (work.k_end() + 15) / 16 - first;
    skip_ = s.fragments() - count_;
    left_ = count_;
    strips_left_ = work.end_strip() - work.first_strip();
    from_ =
        reinterpret_cast<const unsigned char*>(args.w.get()) +
        (static_cast<std::int64_t>(work.first_strip()) * s.fragments() + first) * kFragmentBytes +
        own_offset();
    own_ = ptx::shared_address(skinny_shared() + args.shared.ring) + own_offset();
    TW_ROLLED_LOOP
    for (int i = 0; i < stages_; ++i) bring(i);
  }
  PortableWeights(const PortableWeights&) = delete;
  PortableWeights& operator=(const PortableWeights&) = delete;
  __device__ __forceinline__ ~PortableWeights() { ptx::copy_async_wait<0>(); }

  __device__ __forceinline__ bool wait() {
    // A group a stage, empty ones behind the last part too: the newest stages - 1 are younger than
    // what is waited for.
    switch (stages_) {
      case 1:
        ptx::copy_async_wait<0>();
        break;
      case 2:
        ptx::copy_async_wait<1>();
        break;
      case 3:
        ptx::copy_async_wait<2>();
        break;
      case 4:
        ptx::copy_async_wait<3>();
        break;
      case 5:
        ptx::copy_async_wait<4>();
        break;
      default:
        ptx::copy_async_wait<kMostStages - 1>();
        break;
    }
    __syncwarp();  // tensor cores take operands from a whole warp
    return true;
  }

  __device__ __forceinline__ std::uint32_t fragments() const { return own_ + stage_ * kStageBytes; }

  __device__ __forceinline__ void release() {
    bring(stage_);
    stage_ = stage_ + 1 < stages_ ? stage_ + 1 : 0;
  }

 private:
  /// Of this lane's piece of its warp's first fragment, in a part.
  __device__ __forceinline__ static int own_offset() {
    const int thread = static_cast<int>(threadIdx.x);
    return thread / 32 * kWarpFragments * static_cast<int>(kFragmentBytes) + thread % 32 * 16;
  }

  /// The next part that is not on its way yet, to `stage`.
  __device__ __forceinline__ void bring(int stage) {
    if (strips_left_ > 0) {
      const std::uint32_t to = own_ + stage * kStageBytes;
      const int own = left_ - static_cast<int>(threadIdx.x) / 32 * kWarpFragments;
      if (own >= kWarpFragments) {
#pragma unroll
        for (int f = 0; f < kWarpFragments; ++f) bring_fragment(to, f);
      } else {
        TW_ROLLED_LOOP
        for (int f = 0; f < own; ++f) bring_fragment(to, f);
      }
      const int fragments = min(left_, kPartFragments);
      from_ += fragments * kFragmentBytes;
      left_ -= fragments;
      if (left_ == 0) {
        left_ = count_;
        from_ += skip_ * kFragmentBytes;
        --strips_left_;
      }
    }
    ptx::copy_async_commit();
  }
  __device__ __forceinline__ void bring_fragment(std::uint32_t to, int f) {
    ptx::copy_async_16_hint(to + f * kFragmentBytes, from_ + f * kFragmentBytes, policy_);
  }

  const unsigned char* from_;  // this lane's next piece
  std::uint32_t own_;          // its place in stage 0
  int stages_;
  int stage_ = 0;    // to be read next
  int count_;        // fragments of a strip that this work takes,
  int skip_;         // those that it leaves out,
  int left_;         // and those of the strip at `from_` that are still to be brought
  int strips_left_;  // that one included
  std::uint64_t policy_;
};

template <int kTokens, bool kNorm, bool kSplit>
__global__ void __launch_bounds__(kSkinnyConsumers, kTokens >= 32 ? 1 : 2)
    skinny_gemm_portable(const __grid_constant__ SkinnyGemmArgs args,
                         const __grid_constant__ SyncContext<SkinnyGemmOperands::kSlots> context) {
  SkinnySync sync(context);
  if (!sync.begin_cta()) return;
  const SkinnyWork<kSplit> work(args.schedule, static_cast<int>(sync.remap(blockIdx.x)));
  PortableWeights weights(args, work);
  SkinnyInput<kTokens, kNorm, kSplit, false> input(args, work);
  input.prologue();
  skinny_consume<kTokens, kNorm, kSplit>(args, sync, work, input, weights);
}

}  // namespace tileweave
