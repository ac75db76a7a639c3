// The weight-streaming kernel of the chain benchmark: y (N) = W (N, K) · x (K), one activation
// column in bf16, so that nearly all time is reading W.
//
// W is packed in chunks of 16 rows x 512 columns, each row padded by 16 bytes against bank
// conflicts. One loader warp fills a ring of `stages` chunks in shared memory, before anything that
// x depends on; eight consumer warps wait for x and multiply. Three kernels share that code: one
// launch per product, a bare read that only streams W, and one persistent kernel for a whole chain.
// sm_90 and later. N must be a multiple of 16 x blocks, K of 512.
#pragma once

#include <cstdint>
#include <string>

#include "tileweave/plan/node.h"
#include "tileweave/runtime/kernel_library.h"

namespace tileweave::bench {

struct StreamShape {
  std::int64_t n = 0;  // = K: the output is the next product's input
  int stages = 0;      // ring depth: 4, 5 (three, two blocks per SM) or 10, 11 (one)
  int blocks = 128;
  int window = 0;  // bulk copies in flight per block; 0: as many as the ring holds
};

inline constexpr int kRowsPerTile = 16;
inline constexpr int kColumnsPerChunk = 512;
inline constexpr int kRowBytes = kColumnsPerChunk * 2 + 16;
inline constexpr int kChunkBytes = kRowsPerTile * kRowBytes;
inline constexpr int kConsumerWarps = 8;
inline constexpr int kStreamThreads = (kConsumerWarps + 1) * 32;

/// Bytes of one packed W.
constexpr std::int64_t packed_bytes(std::int64_t n, std::int64_t k) {
  return n / kRowsPerTile * (k / kColumnsPerChunk) * kChunkBytes;
}

/// One product as a node: W is constant, x and y are whole-vector data tiles.
NodeSpec weight_stream(const StreamShape& shape, const TensorTable& tensors, TensorId w, TensorId x,
                       TensorId y, const EdgePolicy& edge);
/// Streams W and writes nothing that anybody reads.
NodeSpec bare_read(const StreamShape& shape, TensorId w);
/// `length` products in one launch; `w` holds their packed matrices one after the other, `y`
/// (length, blocks, N / blocks) their outputs.
NodeSpec persistent_chain(const StreamShape& shape, int length, const TensorTable& tensors,
                          TensorId w, TensorId x, TensorId y);

void add_weight_stream(KernelLibrary& kernels);

}  // namespace tileweave::bench
