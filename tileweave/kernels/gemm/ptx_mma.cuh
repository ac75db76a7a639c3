// PTX for tensor cores with register operands (sm_80 and later) and the shared-memory loads they
// need.
#pragma once

#include <cstdint>

namespace tileweave::ptx {

/// Four 8x8 bf16 matrices; lane l supplies the address of one 16-byte row.
__device__ __forceinline__ void load_matrix_x4(std::uint32_t (&fragment)[4],
                                               std::uint32_t shared_address) {
  asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0, %1, %2, %3}, [%4];"
               : "=r"(fragment[0]), "=r"(fragment[1]), "=r"(fragment[2]), "=r"(fragment[3])
               : "r"(shared_address));
}

/// acc (16x8, f32) += a (16x16, bf16, row) * b (16x8, bf16, column).
__device__ __forceinline__ void mma_m16n8k16_bf16(float (&acc)[4], const std::uint32_t (&a)[4],
                                                  std::uint32_t b0, std::uint32_t b1) {
  asm volatile(
      "mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32 {%0, %1, %2, %3}, {%4, %5, %6, %7}, "
      "{%8, %9}, {%0, %1, %2, %3};"
      : "+f"(acc[0]), "+f"(acc[1]), "+f"(acc[2]), "+f"(acc[3])
      : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b0), "r"(b1));
}

}  // namespace tileweave::ptx
