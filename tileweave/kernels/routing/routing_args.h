// RoutingArgs: the argument struct of every routing kernel.
#pragma once

#include <cstdint>

#include "tileweave/core/coord.h"
#include "tileweave/kernels/routing/routing_rule.h"
#include "tileweave/plan/resources.h"
#include "tileweave/sync/access.h"

namespace tileweave {

inline constexpr const char* kRoutingKernel = "routing.f32";
inline constexpr KernelResources kRoutingResources{.threads = 256, .registers_per_thread = 40};

/// Indices of the node's operands (bias and sequences where given, in this order after the others),
/// and slots of the kernel's SyncContext.
struct RoutingOperands {
  static constexpr int kLogits = 0;
  static constexpr int kIds = 1;
  static constexpr int kWeights = 2;
  static constexpr int kFirstConstant = 3;
  static constexpr int kSlotLogits = 0;
  static constexpr int kSlotIds = 1;
  static constexpr int kSlotWeights = 2;
  static constexpr int kSlots = 3;
};

struct RoutingArgs {
  Produced<float> logits;
  Output<std::int32_t> ids;
  Output<float> weights;
  Stable<float> bias;
  Stable<std::int32_t> sequences;
  RoutingRule rule;
  std::int32_t bias_operand, sequences_operand;  // -1: not given
  std::int64_t rows, experts, tile_m, num_blocks;

  TW_HOST_DEVICE constexpr std::int64_t num_works() const { return ceil_div(rows, tile_m); }
};

}  // namespace tileweave
