#include "tileweave/kernels/attention/decode_attention_cuda.cuh"

#include "tileweave/kernels/attention/decode_attention.h"

namespace tileweave {
namespace {

template <int kDim, class W>
void add(KernelLibrary& kernels) {
  kernels.add({.name = decode_attention_kernel_name(DType::kBF16, kDTypeOf<W>, kDim),
               .num_sync_slots = DecodeAttentionOperands::kSlots,
               .cuda_function = reinterpret_cast<const void*>(decode_attention_cuda<kDim, W>)});
}

template <class W>
void add_head_dims(KernelLibrary& kernels) {
  add<64, W>(kernels);
  add<80, W>(kernels);
  add<96, W>(kernels);
  add<128, W>(kernels);
}

}  // namespace

void add_decode_attention_cuda(KernelLibrary& kernels) {
  add_head_dims<float>(kernels);
  add_head_dims<BFloat16>(kernels);
}

}  // namespace tileweave
