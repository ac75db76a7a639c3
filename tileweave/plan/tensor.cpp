#include "tileweave/plan/tensor.h"

#include "tileweave/core/error.h"
#include "tileweave/core/format.h"

namespace tileweave {
namespace {

std::string operation(const TensorSpec& spec) {
  return "tensor `" + spec.name + "`";
}

TileSet data_tiles(const TensorSpec& spec) {
  if (!spec.tile_table.empty()) {
    if (spec.tiles.num_axes != 0) {
      throw Error(operation(spec), "tile sizes or a tile table, not both");
    }
    if (!(spec.tile_table.shape() == spec.shape)) {
      throw Error(operation(spec), "a tile table over its shape " + to_string(spec.shape),
                  to_string(spec.tile_table.shape()));
    }
    if (spec.tile_table.is_plain()) return spec.tile_table;
    // Made anew, because a loose table (a kernel tiling) may have holes or overlaps.
    std::vector<Box> boxes;
    for (std::int64_t t = 0; t < spec.tile_table.count(); ++t) {
      boxes.push_back(spec.tile_table.box(t));
    }
    try {
      return TileSet::table(spec.shape, std::move(boxes));
    } catch (const Error& error) {
      throw Error(operation(spec), error.expected(), error.got());
    }
  }
  if (spec.tiles.num_axes == 0) return {};
  const Tiling tiling{spec.shape, spec.tiles};
  if (const char* what = invalid(tiling)) {
    throw Error(operation(spec), what, to_string(spec.shape) + " by " + to_string(spec.tiles));
  }
  return TileSet::plain(tiling);
}

void check_sharing(const TensorSpec& spec, const TensorSpec& earlier) {
  if (spec.kind != TensorKind::kValue || earlier.kind != TensorKind::kValue) {
    throw Error(operation(spec), "a value may share a buffer only with a value",
                std::string(name_of(spec.kind)) + " with " + name_of(earlier.kind) + " `" +
                    earlier.name + "`");
  }
  if (!(spec.shape == earlier.shape) || spec.dtype != earlier.dtype) {
    throw Error(operation(spec),
                "shape and type of `" + earlier.name + "`, whose buffer it shares: " +
                    to_string(earlier.shape) + " " + name_of(earlier.dtype),
                to_string(spec.shape) + " " + name_of(spec.dtype));
  }
}

}  // namespace

TensorId TensorTable::add(const TensorSpec& spec) {
  require(!spec.name.empty(), "tensor", "a name that is not empty");
  if (const char* what = invalid(Tiling{spec.shape, spec.shape})) {
    throw Error(operation(spec), what, to_string(spec.shape));
  }
  if (spec.word_stride < 0) {
    throw Error(operation(spec), "a word stride that is not negative",
                std::to_string(spec.word_stride));
  }
  if (spec.semaphores != nullptr && spec.tiles.num_axes == 0 && spec.tile_table.empty()) {
    throw Error(operation(spec), "data tiles for the semaphores it was given", "none");
  }
  if (spec.shares_buffer_with != kNoTensor) {
    if (spec.shares_buffer_with < 0 || spec.shares_buffer_with >= size()) {
      throw Error(
          operation(spec), "an earlier tensor to share the buffer of",
          "tensor id " + std::to_string(spec.shares_buffer_with) + " of " + std::to_string(size()));
    }
    check_sharing(spec, (*this)[spec.shares_buffer_with].spec);
  }
  tensors_.push_back(std::make_shared<const Tensor>(Tensor{spec, data_tiles(spec)}));
  return size() - 1;
}

const Tensor& TensorTable::operator[](TensorId id) const {
  if (id < 0 || id >= size()) {
    throw Error("tensor table", "a tensor id below " + std::to_string(size()), std::to_string(id));
  }
  return *tensors_[static_cast<std::size_t>(id)];
}

void TensorTable::tile(TensorId id, const Coord& tiles) {
  TensorSpec spec = (*this)[id].spec;
  spec.tiles = tiles;
  spec.tile_table = {};
  TileSet set = data_tiles(spec);
  tensors_[static_cast<std::size_t>(id)] =
      std::make_shared<const Tensor>(Tensor{std::move(spec), std::move(set)});
}

TensorId TensorTable::buffer_owner(TensorId id) const {
  while ((*this)[id].spec.shares_buffer_with != kNoTensor) {
    id = (*this)[id].spec.shares_buffer_with;
  }
  return id;
}

}  // namespace tileweave
