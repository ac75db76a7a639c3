#include "tileweave/runtime/tensor_pool.h"

#include <algorithm>

#include "tileweave/core/format.h"

namespace tileweave {

TensorPool::~TensorPool() {
  for (const auto& [id, entry] : entries_) {
    if (entry.owned_bytes > 0) device_.release(entry.address);
  }
  for (const auto& [bytes, pieces] : free_memory_) {
    for (void* piece : pieces) device_.release(piece);
  }
}

std::string TensorPool::key_of(const TensorSpec& spec) {
  return spec.name + "|" + to_string(spec.shape) + name_of(spec.dtype) + name_of(spec.kind) +
         to_string(spec.tiles) + std::to_string(spec.word_stride);
}

void* TensorPool::take_memory(std::size_t bytes) {
  std::deque<void*>& free = free_memory_[bytes];
  if (free.empty()) return device_.allocate(bytes);
  void* memory = free.front();
  free.pop_front();
  return memory;
}

TensorId TensorPool::acquire(const TensorSpec& spec, const UseMark& now) {
  collect(now);
  Entry entry;
  TensorId id = kNoTensor;
  // A table tiling has no short key; such tensors get a new id each time.
  if (spec.tile_table.empty()) {
    auto& free = free_ids_[key_of(spec)];
    if (!free.empty() && free.front().second < now.run) {
      id = free.front().first;
      free.pop_front();
    }
  }
  if (id == kNoTensor) id = tensors_.add(spec);
  if (spec.address != nullptr) {
    entry.address = spec.address;
  } else {
    entry.owned_bytes = tensors_[id].bytes();
    entry.address = take_memory(entry.owned_bytes);
    bytes_held_ += entry.owned_bytes;
  }
  entries_[id] = entry;
  return id;
}

void TensorPool::drop(TensorId id) {
  entries_.at(id).dropped = true;
  dropped_.push_back(id);
}

void TensorPool::collect(const UseMark& now) {
  std::deque<TensorId> kept;
  for (const TensorId id : dropped_) {
    const Entry& entry = entries_.at(id);
    const UseMark& last = entry.last_use;
    const bool settled = last.run < now.run || now.launch - last.launch >= max_in_flight_;
    if (!settled) {
      kept.push_back(id);
      continue;
    }
    if (entry.owned_bytes > 0) {
      free_memory_[entry.owned_bytes].push_back(entry.address);
      bytes_held_ -= entry.owned_bytes;
    }
    if (tensors_[id].spec.tile_table.empty()) {
      free_ids_[key_of(tensors_[id].spec)].push_back({id, last.run});
    }
    entries_.erase(id);
  }
  dropped_ = std::move(kept);
}

}  // namespace tileweave
