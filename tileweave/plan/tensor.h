// Tensors of a plan: shape, kind, data tiling. Ids are indices into a TensorTable.
//
// `constant` is never written by the plan; `state` outlives runs and a run writes only the boxes
// that operands declare; each element of a `value` is written once per run. A tensor with `tiles`
// carries one 32-bit semaphore per data tile: that one field is all it takes to tile it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "tileweave/core/coord.h"
#include "tileweave/core/dtype.h"
#include "tileweave/tile/tile_set.h"

namespace tileweave {

using TensorId = std::int32_t;
inline constexpr TensorId kNoTensor = -1;

enum class TensorKind : std::uint8_t { kConstant, kState, kValue };

constexpr const char* name_of(TensorKind kind) {
  switch (kind) {
    case TensorKind::kConstant:
      return "constant";
    case TensorKind::kState:
      return "state";
    case TensorKind::kValue:
      return "value";
  }
  return "?";
}

struct TensorSpec {
  std::string name;
  Shape shape;  // row-major, contiguous
  DType dtype = DType::kF32;
  TensorKind kind = TensorKind::kValue;
  Coord tiles = {};                         // data tile sizes; no axes: no semaphores
  TileSet tile_table = {};                  // instead of `tiles`: a data tiling by a table
  std::int32_t word_stride = 0;             // words between semaphores; 0: the device's default
  TensorId shares_buffer_with = kNoTensor;  // in place: same buffer and shape as an earlier value
  bool output = false;                      // read by the host after the run: its buffer is kept
  /// Device memory that the user owns; null: a place in the arena. Tensors over the same memory are
  /// different tensors to verify(), which looks at tiles, not at addresses: a pool that is `state`
  /// and the rows of it that this run writes as a `value` may lie in one place, and whoever gives
  /// both answers for it that their accesses do not meet.
  void* address = nullptr;
  /// Semaphores in device memory that the user owns: one word per data tile, `word_stride` (0: 1)
  /// words apart. They go on counting from where they stand; recover() zeroes them. Null: the
  /// runtime's own.
  std::uint32_t* semaphores = nullptr;
};

struct Tensor {
  TensorSpec spec;
  TileSet tiles;  // empty: the tensor carries no semaphores

  bool tiled() const { return !tiles.empty(); }
  std::size_t bytes() const {
    return static_cast<std::size_t>(spec.shape.volume()) * size_of(spec.dtype);
  }
};

class TensorTable {
 public:
  /// Throws Error naming the tensor for an invalid shape, tiling or sharing.
  TensorId add(const TensorSpec& spec);
  const Tensor& operator[](TensorId id) const;
  /// (Re-)tiles a tensor before any node uses it: the one line that makes it synchronise.
  void tile(TensorId id, const Coord& tiles);
  std::int32_t size() const { return static_cast<std::int32_t>(tensors_.size()); }
  /// The earliest tensor of a chain of `shares_buffer_with`: owner of the buffer.
  TensorId buffer_owner(TensorId id) const;

 private:
  std::vector<std::shared_ptr<const Tensor>> tensors_;  // so that copies are cheap
};

}  // namespace tileweave
