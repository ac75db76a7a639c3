// Sample: one token id per row of logits (S, V), each row with its own parameters.
//
// Filters in the order and with the boundaries of Hugging Face's generate: repetition penalty (each
// distinct token of the history once), temperature, top-k (ties with the k-th stay), top-p (tokens
// leave from the least likely while their sum is at most 1 - p; of equal ones the lowest id first,
// which transformers leaves open), min-p; then one draw over ascending ids. Temperature 0: argmax
// of the penalised row. The random number is Philox4x32-10 of (seed, position) alone, so that
// neither batch nor schedule changes a draw. NaN counts as -inf. Kernel tiles:
//   logits  slot 0  {m, n}: (tile_m, tile_n); a work waits for the tiles of its rows one by one (on
//           a GPU before it reads the first: there tile_n = V is one wait instead of many)
//   ids     slot 1  {m}: (tile_m)
//   parameters: constants, read before the first wait (no slot)
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "tileweave/plan/node.h"

namespace tileweave {

struct SampleOptions {
  std::string name = "sample";
  std::int64_t tile_m = 1;      // rows per work
  std::int64_t tile_n = 8192;   // columns waited for at a time
  std::int64_t num_blocks = 0;  // persistent blocks; 0: one per work
  TileOrder order = TileOrder::identity();
  double cost_of_tile = 1;  // ticks of tile_m rows; a ragged last tile in proportion
  std::optional<Cost> cost = std::nullopt;  // instead of the above
  std::optional<EdgePolicy> edge = std::nullopt;
};

/// S rows, V columns. Parameters are constants that the host writes before a run: see SampleInputs.
struct SampleTensors {
  TensorId logits = kNoTensor;              // (S, V) f32
  TensorId temperature = kNoTensor;         // (S) f32; 0: argmax
  TensorId top_p = kNoTensor;               // (S) f32; 1 and above: off
  TensorId min_p = kNoTensor;               // (S) f32; 0: off
  TensorId repetition_penalty = kNoTensor;  // (S) f32; 1: off
  TensorId top_k = kNoTensor;               // (S) i32; 0: off
  TensorId seed = kNoTensor;                // (S, 2) i32: low and high word
  TensorId position = kNoTensor;            // (S) i32: position of the token that is drawn
  TensorId history = kNoTensor;         // (S, max_history) i32; ids outside 0 .. V - 1 are skipped
  TensorId history_length = kNoTensor;  // (S) i32, at most max_history
  TensorId ids = kNoTensor;             // (S) i32
};

/// The launch as a node of a plan or of an AsyncStream. Throws Error naming the operand for shapes,
/// types or options that do not fit.
NodeSpec sample(const TensorTable& tensors, const SampleOptions& options,
                const SampleTensors& operands);

}  // namespace tileweave
