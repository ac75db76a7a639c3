#include "tileweave/plan/memory_plan.h"

#include <algorithm>
#include <limits>

#include "tileweave/core/error.h"

namespace tileweave {
namespace {

/// One region of the arena: a tensor with all that share its buffer, or scratch of a node.
struct Buffer {
  std::size_t bytes = 0;  // rounded up
  bool kept = false;      // lives for ever
  std::vector<NodeId> users;
  std::vector<NodeId> writers;
  std::size_t offset = 0;
};

std::size_t round_up(std::size_t bytes) {
  constexpr std::size_t kUnit = MemoryPlan::kAlignment;
  if (bytes > std::numeric_limits<std::size_t>::max() - kUnit) {
    throw Error("memory plan", "fewer than 2^64 bytes", std::to_string(bytes));
  }
  return (bytes + kUnit - 1) / kUnit * kUnit;
}

/// True when everybody is through with `earlier` before anybody writes `later`.
bool may_follow(const Buffer& earlier, const Buffer& later, const HappensBefore& order) {
  if (earlier.kept || later.kept || later.writers.empty()) return false;
  return std::all_of(later.writers.begin(), later.writers.end(), [&](NodeId writer) {
    return std::all_of(earlier.users.begin(), earlier.users.end(),
                       [&](NodeId user) { return user < writer && order.ordered(user, writer); });
  });
}

/// Smallest gap between `taken` regions (sorted by offset) that holds `bytes`, else their end.
std::size_t best_offset(const std::vector<const Buffer*>& taken, std::size_t bytes) {
  std::size_t end = 0;
  std::size_t best = 0;
  std::size_t smallest = std::numeric_limits<std::size_t>::max();
  if (bytes == 0) return 0;
  for (const Buffer* buffer : taken) {
    if (buffer->offset > end) {
      const std::size_t gap = buffer->offset - end;
      if (gap >= bytes && gap < smallest) {
        smallest = gap;
        best = end;
      }
    }
    end = std::max(end, buffer->offset + buffer->bytes);
  }
  return smallest == std::numeric_limits<std::size_t>::max() ? end : best;
}

std::vector<Buffer> buffers_of(const Plan& plan, std::vector<std::size_t>& buffer_of_tensor,
                               std::vector<std::size_t>& buffer_of_scratch) {
  std::vector<Buffer> buffers;
  std::vector<bool> outside;  // memory that the user owns takes nothing of the arena
  const TensorTable& tensors = plan.tensors();
  for (TensorId t = 0; t < tensors.size(); ++t) {
    const TensorId owner = tensors.buffer_owner(t);
    if (owner == t) {
      buffer_of_tensor.push_back(buffers.size());
      buffers.emplace_back();
      outside.push_back(false);
    } else {
      buffer_of_tensor.push_back(buffer_of_tensor[static_cast<std::size_t>(owner)]);
    }
    Buffer& buffer = buffers[buffer_of_tensor.back()];
    const Tensor& tensor = tensors[t];
    buffer.bytes = std::max(buffer.bytes, round_up(tensor.bytes()));
    outside[buffer_of_tensor.back()] = outside[buffer_of_tensor.back()] || tensor.spec.address;
    buffer.kept |= tensor.spec.kind != TensorKind::kValue || tensor.spec.output;
  }
  for (std::size_t b = 0; b < buffers.size(); ++b) {
    if (outside[b]) buffers[b].bytes = 0;
  }
  for (std::size_t n = 0; n < plan.nodes().size(); ++n) {
    const NodeSpec& node = plan.nodes()[n];
    const auto id = static_cast<NodeId>(n);
    for (const OperandSpec& operand : node.operands) {
      Buffer& buffer = buffers[buffer_of_tensor[static_cast<std::size_t>(operand.tensor)]];
      buffer.users.push_back(id);
      if (operand.access == Access::kWrite) buffer.writers.push_back(id);
    }
    buffer_of_scratch.push_back(buffers.size());
    if (node.scratch_bytes > 0) {
      buffers.push_back({.bytes = round_up(node.scratch_bytes),
                         .kept = false,
                         .users = {id},
                         .writers = {id},
                         .offset = 0});
    }
  }
  for (Buffer& buffer : buffers) buffer.kept |= buffer.writers.empty();
  return buffers;
}

void place(std::vector<Buffer>& buffers, const HappensBefore& order, BufferReuse reuse) {
  std::vector<std::size_t> by_size(buffers.size());
  for (std::size_t b = 0; b < buffers.size(); ++b) by_size[b] = b;
  std::stable_sort(by_size.begin(), by_size.end(), [&](std::size_t a, std::size_t b) {
    if (buffers[a].kept != buffers[b].kept) return buffers[a].kept;
    return buffers[a].bytes > buffers[b].bytes;
  });
  std::vector<const Buffer*> placed;
  std::vector<const Buffer*> taken;
  for (const std::size_t b : by_size) {
    taken.clear();
    for (const Buffer* other : placed) {
      const bool apart = reuse == BufferReuse::kOn && (may_follow(*other, buffers[b], order) ||
                                                       may_follow(buffers[b], *other, order));
      if (!apart) taken.push_back(other);
    }
    buffers[b].offset = best_offset(taken, buffers[b].bytes);
    const auto after =
        std::upper_bound(placed.begin(), placed.end(), &buffers[b],
                         [](const Buffer* x, const Buffer* y) { return x->offset < y->offset; });
    placed.insert(after, &buffers[b]);
  }
}

}  // namespace

MemoryPlan plan_memory(const Plan& plan, const HappensBefore& order, BufferReuse reuse) {
  std::vector<std::size_t> buffer_of_tensor;
  std::vector<std::size_t> buffer_of_scratch;
  std::vector<Buffer> buffers = buffers_of(plan, buffer_of_tensor, buffer_of_scratch);
  place(buffers, order, reuse);

  MemoryPlan memory;
  for (const Buffer& buffer : buffers) {
    memory.arena_bytes = std::max(memory.arena_bytes, buffer.offset + buffer.bytes);
    memory.bytes_without_reuse += buffer.bytes;
  }
  for (const std::size_t b : buffer_of_tensor) memory.tensor_offset.push_back(buffers[b].offset);
  for (std::size_t n = 0; n < plan.nodes().size(); ++n) {
    const bool has_scratch = plan.nodes()[n].scratch_bytes > 0;
    memory.scratch_offset.push_back(has_scratch ? buffers[buffer_of_scratch[n]].offset : 0);
  }
  return memory;
}

}  // namespace tileweave
