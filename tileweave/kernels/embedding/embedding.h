// Embedding, and gather of rows: out[t] = table[ids[t]].
//
// ids (T) i32; table (V, H) f32, bf16 or f16; out (T, H) f32, or bf16 like the table on a GPU. An
// id outside [0, V) (padding: -1) gives zeros and reads nothing: who takes ids from a user must
// check them first. Kernel tiles and their coordinates:
//   ids    slot 0  {m}: (tile_m); a constant is read before the first wait
//   table  slot 1  {0, n}: (V, tile_n), since any row may be asked for; a constant is never waited
//                  for; a produced table (rows of hidden states before the LM head) is
//   out    slot 2  {m, n}: (tile_m, tile_n)
// tile_n may be as large as H: row tiles only.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "tileweave/plan/node.h"
#include "tileweave/runtime/device.h"
#include "tileweave/runtime/kernel_library.h"

namespace tileweave {

struct EmbeddingOptions {
  std::string name = "embedding";
  std::int64_t tile_m = 8;      // rows of out per work
  std::int64_t tile_n = 0;      // columns per work; 0: all of them
  std::int64_t num_blocks = 0;  // persistent blocks; 0: one per work
  TileOrder order = TileOrder::identity();
  double cost_of_tile = 1;                  // ticks of a whole tile; a ragged one in proportion
  std::optional<Cost> cost = std::nullopt;  // instead of the above
  std::optional<EdgePolicy> edge = std::nullopt;
};

/// The launch as a node of a plan or of an AsyncStream. Throws Error naming the operand for shapes,
/// types or options that do not fit.
NodeSpec embedding(const TensorTable& tensors, const EmbeddingOptions& options, TensorId ids,
                   TensorId table, TensorId out);

void add_embedding_cpu(KernelLibrary& kernels);
/// In builds without CUDA: throws Error saying so.
void add_embedding_cuda(KernelLibrary& kernels);

inline void add_embedding(Device& device) {
  device.name() == "cuda" ? add_embedding_cuda(device.kernels())
                          : add_embedding_cpu(device.kernels());
}

}  // namespace tileweave
