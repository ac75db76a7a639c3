// Checks the waits of a read operand: targets against the arrivals of earlier nodes.
#pragma once

#include <cstdint>
#include <vector>

#include "tileweave/plan/tensor_use.h"

namespace tileweave {

/// Waits that nothing has satisfied so far; a later producer may turn them into backward waits,
/// which it reports itself.
struct OpenWaits {
  struct Tile {
    std::int64_t tile;
    std::int64_t target;
  };
  const UsedOperand* read = nullptr;
  std::vector<Tile> tiles;
};

/// Faults that no later node can explain better are appended; the others are returned open.
OpenWaits check_waits(RunUse& run, const UsedOperand& read, std::vector<Fault>& faults);

/// Reports the open waits that no later node has turned into backward waits.
void close_waits(RunUse& run, const OpenWaits& open, std::vector<Fault>& faults);

}  // namespace tileweave
