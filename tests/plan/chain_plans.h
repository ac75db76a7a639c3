// Chains of like nodes, each reading all of the one before it: the plans most proofs are tried on.
#pragma once

#include <string>

#include "tests/plan/small_plans.h"
#include "tileweave/plan/plan.h"

namespace tileweave::testing {

/// A weight-streaming kernel whose ring fills most of an SM: one block per SM.
inline constexpr KernelResources kDeepRing = {
    .threads = 288, .registers_per_thread = 168, .shared_bytes = 183 * 1024};
/// Two blocks per SM.
inline constexpr KernelResources kHalfSm = {
    .threads = 256, .registers_per_thread = 128, .shared_bytes = 100 * 1024};

struct Link {
  std::int64_t blocks = 1;
  KernelResources resources = {};
  std::int64_t tile_rows = 1;  // data tile of what it writes
};

/// Adds node "n<k>" that reads all of the last tensor and writes a new one of `blocks` rows.
inline NodeId add_link(Plan& plan, const Link& link) {
  const auto index = static_cast<std::int32_t>(plan.nodes().size());
  const std::string number = std::to_string(index);
  const TensorId last = plan.tensors().size() - 1;
  const Shape shape = {link.blocks, 8};
  const TensorId own =
      plan.tensor({.name = "X" + number, .shape = shape, .tiles = {link.tile_rows, 8}});
  std::vector<OperandSpec> operands = {write(own, grid(shape, {1, 8}), 0)};
  if (index > 0) operands.push_back(read(last, {}, 1));
  NodeSpec spec = node("n" + number, link.blocks, operands);
  spec.resources = link.resources;
  return plan.add(spec);
}

struct Chain {
  std::int32_t num_nodes = 2;
  std::int64_t blocks = 1;
  KernelResources resources = {};
  std::int32_t num_streams = 2;
  EdgePolicy edge = {};
};

inline Plan chain(const Chain& options) {
  Plan plan({.num_streams = options.num_streams, .edge = options.edge});
  for (std::int32_t n = 0; n < options.num_nodes; ++n) {
    add_link(plan, {.blocks = options.blocks, .resources = options.resources});
  }
  return plan;
}

}  // namespace tileweave::testing
