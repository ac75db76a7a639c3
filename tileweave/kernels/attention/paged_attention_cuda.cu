#include "tileweave/kernels/attention/paged_attention_cuda.cuh"

#include "tileweave/kernels/attention/decode_attention.h"
#include "tileweave/kernels/attention/paged_attention.h"

namespace tileweave {
namespace {

template <int kDim>
void add(KernelLibrary& kernels) {
  kernels.add({.name = paged_attention_kernel_name(DType::kBF16, kDim),
               .num_sync_slots = PagedAttentionOperands::kSlots,
               .cuda_function = reinterpret_cast<const void*>(paged_attention_cuda<kDim>)});
}

}  // namespace

void add_attention_cuda(KernelLibrary& kernels) {
  add<64>(kernels);
  add<80>(kernels);
  add<96>(kernels);
  add<128>(kernels);
  add_decode_attention_cuda(kernels);
}

}  // namespace tileweave
