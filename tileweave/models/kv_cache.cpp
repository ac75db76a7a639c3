#include "tileweave/models/kv_cache.h"

#include <string>

#include "tileweave/core/coord.h"
#include "tileweave/core/error.h"

namespace tileweave {
namespace {

std::size_t pool_bytes(const KvCacheShape& shape) {
  return static_cast<std::size_t>(shape.num_pages * shape.page_size * shape.row_elements) *
         size_of(shape.dtype);
}

}  // namespace

std::size_t bytes_of(const KvCacheShape& shape) {
  return pool_bytes(shape) * 2 * static_cast<std::size_t>(shape.layers);
}

KvCache::KvCache(Device& device, const KvCacheShape& shape) : shape_(shape) {
  require(
      shape.layers >= 1 && shape.row_elements >= 1 && shape.num_pages >= 1 && shape.page_size >= 1,
      "make KV cache", "at least one layer, element, page and token per page");
  memory_ = DeviceMemory(device, bytes_of(shape));
  for (std::int64_t page = shape.num_pages; page > 0; --page) {
    free_pages_.push_back(static_cast<std::int32_t>(page - 1));
  }
}

void* KvCache::keys(std::int64_t layer) const {
  return memory_.at(pool_bytes(shape_) * static_cast<std::size_t>(2 * layer));
}

void* KvCache::values(std::int64_t layer) const {
  return memory_.at(pool_bytes(shape_) * static_cast<std::size_t>(2 * layer + 1));
}

KvCache::SequenceId KvCache::add() {
  for (std::size_t i = 0; i < sequences_.size(); ++i) {
    if (sequences_[i].live) continue;
    sequences_[i].live = true;
    return static_cast<SequenceId>(i);
  }
  sequences_.push_back({.live = true});
  return static_cast<SequenceId>(sequences_.size() - 1);
}

void KvCache::remove(SequenceId sequence) {
  at(sequence);
  Sequence& s = sequences_[static_cast<std::size_t>(sequence)];
  free_pages_.insert(free_pages_.end(), s.pages.rbegin(), s.pages.rend());
  s = {};
}

void KvCache::extend(SequenceId sequence, std::int64_t count) {
  at(sequence);
  Sequence& s = sequences_[static_cast<std::size_t>(sequence)];
  const std::int64_t pages = ceil_div(s.length + count, shape_.page_size);
  const std::int64_t more = pages - static_cast<std::int64_t>(s.pages.size());
  if (more > static_cast<std::int64_t>(free_pages_.size())) {
    throw Error("extend a sequence in the KV cache",
                "room for " + std::to_string(count) + " more tokens",
                std::to_string(free_tokens()) + " of " + std::to_string(pool_rows()) +
                    " tokens in free pages");
  }
  for (std::int64_t i = 0; i < more; ++i) {
    s.pages.push_back(free_pages_.back());
    free_pages_.pop_back();
  }
  s.length += count;
}

void KvCache::truncate(SequenceId sequence, std::int64_t length) {
  require(length >= 0 && length <= at(sequence).length, "truncate a sequence in the KV cache",
          "a length it has had", std::to_string(length));
  Sequence& s = sequences_[static_cast<std::size_t>(sequence)];
  s.length = length;
  while (static_cast<std::int64_t>(s.pages.size()) > ceil_div(length, shape_.page_size)) {
    free_pages_.push_back(s.pages.back());
    s.pages.pop_back();
  }
}

std::int64_t KvCache::length(SequenceId sequence) const {
  return at(sequence).length;
}

std::span<const std::int32_t> KvCache::pages(SequenceId sequence) const {
  return at(sequence).pages;
}

std::int32_t KvCache::row(SequenceId sequence, std::int64_t token) const {
  const Sequence& s = at(sequence);
  require(token >= 0 && token < s.length, "find a token in the KV cache", "a claimed token",
          std::to_string(token) + " of " + std::to_string(s.length));
  const std::int32_t page = s.pages[static_cast<std::size_t>(token / shape_.page_size)];
  return static_cast<std::int32_t>(page * shape_.page_size + token % shape_.page_size);
}

std::int64_t KvCache::free_tokens() const {
  return static_cast<std::int64_t>(free_pages_.size()) * shape_.page_size;
}

const KvCache::Sequence& KvCache::at(SequenceId sequence) const {
  const bool known = sequence >= 0 && static_cast<std::size_t>(sequence) < sequences_.size();
  require(known && sequences_[static_cast<std::size_t>(sequence)].live, "use the KV cache",
          "a sequence that was added", std::to_string(sequence));
  return sequences_[static_cast<std::size_t>(sequence)];
}

}  // namespace tileweave
