#include "tileweave/plan/launch_check.h"

#include <algorithm>

namespace tileweave {
namespace {

Fault fault_of(FaultKind kind, const NodeLabel& label, const std::string& rest) {
  return {kind, label.text() + " " + rest, label.id, kNoTensor, -1};
}

/// What keeps the table from being a permutation of the works; empty when nothing does.
std::string why_no_permutation(const std::vector<std::int32_t>& order, std::int64_t num_works) {
  std::vector<std::int64_t> position(static_cast<std::size_t>(num_works), -1);
  for (std::size_t p = 0; p < order.size(); ++p) {
    const std::int64_t work = order[p];
    if (work < 0 || work >= num_works) {
      return "has work " + std::to_string(work) + " at position " + std::to_string(p) +
             " of its order, but has " + counted(num_works, "work");
    }
    std::int64_t& seen = position[static_cast<std::size_t>(work)];
    if (seen >= 0) {
      return "has work " + std::to_string(work) + " twice in its order, at positions " +
             std::to_string(seen) + " and " + std::to_string(p);
    }
    seen = static_cast<std::int64_t>(p);
  }
  const auto missing = std::find(position.begin(), position.end(), -1);
  if (missing == position.end()) return "";
  return "has an order of " + counted(static_cast<std::int64_t>(order.size()), "position") +
         " for " + counted(num_works, "work") + ": work " +
         std::to_string(missing - position.begin()) + " is missing";
}

}  // namespace

Countable check_launch(const NodeLabel& label, const NodeSpec& node, std::vector<Fault>& faults) {
  const std::int64_t num_blocks = blocks_of(node);
  if (node.num_works > kMaxIndex) {
    faults.push_back(
        fault_of(FaultKind::kIndexOverflow, label,
                 "has " + std::to_string(node.num_works) + " works, more than 2^31 - 1"));
    return Countable::kNo;
  }
  if (num_blocks > kMaxIndex) {
    faults.push_back(fault_of(FaultKind::kIndexOverflow, label,
                              "has " + std::to_string(num_blocks) + " blocks, more than 2^31 - 1"));
  } else if (num_blocks < 1 || num_blocks > node.num_works) {
    faults.push_back(fault_of(FaultKind::kOrderNotPermutation, label,
                              "has " + counted(num_blocks, "block") + " for " +
                                  counted(node.num_works, "work") +
                                  "; from one to one per work are possible"));
  }
  if (node.order.form() == OrderForm::kTable) {
    const std::string why = why_no_permutation(node.order.works(), node.num_works);
    if (!why.empty()) {
      faults.push_back(fault_of(FaultKind::kOrderNotPermutation, label, why));
    }
  }
  return Countable::kYes;
}

void check_last_arrivers(const NodeLabel& label, const NodeSpec& node, const OperandTiles& written,
                         const Tensor& tensor, std::vector<Fault>& faults) {
  if (written.spec().reduction != Reduction::kLastArriver) return;
  const std::int64_t num_tiles = written.kernel_tiles().count();
  const auto num_counters = static_cast<std::int64_t>(node.counter.arrivals.size());
  std::int64_t wrong = 0;
  std::int64_t place = 0;
  Fault first;
  for (std::int64_t k = 0; k < std::max(num_tiles, std::int64_t{1}); ++k) {
    const bool named = place < written.num_touched() && written.touched(place) == k;
    const std::int64_t works = named ? written.num_works(place++) : 0;
    if (k >= num_counters) {
      if (wrong++ == 0) {
        first = fault_of(FaultKind::kTooFewArrivals, label,
                         "has " + counted(num_counters, "counter") + " for " +
                             counted(num_tiles, "kernel tile") + " of " + quoted(tensor) +
                             " whose last arriver signals");
      }
      break;
    }
    const std::int64_t expected = node.counter.arrivals[static_cast<std::size_t>(k)];
    if (expected == works || wrong++ > 0) continue;
    first = fault_of(
        expected > works ? FaultKind::kTooFewArrivals : FaultKind::kTooManyArrivals, label,
        "counts " + counted(expected, "arrival") + " for kernel tile " + std::to_string(k) +
            " of " + quoted(tensor) + ", but " + counted(works, "work") + " touch it");
  }
  if (wrong == 0) return;
  first.tensor = written.spec().tensor;
  first.sentence += and_more(wrong - 1, "kernel tile");
  faults.push_back(first);
}

}  // namespace tileweave
