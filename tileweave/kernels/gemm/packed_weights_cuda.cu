#include "tileweave/kernels/gemm/packed_weights.h"

#include "tileweave/runtime/cuda/cuda_status.cuh"

namespace tileweave {
namespace {

/// One lane's 16 bytes of a fragment per thread.
__global__ void pack_kernel(const BFloat16* w, PackedLayout layout, BFloat16* to) {
  const std::int64_t pieces = layout.bytes() / 16;
  const std::int64_t step = static_cast<std::int64_t>(gridDim.x) * blockDim.x;
  const bool paired = layout.order == StripOrder::kPaired;
  for (std::int64_t i = blockIdx.x * static_cast<std::int64_t>(blockDim.x) + threadIdx.x;
       i < pieces; i += step) {
    const auto lane = static_cast<int>(i % 32);
    const std::int64_t fragment = i / 32 % layout.fragments();
    const std::int64_t strip = i / 32 / layout.fragments();
    const std::int64_t first = (paired ? strip / 2 : strip) * kStripRows;
    const std::int64_t half = paired ? strip % 2 * layout.part_rows() : 0;
    uint4 piece;
    auto* values = reinterpret_cast<BFloat16*>(&piece);
#pragma unroll
    for (int v = 0; v < 8; ++v) {
      const std::int64_t row = first + lane / 4 + v / 2 % 2 * 8;
      const std::int64_t column = fragment * kFragmentColumns + lane % 4 * 2 + v / 4 * 8 + v % 2;
      const bool inside = row < layout.part_rows() && column < layout.k;
      values[v] = inside ? w[(half + row) * layout.k + column] : BFloat16{};
    }
    reinterpret_cast<uint4*>(to)[i] = piece;
  }
}

}  // namespace

void pack_weights_on(Device& device, const BFloat16* w, const PackedLayout& layout, BFloat16* to) {
  if (device.name() != "cuda") return pack_weights(w, layout, to);
  pack_kernel<<<1056, 256>>>(w, layout, to);
  check_cuda(cudaGetLastError(), "pack weights");
  check_cuda(cudaDeviceSynchronize(), "pack weights");
}

}  // namespace tileweave
