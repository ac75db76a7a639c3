#include "bench/kernels/gemm/cpu_ceilings.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "bench/kernels/gemm/cpu_ceilings-inl.h"
#include "hwy/foreach_target.h"
#include "hwy/highway.h"

// After foreach_target.h, which includes it for every target but the last.
#include "bench/kernels/gemm/cpu_ceilings-inl.h"

namespace tileweave::bench {
namespace {

HWY_EXPORT(read_once);
HWY_EXPORT(multiply_add_all);

}  // namespace

std::uint32_t read_all(const std::byte* from, std::size_t bytes) {
  return HWY_DYNAMIC_DISPATCH(read_once)(from, bytes);
}

std::int64_t multiply_add_rounds(std::int64_t rounds, float* result) {
  return HWY_DYNAMIC_DISPATCH(multiply_add_all)(rounds, result);
}

}  // namespace tileweave::bench
