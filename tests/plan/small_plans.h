// Nodes and operands for plan tests, in the fewest words.
#pragma once

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "tileweave/plan/contract_check.h"
#include "tileweave/plan/plan.h"

namespace tileweave::testing {

inline TileSet grid(const Shape& shape, const Coord& tile) {
  return TileSet::plain({shape, tile});
}

inline OperandSpec read(TensorId tensor, const TileSet& kernel_tiles = {}, std::int32_t slot = -1) {
  return {.tensor = tensor, .kernel_tiles = kernel_tiles, .sync_slot = slot};
}

inline OperandSpec write(TensorId tensor, const TileSet& kernel_tiles = {},
                         std::int32_t slot = -1) {
  return {
      .tensor = tensor, .access = Access::kWrite, .kernel_tiles = kernel_tiles, .sync_slot = slot};
}

inline NodeSpec node(const std::string& name, std::int64_t num_works,
                     std::vector<OperandSpec> operands) {
  NodeSpec spec;
  spec.name = name;
  spec.kernel = "test";
  spec.num_works = num_works;
  spec.operands = std::move(operands);
  spec.make_args = [](const Addresses&) { return std::vector<std::byte>(); };
  return spec;
}

inline std::string sentences(const std::vector<Fault>& faults) {
  std::string text;
  for (const Fault& fault : faults) text += fault.sentence + "\n";
  return text;
}

inline bool has_kind(const std::vector<Fault>& faults, FaultKind kind) {
  return std::any_of(faults.begin(), faults.end(), [&](const Fault& f) { return f.kind == kind; });
}

}  // namespace tileweave::testing
