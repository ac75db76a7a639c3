// What this machine's cores can do at most, measured: the ceilings of the CPU GEMM benchmark.
#pragma once

#include <cstddef>
#include <cstdint>

namespace tileweave::bench {

/// Reads `bytes` (a multiple of 256, 64-byte aligned) once, in ascending addresses; the result
/// depends on all of them.
std::uint32_t read_all(const std::byte* from, std::size_t bytes);

/// `rounds` rounds of independent fp32 multiply-adds in registers; returns how many floating-point
/// operations that were. `result` keeps them alive.
std::int64_t multiply_add_rounds(std::int64_t rounds, float* result);

}  // namespace tileweave::bench
