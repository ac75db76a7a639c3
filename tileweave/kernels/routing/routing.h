// Routing: the top k experts of each token and their weights, from the router's logits (T, E).
//
// What is chosen says RoutingRule. A row depends on its own logits alone. Rows whose `sequences`
// entry is -1 are padding: ids -1, weights 0, and their logits, which may be anything, are not
// looked at. NaN or +inf in another row ends the run with an Error naming token and expert. Kernel
// tiles and their coordinates:
//   logits   slot 0  {m}: (tile_m, E)        bias, sequences: constants, read before the first wait
//   ids      slot 1  {m}: (tile_m, k)
//   weights  slot 2  {m}: (tile_m, k)
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "tileweave/kernels/routing/routing_rule.h"
#include "tileweave/plan/node.h"
#include "tileweave/runtime/device.h"
#include "tileweave/runtime/kernel_library.h"

namespace tileweave {

struct RoutingOptions {
  std::string name = "routing";
  RoutingRule rule = {};
  std::int64_t tile_m = 8;      // rows per work
  std::int64_t num_blocks = 0;  // persistent blocks; 0: one per work
  TileOrder order = TileOrder::identity();
  double cost_of_tile = 1;                  // ticks of a whole tile; a ragged one in proportion
  std::optional<Cost> cost = std::nullopt;  // instead of the above
  std::optional<EdgePolicy> edge = std::nullopt;
};

struct RoutingTensors {
  TensorId logits = kNoTensor;     // (T, E) f32
  TensorId ids = kNoTensor;        // (T, k) i32
  TensorId weights = kNoTensor;    // (T, k) f32
  TensorId bias = kNoTensor;       // (E) f32 constant; none: kNoTensor
  TensorId sequences = kNoTensor;  // (T) i32 constant; none: every row is a token
};

/// Throws Error for a rule that cannot be followed with `num_experts`: a top k over the experts, or
/// over those of the groups that stay, groups that do not divide them or have fewer than two.
void check(const RoutingRule& rule, std::int64_t num_experts, const std::string& operation);

/// The launch as a node of a plan or of an AsyncStream. Throws Error naming the operand for shapes,
/// types or options that do not fit.
NodeSpec routing(const TensorTable& tensors, const RoutingOptions& options,
                 const RoutingTensors& operands);

void add_routing_cpu(KernelLibrary& kernels);
/// Throws Error on a device that has no implementation.
void add_routing(Device& device);

}  // namespace tileweave
