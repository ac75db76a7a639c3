// Small random plans of all shapes: chains, diamonds, persistent blocks, two ranks, every edge
// policy; each work reads all of a tensor, or one row, or (every other work) nothing.
#pragma once

#include <array>
#include <random>
#include <string>
#include <vector>

#include "tests/plan/small_plans.h"
#include "tileweave/plan/plan.h"

namespace tileweave::testing {

struct RandomGraph {
  std::int32_t num_streams = 2;
  int max_nodes = 5;
  int max_shared_bytes = 0;
  int max_columns = 4;        // of a tensor
  int percent_outputs = 100;  // tensors that the host reads
  int percent_scratch = 0;    // nodes with scratch
};

inline Plan random_graph(std::mt19937& random, const RandomGraph& options) {
  const auto pick = [&](int low, int high) {
    return std::uniform_int_distribution<int>(low, high)(random);
  };
  Plan plan({.num_streams = options.num_streams});
  const int num_nodes = pick(2, options.max_nodes);
  const int num_ranks = pick(1, 4) == 1 ? 2 : 1;
  std::vector<std::int64_t> rows;
  std::vector<std::int64_t> columns;
  for (int n = 0; n < num_nodes; ++n) {
    rows.push_back(pick(1, 4));
    const std::int64_t height = rows.back();
    const std::int64_t width = pick(4, options.max_columns);
    columns.push_back(width);
    const TensorId own = plan.tensor({.name = "t" + std::to_string(n),
                                      .shape = {height, width},
                                      .tiles = {pick(0, 1) == 0 ? height : 1, width},
                                      .output = pick(1, 100) <= options.percent_outputs});
    std::vector<OperandSpec> operands = {write(own, grid({height, width}, {1, width}), 0)};
    for (TensorId t = 0; t < own; ++t) {
      const bool is_before = t / num_ranks < own / num_ranks;
      if (!is_before || pick(0, 2) == 0) continue;
      const std::int64_t other = rows[static_cast<std::size_t>(t)];
      OperandSpec operand = read(t, {}, static_cast<std::int32_t>(operands.size()));
      const int what = pick(0, 3);
      if (what < 2) {
        const std::int64_t other_width = columns[static_cast<std::size_t>(t)];
        const bool every_work = what == 0;
        operand.kernel_tiles = grid({other, other_width}, {1, other_width});
        operand.tiles_of_work = [other, every_work](std::int64_t w) {
          const bool reads = every_work || w % 2 == 0;
          return reads ? std::vector<std::int64_t>{w % other} : std::vector<std::int64_t>{};
        };
      }
      operands.push_back(operand);
    }
    NodeSpec spec = node("n" + std::to_string(n), height, operands);
    spec.rank = n % num_ranks;
    spec.position = n / num_ranks;
    spec.num_blocks = pick(1, static_cast<int>(height));
    if (pick(1, 100) <= options.percent_scratch) {
      spec.scratch_bytes = static_cast<std::size_t>(pick(1, 3000));
    }
    spec.resources = {.threads = 32,
                      .registers_per_thread = 0,
                      .shared_bytes = pick(0, options.max_shared_bytes)};
    const std::array<EdgePolicy, 7> policies = {EdgePolicy{},
                                                EdgePolicy{},
                                                EdgePolicy{},
                                                EdgePolicy{.start = StartRule::kWaitAll},
                                                EdgePolicy{.start = StartRule::kLaunchCompletion},
                                                EdgePolicy{.start = StartRule::kWaitFirst},
                                                EdgePolicy{.kind = EdgeKind::kProgrammatic}};
    spec.edge = policies[static_cast<std::size_t>(pick(0, 6))];
    plan.add(spec);
  }
  return plan;
}

}  // namespace tileweave::testing
