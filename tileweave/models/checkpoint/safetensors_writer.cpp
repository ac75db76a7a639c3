#include <algorithm>
#include <array>
#include <limits>
#include <nlohmann/json.hpp>
#include <utility>

#include "tileweave/core/atomic_file.h"
#include "tileweave/core/error.h"
#include "tileweave/core/format.h"
#include "tileweave/models/checkpoint/safetensors.h"

namespace tileweave {
namespace {

constexpr std::size_t kAlignment = 8;

const char* stored_name(DType dtype) {
  switch (dtype) {
    case DType::kF32:
      return "F32";
    case DType::kBF16:
      return "BF16";
    case DType::kF16:
      return "F16";
    case DType::kI32:
      return "I32";
    case DType::kU32:
      return "U32";
    case DType::kU8:
      return "U8";
  }
  return "?";
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
    const std::size_t size_a = size_of(a->dtype), size_b = size_of(b->dtype);
    return size_a != size_b ? size_a > size_b : a->name < b->name;
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
