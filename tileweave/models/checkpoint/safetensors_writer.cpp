#include <algorithm>
#include <array>
#include <nlohmann/json.hpp>
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

void check(const std::string& path, const TensorToWrite& tensor) {
  const std::string operation = "write tensor " + in_quotes(tensor.name) + " to " + path;
  const bool is_name =
      tensor.name != "__metadata__" && valid_utf8_prefix(tensor.name) == tensor.name.size();
  if (!is_name) throw Error(operation, "a UTF-8 name other than __metadata__");
  std::size_t size = size_of(tensor.dtype);
  bool fits = true;
  for (const std::int64_t extent : tensor.shape) {
    fits = fits && extent >= 0 && !__builtin_mul_overflow(size, extent, &size);
  }
  if (!fits || size != tensor.bytes.size()) {
    throw Error(operation,
                "the bytes of shape " + shape_text(tensor.shape) + " and dtype " +
                    stored_name(tensor.dtype),
                std::to_string(tensor.bytes.size()) + " bytes");
  }
}

std::string header_of(std::span<const TensorToWrite* const> tensors,
                      const std::map<std::string, std::string>& metadata) {
  nlohmann::ordered_json header = nlohmann::ordered_json::object();
  if (!metadata.empty()) header["__metadata__"] = metadata;
  std::size_t begin = 0;
  for (const TensorToWrite* tensor : tensors) {
    const std::size_t end = begin + tensor->bytes.size();
    header[tensor->name] = {{"dtype", stored_name(tensor->dtype)},
                            {"shape", tensor->shape},
                            {"data_offsets", {begin, end}}};
    begin = end;
  }
  std::string text = header.dump();
  text.resize((text.size() + kAlignment - 1) / kAlignment * kAlignment, ' ');
  return text;
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
  const std::string header = header_of(order, metadata);
  std::array<char, kAlignment> length{};
  for (std::size_t i = 0; i < length.size(); ++i) {
    length[i] = static_cast<char>((std::uint64_t{header.size()} >> (8 * i)) & 0xff);
  }
  AtomicFile file(path);
  file.write(std::string_view(length.data(), length.size()));
  file.write(header);
  for (const TensorToWrite* tensor : order) file.write(tensor->bytes);
  file.commit();
}

}  // namespace tileweave
