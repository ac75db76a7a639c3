// PTX for warpgroup products (wgmma): A from registers, B from shared memory. sm_90a alone.
//
// Asynchronous: registers of D and A belong to the tensor cores from the product to the wait behind
// it. fence() comes before the first product after registers were written, commit() and wait()
// after the last; hold() keeps the compiler from moving reads of D in front of the wait.
#pragma once

#include <cstdint>

namespace tileweave::ptx {

__device__ __forceinline__ void wgmma_fence() {
  asm volatile("wgmma.fence.sync.aligned;" ::: "memory");
}
__device__ __forceinline__ void wgmma_commit() {
  asm volatile("wgmma.commit_group.sync.aligned;" ::: "memory");
}
/// Returns when all products of the warpgroup are done.
__device__ __forceinline__ void wgmma_wait() {
  asm volatile("wgmma.wait_group.sync.aligned 0;" ::: "memory");
}
template <int kCount>
__device__ __forceinline__ void wgmma_hold(float (&d)[kCount]) {
#pragma unroll
  for (int i = 0; i < kCount; ++i) asm volatile("" : "+f"(d[i])::"memory");
}

/// Descriptor of a B operand whose rows (of N) have 64 bf16 of K, 128 bytes, in the 128-byte
/// swizzle: 16-byte unit u of row r lies at unit u ^ (r % 8). `address`: of the first element in
/// shared memory, in a tile that begins at a multiple of 1024; 32 bytes more are the next 16 of K.
/// PTX ISA, "Matrix Descriptor Format": bits 0-13 address / 16; 16-29 leading offset (not used with
/// a swizzle); 32-45 distance of groups of 8 rows / 16; 62-63 swizzle mode, 1 for 128 bytes.
__device__ __forceinline__ std::uint64_t wgmma_descriptor(std::uint32_t address) {
  constexpr std::uint64_t kMode = std::uint64_t{1} << 62;
  constexpr std::uint64_t kGroupOfRows = std::uint64_t{1024 / 16} << 32;
  constexpr std::uint64_t kLeading = std::uint64_t{1} << 16;
  return kMode | kGroupOfRows | kLeading | (address & 0x3ffffU) >> 4;
}

/// D (64 x 64, f32) = A (64 x 16, bf16) B (16 x 64). Warp w of the warpgroup has rows 16 w + [0,
/// 16) of A as mma.m16n8k16 has them, and of D: d[4 j + i] is row lane / 4 + 8 (i / 2) of these,
/// column 8 j + lane % 4 * 2 + i % 2.
__device__ __forceinline__ void wgmma_m64n64k16_first(float (&d)[32], const std::uint32_t (&a)[4],
                                                      std::uint64_t b) {
  asm volatile(
      "wgmma.mma_async.sync.aligned.m64n64k16.f32.bf16.bf16 "
      "{%0, %1, %2, %3, %4, %5, %6, %7, %8, %9, %10, %11, %12, %13, %14, %15, "
      "%16, %17, %18, %19, %20, %21, %22, %23, %24, %25, %26, %27, %28, %29, %30, %31}, "
      "{%32, %33, %34, %35}, %36, 0, 1, 1, 0;"
      : "=f"(d[0]), "=f"(d[1]), "=f"(d[2]), "=f"(d[3]), "=f"(d[4]), "=f"(d[5]), "=f"(d[6]),
        "=f"(d[7]), "=f"(d[8]), "=f"(d[9]), "=f"(d[10]), "=f"(d[11]), "=f"(d[12]), "=f"(d[13]),
        "=f"(d[14]), "=f"(d[15]), "=f"(d[16]), "=f"(d[17]), "=f"(d[18]), "=f"(d[19]), "=f"(d[20]),
        "=f"(d[21]), "=f"(d[22]), "=f"(d[23]), "=f"(d[24]), "=f"(d[25]), "=f"(d[26]), "=f"(d[27]),
        "=f"(d[28]), "=f"(d[29]), "=f"(d[30]), "=f"(d[31])
      : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "l"(b));
}
/// D += A B.
__device__ __forceinline__ void wgmma_m64n64k16(float (&d)[32], const std::uint32_t (&a)[4],
                                                std::uint64_t b) {
  asm volatile(
      "wgmma.mma_async.sync.aligned.m64n64k16.f32.bf16.bf16 "
      "{%0, %1, %2, %3, %4, %5, %6, %7, %8, %9, %10, %11, %12, %13, %14, %15, "
      "%16, %17, %18, %19, %20, %21, %22, %23, %24, %25, %26, %27, %28, %29, %30, %31}, "
      "{%32, %33, %34, %35}, %36, 1, 1, 1, 0;"
      : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3]), "+f"(d[4]), "+f"(d[5]), "+f"(d[6]),
        "+f"(d[7]), "+f"(d[8]), "+f"(d[9]), "+f"(d[10]), "+f"(d[11]), "+f"(d[12]), "+f"(d[13]),
        "+f"(d[14]), "+f"(d[15]), "+f"(d[16]), "+f"(d[17]), "+f"(d[18]), "+f"(d[19]), "+f"(d[20]),
        "+f"(d[21]), "+f"(d[22]), "+f"(d[23]), "+f"(d[24]), "+f"(d[25]), "+f"(d[26]), "+f"(d[27]),
        "+f"(d[28]), "+f"(d[29]), "+f"(d[30]), "+f"(d[31])
      : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "l"(b));
}

}  // namespace tileweave::ptx
