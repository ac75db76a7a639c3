// PTX of the attention kernels: 16-byte asynchronous copies into shared memory, matrix loads,
// tensor cores with register operands, pairs of bf16. sm_80 and later.
#pragma once

#include <cstdint>

namespace tileweave::ptx {

__device__ __forceinline__ std::uint32_t shared_address(const void* pointer) {
  return static_cast<std::uint32_t>(__cvta_generic_to_shared(pointer));
}

/// Copies 16 bytes past L1, so that what an earlier run wrote is never read stale.
__device__ __forceinline__ void copy_async_16(std::uint32_t to_shared, const void* from) {
  asm volatile("cp.async.cg.shared.global.L2::128B [%0], [%1], 16;" ::"r"(to_shared), "l"(from)
               : "memory");
}
/// The same, or 16 zero bytes and nothing is read.
__device__ __forceinline__ void copy_async_16_if(bool copies, std::uint32_t to_shared,
                                                 const void* from) {
  asm volatile("cp.async.cg.shared.global.L2::128B [%0], [%1], 16, %2;" ::"r"(to_shared), "l"(from),
               "r"(copies ? 16 : 0)
               : "memory");
}
__device__ __forceinline__ void commit_copies() {
  asm volatile("cp.async.commit_group;" ::: "memory");
}
/// Starts moving the line that holds `address` into L2. Only for data no one writes in this run.
__device__ __forceinline__ void prefetch_to_l2(const void* address) {
  asm volatile("prefetch.global.L2 [%0];" ::"l"(address));
}
/// All but the last `kPending` groups of this thread's copies have arrived.
template <int kPending>
__device__ __forceinline__ void wait_copies() {
  asm volatile("cp.async.wait_group %0;" ::"n"(kPending) : "memory");
}
__device__ __forceinline__ void wait_all_copies() {
  asm volatile("cp.async.wait_all;" ::: "memory");
}

/// Ends this thread here, without a way to the end of the code.
__device__ __forceinline__ void end_thread() {
  asm volatile("exit;" ::: "memory");
}

/// From here on the compiler knows nothing of the value: it is computed before, and kept.
__device__ __forceinline__ void keep(std::int64_t& value) {
  asm volatile("" : "+l"(value));
}

/// Four 8x8 bf16 matrices; lane l supplies the address of one 16-byte row.
__device__ __forceinline__ void load_matrices(std::uint32_t (&fragment)[4],
                                              std::uint32_t shared_address) {
  asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0, %1, %2, %3}, [%4];"
               : "=r"(fragment[0]), "=r"(fragment[1]), "=r"(fragment[2]), "=r"(fragment[3])
               : "r"(shared_address)
               : "memory");
}
/// The same, each matrix transposed.
__device__ __forceinline__ void load_matrices_transposed(std::uint32_t (&fragment)[4],
                                                         std::uint32_t shared_address) {
  asm volatile("ldmatrix.sync.aligned.m8n8.x4.trans.shared.b16 {%0, %1, %2, %3}, [%4];"
               : "=r"(fragment[0]), "=r"(fragment[1]), "=r"(fragment[2]), "=r"(fragment[3])
               : "r"(shared_address)
               : "memory");
}

/// acc (16x8, f32) += a (16x16) b (16x8).
__device__ __forceinline__ void mma(float (&acc)[4], const std::uint32_t (&a)[4], std::uint32_t b0,
                                    std::uint32_t b1) {
  asm volatile(
      "mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32 {%0, %1, %2, %3}, {%4, %5, %6, %7}, "
      "{%8, %9}, {%0, %1, %2, %3};"
      : "+f"(acc[0]), "+f"(acc[1]), "+f"(acc[2]), "+f"(acc[3])
      : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b0), "r"(b1));
}
/// acc (16x8, f32) += a (16x16) b (16x8) where rows 8 to 15 of a are zero: `a_low` holds columns
/// 0 to 7 of its rows 0 to 7, `a_high` columns 8 to 15. acc[2] and acc[3] stay zero.
__device__ __forceinline__ void mma_eight_rows(float (&acc)[4], std::uint32_t a_low,
                                               std::uint32_t a_high, std::uint32_t b0,
                                               std::uint32_t b1) {
  asm volatile(
      "mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32 {%0, %1, %2, %3}, {%4, %5, %6, %5}, "
      "{%7, %8}, {%0, %1, %2, %3};"
      : "+f"(acc[0]), "+f"(acc[1]), "+f"(acc[2]), "+f"(acc[3])
      : "r"(a_low), "r"(0U), "r"(a_high), "r"(b0), "r"(b1));
}

/// 2^x, to 2 ulp; 0 for -infinity and where it would be subnormal.
__device__ __forceinline__ float exp2_approx(float x) {
  float y;
  asm("ex2.approx.ftz.f32 %0, %1;" : "=f"(y) : "f"(x));
  return y;
}

/// Two numbers rounded to bf16 (nearest, ties to even), `low` in the lower half.
__device__ __forceinline__ std::uint32_t pack_bf16(float low, float high) {
  std::uint32_t packed;
  asm("cvt.rn.bf16x2.f32 %0, %1, %2;" : "=r"(packed) : "f"(high), "f"(low));
  return packed;
}
__device__ __forceinline__ float low_bf16(std::uint32_t packed) {
  return __uint_as_float(packed << 16);
}
__device__ __forceinline__ float high_bf16(std::uint32_t packed) {
  return __uint_as_float(packed & 0xffff0000U);
}

}  // namespace tileweave::ptx
