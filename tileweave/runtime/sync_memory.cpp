#include "tileweave/runtime/sync_memory.h"

#include <algorithm>

namespace tileweave {
namespace {

constexpr std::size_t kChunkBytes = std::size_t{1} << 20;
// One cache line of a GPU: pieces never share one, so polling one does not slow another's atomics.
constexpr std::size_t kPieceAlignment = 128;

std::size_t round_up(std::size_t bytes) {
  return (bytes + kPieceAlignment - 1) / kPieceAlignment * kPieceAlignment;
}

}  // namespace

SyncMemory::~SyncMemory() {
  for (const Chunk& chunk : chunks_) device_.release(chunk.memory);
}

std::byte* SyncMemory::take(std::size_t bytes) {
  bytes = round_up(std::max<std::size_t>(bytes, 1));
  if (chunks_.empty() || chunks_.back().size - chunks_.back().used < bytes) {
    const std::size_t size = std::max(bytes, kChunkBytes);
    chunks_.push_back({static_cast<std::byte*>(device_.allocate(size)), size, 0});
  }
  Chunk& chunk = chunks_.back();
  std::byte* piece = chunk.memory + chunk.used;
  chunk.used += bytes;
  return piece;
}

std::uint32_t* SyncMemory::filled(const std::vector<std::uint32_t>& values) {
  const std::size_t bytes = values.size() * sizeof(std::uint32_t);
  auto* words = reinterpret_cast<std::uint32_t*>(take(bytes));
  device_.upload(words, values.data(), bytes);
  zeroed_by_reset_.push_back({words, bytes});
  return words;
}

CountedWords SyncMemory::counted(std::int64_t count, std::int64_t bases, std::int32_t word_stride,
                                 std::uint32_t initial) {
  CountedWords counted;
  counted.count = count;
  counted.word_stride = word_stride;
  const auto stride = static_cast<std::size_t>(word_stride);
  std::vector<std::uint32_t> values(static_cast<std::size_t>(count) * stride, 0);
  for (std::size_t at = 0; at < values.size(); at += stride) {
    values[at] = initial;
    if (word_stride > 1) values[at + 1] = initial;
  }
  counted.words = filled(values);
  if (word_stride > 1) {
    counted.base = counted.words + 1;
    counted.bases = count;
    counted.base_stride = word_stride;
  } else {
    counted.base = filled(std::vector<std::uint32_t>(static_cast<std::size_t>(bases), initial));
    counted.bases = bases;
    counted.base_stride = bases > 1 ? 1 : 0;
  }
  return counted;
}

CountedWords SyncMemory::adopt(std::uint32_t* words, std::int64_t count, std::int32_t word_stride) {
  CountedWords counted{
      .words = words, .count = count, .bases = count, .word_stride = word_stride, .base_stride = 1};
  std::vector<std::uint32_t> counts(counted.num_words());
  device_.download(counts.data(), words, counts.size() * sizeof(std::uint32_t));
  std::vector<std::uint32_t> bases;
  bases.reserve(static_cast<std::size_t>(count));
  for (std::size_t at = 0; at < counts.size(); at += static_cast<std::size_t>(word_stride)) {
    bases.push_back(counts[at]);
  }
  counted.base = filled(bases);
  if (word_stride == 1) {
    zeroed_by_reset_.push_back({words, counts.size() * sizeof(std::uint32_t)});
  } else {  // word by word: what lies between them is the user's
    for (std::int64_t t = 0; t < count; ++t) {
      zeroed_by_reset_.push_back({words + t * word_stride, sizeof(std::uint32_t)});
    }
  }
  return counted;
}

std::uint32_t* SyncMemory::words(std::int64_t count) {
  return filled(std::vector<std::uint32_t>(static_cast<std::size_t>(count), 0));
}

const void* SyncMemory::table_bytes(std::span<const std::byte> bytes) {
  std::string content(reinterpret_cast<const char*>(bytes.data()), bytes.size());
  if (const auto known = tables_.find(content); known != tables_.end()) return known->second;
  std::byte* piece = take(bytes.size());
  if (!bytes.empty()) device_.upload(piece, bytes.data(), bytes.size());
  return tables_.emplace(std::move(content), piece).first->second;
}

void SyncMemory::reset() {
  for (const Region& region : zeroed_by_reset_) device_.fill(region.words, 0, region.bytes);
}

}  // namespace tileweave
