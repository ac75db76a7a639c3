// Random plans of tile-mix nodes: a pure function of a seed.
//
// They hold what the tile algebra and the schedule allow: chains, diamonds, fan-in and fan-out,
// nodes with two results, tensors that several nodes (of one or more ranks) write together, ragged
// and indivisible tilings, size 1, irregular tables, two and more axes, coarse and overlapping
// kernel tiles, re-tiled views, persistent and claimed blocks, every order, every edge kind and
// start rule, one to three streams, values in place, states that every run updates. All results
// depend on a state that the last node advances, so two runs never produce the same bits.
#pragma once

#include <cstdint>

#include "tests/runtime/tile_mix.h"

namespace tileweave {

/// Start rule wait_first trusts that blocks begin in launch order, also where a block of a later
/// kernel would fit and one of an earlier kernel does not: `explore` keeps no such order.
enum class WaitFirst : std::uint8_t { kAllowed, kLeftOut };

struct RandomPlanOptions {
  std::uint64_t seed = 1;
  std::int32_t max_positions = 9;
  std::int64_t max_elements = 160;    // per tensor
  std::int64_t max_shared = 200'000;  // bytes of shared memory per block, at most
  std::int32_t num_streams = 0;       // 0: one to three
  std::uint32_t max_delay_ns = 0;
  WaitFirst wait_first = WaitFirst::kAllowed;
};

MixPlan random_plan(const RandomPlanOptions& options);

/// Tensors whose bits the host may compare after a run: results and states.
std::vector<TensorId> observable(const MixPlan& mix);

}  // namespace tileweave
