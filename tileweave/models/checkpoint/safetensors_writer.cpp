#include <algorithm>
#include <array>
#include <nlohmann/json.hpp>
#include <optional>
#include <utility>

#include "tileweave/core/atomic_file.h"
#include "tileweave/core/error.h"
#include "tileweave/core/format.h"
#include "tileweave/models/checkpoint/safetensors.h"

namespace tileweave {
namespace {

constexpr std::size_t kAlignment = 8;

// In the order in which the reference implementation writes them, largest elements first.
constexpr std::array<std::pair<DType, const char*>, 6> kStoredDTypes = {{{DType::kF32, "F32"},
                                                                         {DType::kU32, "U32"},
                                                                         {DType::kI32, "I32"},
                                                                         {DType::kBF16, "BF16"},
                                                                         {DType::kF16, "F16"},
                                                                         {DType::kU8, "U8"}}};

std::size_t rank_of(DType dtype) {
  std::size_t rank = 0;
  while (rank + 1 < kStoredDTypes.size() && kStoredDTypes[rank].first != dtype) ++rank;
  return rank;
}

const char* stored_name(DType dtype) {
  return kStoredDTypes[rank_of(dtype)].second;
}

/// Bytes of a tensor of that shape, nothing where no tensor can have it; throws Error for a name.
std::optional<std::size_t> shape_bytes(const std::string& path, const TensorToWrite& tensor) {
  const std::string operation = "write tensor " + in_quotes(tensor.name) + " to " + path;
  const bool is_name =
      tensor.name != "__metadata__" && valid_utf8_prefix(tensor.name) == tensor.name.size();
  if (!is_name) throw Error(operation, "a UTF-8 name other than __metadata__");
  std::size_t size = size_of(tensor.dtype);
  bool fits = true;
  for (const std::int64_t extent : tensor.shape) {
    fits = fits && extent >= 0 && !__builtin_mul_overflow(size, extent, &size);
  }
  return fits ? std::optional(size) : std::nullopt;
}

void check(const std::string& path, const TensorToWrite& tensor) {
  if (shape_bytes(path, tensor) == tensor.bytes.size()) return;
  throw Error(
      "write tensor " + in_quotes(tensor.name) + " to " + path,
      "the bytes of shape " + shape_text(tensor.shape) + " and dtype " + stored_name(tensor.dtype),
      std::to_string(tensor.bytes.size()) + " bytes");
}

struct HeaderEntry {
  const TensorToWrite* tensor;
  std::size_t bytes;
};

/// What comes before the first tensor's bytes.
std::string header_of(std::span<const HeaderEntry> entries,
                      const std::map<std::string, std::string>& metadata) {
  nlohmann::ordered_json header = nlohmann::ordered_json::object();
  if (!metadata.empty()) header["__metadata__"] = metadata;
  std::size_t begin = 0;
  for (const auto& [tensor, bytes] : entries) {
    const std::size_t end = begin + bytes;
    header[tensor->name] = {{"dtype", stored_name(tensor->dtype)},
                            {"shape", tensor->shape},
                            {"data_offsets", {begin, end}}};
    begin = end;
  }
  std::string text = header.dump();
  text.resize((text.size() + kAlignment - 1) / kAlignment * kAlignment, ' ');
  std::string length(kAlignment, '\0');
  for (std::size_t i = 0; i < length.size(); ++i) {
    length[i] = static_cast<char>((std::uint64_t{text.size()} >> (8 * i)) & 0xff);
  }
  return length + text;
}

}  // namespace

void write_safetensors(const std::string& path, std::span<const TensorToWrite> tensors,
                       const std::map<std::string, std::string>& metadata) {
  std::vector<const TensorToWrite*> order;
  for (const TensorToWrite& tensor : tensors) {
    check(path, tensor);
    order.push_back(&tensor);
  }
  std::sort(order.begin(), order.end(), [](const TensorToWrite* a, const TensorToWrite* b) {
    const std::size_t rank_a = rank_of(a->dtype), rank_b = rank_of(b->dtype);
    return rank_a != rank_b ? rank_a < rank_b : a->name < b->name;
  });
  std::map<std::string_view, int> count;
  for (const TensorToWrite* tensor : order) {
    if (++count[tensor->name] > 1) {
      throw Error("write " + path, "one tensor of each name", "two " + in_quotes(tensor->name));
    }
  }
  for (const auto& [key, value] : metadata) {
    if (valid_utf8_prefix(key) != key.size() || valid_utf8_prefix(value) != value.size()) {
      throw Error("write " + path, "metadata in UTF-8", in_quotes(key) + ": " + in_quotes(value));
    }
  }
  std::vector<HeaderEntry> entries;
  entries.reserve(order.size());
  for (const TensorToWrite* tensor : order) entries.push_back({tensor, tensor->bytes.size()});
  AtomicFile file(path);
  file.write(header_of(entries, metadata));
  for (const TensorToWrite* tensor : order) file.write(tensor->bytes);
  file.commit();
}

SafetensorsStream::SafetensorsStream(const std::string& path, const std::string& name, DType dtype,
                                     const std::vector<std::int64_t>& shape)
    : path_(path), file_(path, NamedPipe::kWriteThrough) {
  const TensorToWrite tensor{.name = name, .dtype = dtype, .shape = shape, .bytes = {}};
  const std::optional<std::size_t> bytes = shape_bytes(path, tensor);
  if (!bytes) throw Error("write " + path, "a shape that a tensor can have", shape_text(shape));
  missing_ = *bytes;
  const HeaderEntry entry{&tensor, missing_};
  file_.write(header_of({&entry, 1}, {}));
}

void SafetensorsStream::write(std::span<const std::byte> bytes) {
  if (bytes.size() > missing_) {
    throw Error("write " + path_, "no more bytes than the tensor's shape has",
                std::to_string(bytes.size() - missing_) + " more");
  }
  missing_ -= bytes.size();
  file_.write(bytes);
}

void SafetensorsStream::commit() {
  if (missing_ != 0) {
    throw Error("write " + path_, "all bytes of the tensor", std::to_string(missing_) + " fewer");
  }
  file_.commit();
}

}  // namespace tileweave
