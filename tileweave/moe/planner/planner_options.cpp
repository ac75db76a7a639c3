#include "tileweave/moe/planner/planner_options.h"

#include <fmt/format.h>

#include "tileweave/core/error.h"

namespace tileweave {
namespace {

constexpr const char* kCheck = "make MoE planner options";

void at_least(std::int32_t value, std::int32_t least, const char* name) {
  if (value < least) {
    throw Error(kCheck, fmt::format("{} of at least {}", name, least), std::to_string(value));
  }
}

void at_most(std::int32_t value, std::int32_t most, const char* name) {
  if (value > most) {
    throw Error(kCheck, fmt::format("{} of at most {}", name, most), std::to_string(value));
  }
}

}  // namespace

std::int32_t derived_lambda(const MachineRates& rates, std::int32_t block_rows,
                            PlanObjective objective) {
  at_least(block_rows, 1, "block_rows");
  for (const auto& [value, name] : {std::pair{rates.tera_flops, "tera_flops"},
                                    {rates.link_gigabytes, "link_gigabytes"},
                                    {rates.weight_bytes, "weight_bytes"},
                                    {rates.gradient_bytes, "gradient_bytes"}}) {
    at_least(value, 1, name);
    at_most(value, 1'000'000, name);
  }
  for (const std::int32_t share : {rates.hidden_forward, rates.hidden_backward}) {
    at_least(share, 0, "a hidden share, in 1/1000,");
    at_most(share, 1000, "a hidden share, in 1/1000,");
  }
  const bool training = objective == PlanObjective::kReductionAware;
  const std::int64_t exposed = 1000 - (training ? rates.hidden_backward : rates.hidden_forward);
  const std::int64_t bytes =
      training ? rates.weight_bytes + rates.gradient_bytes : rates.weight_bytes;
  // 1000 gigaflops in a teraflop and 1000 parts in a share cancel.
  const std::int64_t over =
      static_cast<std::int64_t>(training ? 4 : 2) * block_rows * rates.link_gigabytes;
  constexpr std::int64_t kMost = 1 << 30;
  const std::int64_t lambda = (bytes * rates.tera_flops * kTimeUnit * exposed + over / 2) / over;
  return static_cast<std::int32_t>(lambda < kMost ? lambda : kMost);
}

PlannerShape shape_with_default_slots(std::int32_t num_ranks, std::int32_t num_experts,
                                      std::int32_t block_rows) {
  at_least(num_ranks, 1, "num_ranks");
  at_least(num_experts, 1, "num_experts");
  return {.num_ranks = num_ranks,
          .num_experts = num_experts,
          .num_slots = PlannerShape::default_slots(num_ranks, num_experts),
          .block_rows = block_rows};
}

PlannerOptions paper_preset(const PlannerShape& shape, PlanObjective objective) {
  return {.shape = shape, .objective = objective};
}

PlannerOptions tuned_preset(const PlannerShape& shape, PlanObjective objective,
                            const MachineRates& rates) {
  return {.shape = shape,
          .objective = objective,
          .refine_by = RefineBy::kRows,
          .chain_moves = ChainMoves::kOn,
          .gate = PlanGate::kPredictedTime,
          .lambda = derived_lambda(rates, shape.block_rows, objective),
          .slack = kSlackUnit / 50};
}

void check(const PlannerOptions& options) {
  const PlannerShape& shape = options.shape;
  at_least(shape.num_ranks, 1, "num_ranks");
  at_least(shape.num_experts, 1, "num_experts");
  at_most(shape.num_experts, 1 << 20, "num_experts");
  if (shape.num_ranks > shape.num_experts) {
    throw Error(kCheck, "at least one expert per rank",
                fmt::format("{} ranks and {} experts", shape.num_ranks, shape.num_experts));
  }
  at_least(shape.num_slots, 0, "num_slots");
  at_most(shape.num_slots, shape.num_experts, "num_slots");
  at_least(shape.block_rows, 1, "block_rows");
  at_least(options.lambda, 0, "lambda");
  at_least(options.slack, 0, "slack");
  at_most(options.slack, kSlackUnit, "slack");
}

std::array<NamedInteger, 11> integers_of(const PlannerOptions& options) {
  const PlannerShape& shape = options.shape;
  return {{{"num_ranks", shape.num_ranks},
           {"num_experts", shape.num_experts},
           {"num_slots", shape.num_slots},
           {"block_rows", shape.block_rows},
           {"method", static_cast<std::int32_t>(options.method)},
           {"objective", static_cast<std::int32_t>(options.objective)},
           {"refine_by", static_cast<std::int32_t>(options.refine_by)},
           {"chain_moves", static_cast<std::int32_t>(options.chain_moves)},
           {"gate", static_cast<std::int32_t>(options.gate)},
           {"lambda", options.lambda},
           {"slack", options.slack}}};
}

void require_agreed(std::span<const PlannerOptions> of_ranks) {
  for (std::size_t rank = 1; rank < of_ranks.size(); ++rank) {
    const auto first = integers_of(of_ranks[0]), here = integers_of(of_ranks[rank]);
    for (std::size_t i = 0; i < first.size(); ++i) {
      if (first[i].second == here[i].second) continue;
      throw Error(
          "agree on the MoE planner's integers",
          fmt::format("{} {} on rank {} as on rank 0", first[i].first, first[i].second, rank),
          std::to_string(here[i].second));
    }
  }
}

std::string to_string(const PlannerOptions& options) {
  std::string text;
  for (const auto& [name, value] : integers_of(options)) {
    text += fmt::format("{}{} {}", text.empty() ? "" : ", ", name, value);
  }
  return text;
}

}  // namespace tileweave
