// Memory planner: one arena with fixed offsets for all tensors and scratch of a plan.
//
// A buffer may be reused by a later value only when every access of the earlier one is ordered
// before every write of the later one (HappensBefore::ordered), so reuse is safe in every
// admission order. A work must do all its waits before it writes outputs or scratch, and signal
// after its last access. Deterministic, and a function of the plan alone: ranks that run the same
// plan get the same offsets. Constants, state, outputs and values that no node writes are kept.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "tileweave/plan/happens_before.h"
#include "tileweave/plan/plan.h"

namespace tileweave {

/// Whether buffers of dead values are reused.
enum class BufferReuse : std::uint8_t { kOff, kOn };

struct MemoryPlan {
  static constexpr std::size_t kAlignment = 256;
  std::size_t arena_bytes = 0;
  std::size_t bytes_without_reuse = 0;
  std::vector<std::size_t> tensor_offset;   // per tensor (0 where the user owns the memory)
  std::vector<std::size_t> scratch_offset;  // per node (0 where it has none)
};

MemoryPlan plan_memory(const Plan& plan, const HappensBefore& order,
                       BufferReuse reuse = BufferReuse::kOn);

}  // namespace tileweave
