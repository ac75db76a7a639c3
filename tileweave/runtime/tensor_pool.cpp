#include "tileweave/runtime/tensor_pool.h"

#include <algorithm>

#include "tileweave/core/error.h"
#include "tileweave/core/format.h"

namespace tileweave {
namespace {

/// A table tiling has no short key, and a tensor in place is bound to its owner: a new id each
/// time.
bool id_is_reusable(const TensorSpec& spec) {
  return spec.tile_table.empty() && spec.semaphores == nullptr &&
         spec.shares_buffer_with == kNoTensor;
}

}  // namespace

TensorPool::~TensorPool() {
  for (const auto& [id, entry] : entries_) {
    if (entry.owned_bytes > 0) device_.release(entry.address);
  }
  for (const auto& [bytes, pieces] : free_memory_) {
    for (const Piece& piece : pieces) device_.release(piece.memory);
  }
}

std::string TensorPool::key_of(const TensorSpec& spec) {
  return spec.name + "|" + to_string(spec.shape) + name_of(spec.dtype) + name_of(spec.kind) +
         to_string(spec.tiles) + std::to_string(spec.word_stride) + (spec.output ? "output" : "");
}

TensorPool::Piece TensorPool::take_memory(std::size_t bytes) {
  std::deque<Piece>& free = free_memory_[bytes];
  if (free.empty()) return {device_.allocate(bytes)};
  const Piece piece = free.front();
  free.pop_front();
  return piece;
}

TensorId TensorPool::acquire(const TensorSpec& spec, const UseMark& now) {
  collect(now);
  const bool in_place = spec.shares_buffer_with != kNoTensor;
  if (in_place) {
    if (!held(spec.shares_buffer_with)) {
      throw Error("tensor `" + spec.name + "`",
                  "a handle held of the tensor whose buffer it shares",
                  "id " + std::to_string(spec.shares_buffer_with));
    }
    if (spec.address != nullptr) {
      throw Error("tensor `" + spec.name + "`", "an address or a buffer to share, not both");
    }
  }
  std::deque<std::pair<TensorId, std::int64_t>>* free_ids = nullptr;
  if (id_is_reusable(spec)) free_ids = &free_ids_[key_of(spec)];
  const bool reuse =
      free_ids != nullptr && !free_ids->empty() && free_ids->front().second < now.run;
  const TensorId id = reuse ? free_ids->front().first : tensors_.add(spec);
  Entry entry;
  if (in_place) {
    Entry& owner = entries_.at(tensors_.buffer_owner(id));
    ++owner.num_sharers;
    entry.address = owner.address;
  } else if (spec.address != nullptr) {
    entry.address = spec.address;
  } else {
    const std::size_t bytes = tensors_[id].bytes();
    const Piece piece = take_memory(bytes);
    entry.owned_bytes = bytes;
    entry.address = piece.memory;
    entry.busy_before = piece.busy_until;
    bytes_held_ += bytes;
  }
  if (reuse) free_ids->pop_front();
  entries_[id] = entry;
  return id;
}

bool TensorPool::held(TensorId id) const {
  const auto found = entries_.find(id);
  return found != entries_.end() && !found->second.dropped;
}

void TensorPool::drop(TensorId id) {
  entries_.at(id).dropped = true;
  dropped_.push_back(id);
}

void TensorPool::used(TensorId id, const UseMark& now) {
  entries_.at(id).last_use = now;
  entries_.at(tensors_.buffer_owner(id)).last_use = now;
}

std::int64_t TensorPool::busy_until(TensorId id) const {
  const Entry& owner = entries_.at(tensors_.buffer_owner(id));
  return std::max(owner.last_use.number, owner.busy_before);
}

void TensorPool::collect(const UseMark& now) {
  std::deque<TensorId> kept;
  for (const TensorId id : dropped_) {
    const Entry& entry = entries_.at(id);
    const UseMark& last = entry.last_use;
    const bool settled = last.run < now.run || now.launch - last.launch >= max_in_flight_;
    if (!settled || entry.num_sharers > 0) {
      kept.push_back(id);
      continue;
    }
    const TensorSpec& spec = tensors_[id].spec;
    if (entry.owned_bytes > 0) {
      free_memory_[entry.owned_bytes].push_back({entry.address, busy_until(id)});
      bytes_held_ -= entry.owned_bytes;
    }
    if (spec.shares_buffer_with != kNoTensor) --entries_.at(tensors_.buffer_owner(id)).num_sharers;
    if (id_is_reusable(spec)) free_ids_[key_of(spec)].push_back({id, last.run});
    entries_.erase(id);
  }
  dropped_ = std::move(kept);
}

}  // namespace tileweave
