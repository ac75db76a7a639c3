// PlannerOptions: the integers of a plan, fixed when it is built and the same on every rank, and
// the two presets.
//
// `paper` follows Appendix A of the MegaFlux paper as printed. `tuned` derives lambda from
// described rates, lets refinement compare rows, adds chain moves, and keeps fixed placement unless
// the predicted time falls by more than the slack. check() throws Error for options that make no
// sense, require_agreed() when ranks differ.
#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <string>
#include <utility>

#include "tileweave/moe/planner/planner_shape.h"

namespace tileweave {

enum class PlanMethod : std::uint8_t { kSearches, kBisection, kPacking };
/// kReductionAware: training; replicas also cost their owner a gradient reduction (A.2).
enum class PlanObjective : std::uint8_t { kLoadOnly, kReductionAware };
enum class RefineBy : std::uint8_t { kBlocks, kRows };
enum class ChainMoves : std::uint8_t { kOff, kOn };
enum class PlanGate : std::uint8_t { kOff, kPredictedTime };

/// lambda, and predicted times, are counted in 1/256 of the time of one whole block.
inline constexpr std::int32_t kTimeUnit = 256;
inline constexpr std::int32_t kSlackUnit = 1024;

struct PlannerOptions {
  PlannerShape shape;
  PlanMethod method = PlanMethod::kSearches;
  PlanObjective objective = PlanObjective::kLoadOnly;
  RefineBy refine_by = RefineBy::kBlocks;
  ChainMoves chain_moves = ChainMoves::kOff;
  PlanGate gate = PlanGate::kOff;
  std::int32_t lambda = 12 * kTimeUnit;  // owner's load per replica, in 1/kTimeUnit block
  std::int32_t slack = 0;                // of the predicted time, in 1/kSlackUnit
  constexpr bool operator==(const PlannerOptions&) const = default;
};

/// What lambda follows from; every rate is described by whoever knows the machine.
struct MachineRates {
  std::int32_t tera_flops = 600;      // sustained by the expert GEMMs of one rank
  std::int32_t link_gigabytes = 380;  // per second, one way
  std::int32_t weight_bytes = 2;      // of a weight as it is copied
  std::int32_t gradient_bytes = 4;    // of an element of a partial weight gradient
  std::int32_t hidden_forward = 560;  // share of the copy that computation hides, in 1/1000
  std::int32_t hidden_backward = 910;
};

/// Copying an expert over computing a block of it; its hidden and inner sizes cancel out. Forward:
/// weight_bytes F / (2 block_rows BW), times what is not hidden. Backward moves weights and partial
/// gradients beside twice the arithmetic: (weight_bytes + gradient_bytes) F / (4 block_rows BW).
std::int32_t derived_lambda(const MachineRates& rates, std::int32_t block_rows,
                            PlanObjective objective);

PlannerShape shape_with_default_slots(std::int32_t num_ranks, std::int32_t num_experts,
                                      std::int32_t block_rows = 128);
PlannerOptions paper_preset(const PlannerShape& shape, PlanObjective objective);
PlannerOptions tuned_preset(const PlannerShape& shape, PlanObjective objective,
                            const MachineRates& rates = {});

/// Throws Error in one sentence; refuses more ranks than experts, never an uneven division.
void check(const PlannerOptions& options);
/// `of_ranks`: the options that each rank was built with; throws Error naming rank and integer.
void require_agreed(std::span<const PlannerOptions> of_ranks);
std::string to_string(const PlannerOptions& options);

using NamedInteger = std::pair<const char*, std::int32_t>;
/// Every integer by name: what ranks compare and what is printed.
std::array<NamedInteger, 11> integers_of(const PlannerOptions& options);

}  // namespace tileweave
