#include "tileweave/models/checkpoint/safetensors.h"

#include <algorithm>
#include <array>
#include <limits>
#include <tuple>

#include "tileweave/core/error.h"
#include "tileweave/core/format.h"
#include "tileweave/models/json/json_file.h"

namespace tileweave {
namespace {

constexpr std::size_t kLengthBytes = 8;
constexpr std::uint64_t kMaxHeaderBytes = 100'000'000;  // the format's own limit
constexpr std::int64_t kMaxInt64 = std::numeric_limits<std::int64_t>::max();

struct StoredDType {
  const char* name;
  std::int64_t bits;
  std::optional<DType> dtype;
};

constexpr std::array<StoredDType, 22> kStoredDTypes = {{
    {"F32", 32, DType::kF32},         {"BF16", 16, DType::kBF16},
    {"F16", 16, DType::kF16},         {"I32", 32, DType::kI32},
    {"U32", 32, DType::kU32},         {"U8", 8, DType::kU8},
    {"BOOL", 8, std::nullopt},        {"I8", 8, std::nullopt},
    {"I16", 16, std::nullopt},        {"U16", 16, std::nullopt},
    {"I64", 64, std::nullopt},        {"U64", 64, std::nullopt},
    {"F64", 64, std::nullopt},        {"C64", 64, std::nullopt},
    {"F8_E4M3", 8, std::nullopt},     {"F8_E5M2", 8, std::nullopt},
    {"F8_E8M0", 8, std::nullopt},     {"F8_E4M3FNUZ", 8, std::nullopt},
    {"F8_E5M2FNUZ", 8, std::nullopt}, {"F6_E2M3", 6, std::nullopt},
    {"F6_E3M2", 6, std::nullopt},     {"F4", 4, std::nullopt},
}};

struct Entry {
  StoredTensor tensor;
  std::int64_t begin = 0;
  std::int64_t end = 0;
};

std::string bytes_text(std::int64_t count) {
  return std::to_string(count) + (count == 1 ? " byte" : " bytes");
}

// Bytes of a dense tensor; nothing when they overflow or end within a byte.
std::optional<std::int64_t> byte_size(std::span<const std::int64_t> shape, std::int64_t bits) {
  std::int64_t total = bits;
  for (const std::int64_t extent : shape) {
    if (__builtin_mul_overflow(total, extent, &total)) return std::nullopt;
  }
  if (total % 8 != 0) return std::nullopt;
  return total / 8;
}

Entry read_entry(const JsonNode& node, const std::string& name, const std::string& path,
                 std::int64_t data_size) {
  Entry entry;
  StoredTensor& tensor = entry.tensor;
  tensor.name = name;
  tensor.file = path;
  const JsonNode dtype = node.at("dtype");
  tensor.dtype_name = dtype.string();
  const auto* const stored =
      std::find_if(kStoredDTypes.begin(), kStoredDTypes.end(),
                   [&](const StoredDType& known) { return known.name == tensor.dtype_name; });
  if (stored == kStoredDTypes.end()) dtype.refuse("a dtype of the safetensors format");
  tensor.dtype = stored->dtype;

  const JsonNode shape = node.at("shape");
  for (std::size_t i = 0; i < shape.length(); ++i) {
    tensor.shape.push_back(shape.element(i).integer(0, kMaxInt64));
  }
  const JsonNode offsets = node.at("data_offsets");
  if (offsets.length() != 2) offsets.refuse("a begin and an end");
  entry.begin = offsets.element(0).integer(0, kMaxInt64);
  entry.end = offsets.element(1).integer(0, kMaxInt64);
  const std::string span =
      "[" + std::to_string(entry.begin) + ", " + std::to_string(entry.end) + "]";
  if (entry.end < entry.begin) offsets.refuse("a begin and a later end", span);
  if (entry.end > data_size) {
    offsets.refuse("within the file's " + bytes_text(data_size) + " of tensors", span);
  }
  const std::optional<std::int64_t> size = byte_size(tensor.shape, stored->bits);
  if (!size)
    shape.refuse("a shape of a whole number of bytes below 2^60",
                 shape_text(tensor.shape) + " of " + tensor.dtype_name);
  if (*size != entry.end - entry.begin) {
    offsets.refuse("the " + bytes_text(*size) + " of shape " + shape_text(tensor.shape) +
                       " and dtype " + tensor.dtype_name,
                   bytes_text(entry.end - entry.begin));
  }
  return entry;
}

// `entries` are in the order of their bytes.
void require_full_cover(std::span<const Entry> entries, std::int64_t data_size,
                        const std::string& path) {
  const std::string operation = "read " + path;
  std::int64_t covered = 0;
  for (std::size_t i = 0; i < entries.size(); ++i) {
    const Entry& entry = entries[i];
    if (entry.begin < covered) {
      throw Error(operation, "tensors that do not overlap",
                  in_quotes(entry.tensor.name) + " from byte " + std::to_string(entry.begin) +
                      ", before " + in_quotes(entries[i - 1].tensor.name) + " ends at " +
                      std::to_string(covered));
    }
    if (entry.begin > covered) {
      throw Error(operation, "tensors without holes between them",
                  bytes_text(entry.begin - covered) + " before " + in_quotes(entry.tensor.name) +
                      " that belong to none");
    }
    covered = entry.end;
  }
  if (covered != data_size) {
    throw Error(operation, "tensors that cover the file to its end",
                bytes_text(data_size - covered) + " after the last that belong to none");
  }
}

}  // namespace

DType dtype_of(const StoredTensor& tensor) {
  if (!tensor.dtype) {
    throw Error("read " + tensor.file,
                "tensor " + in_quotes(tensor.name) + " of dtype F32, BF16, F16, I32, U32 or U8",
                tensor.dtype_name);
  }
  return *tensor.dtype;
}

std::string shape_text(std::span<const std::int64_t> shape) {
  std::string text = "(";
  for (std::size_t i = 0; i < shape.size(); ++i) {
    if (i > 0) text += ", ";
    text += std::to_string(shape[i]);
  }
  return text + ")";
}

Safetensors Safetensors::open(const std::string& path) {
  FileMap file = FileMap::open(path);
  require_no_git_lfs_pointer(file);
  Safetensors result = view(file.bytes(), path);
  result.file_ = std::move(file);  // the bytes stay where they are
  return result;
}

Safetensors Safetensors::view(std::span<const std::byte> bytes, std::string name) {
  Safetensors result(std::move(name));
  result.read_header(bytes);
  return result;
}

void Safetensors::read_header(std::span<const std::byte> bytes) {
  const std::string operation = "read " + path_;
  const std::string_view text(reinterpret_cast<const char*>(bytes.data()), bytes.size());
  if (text.size() < kLengthBytes) {
    throw Error(operation, "a safetensors file, which begins with the 8-byte length of its header",
                "a file of " + bytes_text(static_cast<std::int64_t>(text.size())));
  }
  std::uint64_t header_size = 0;
  for (std::size_t i = 0; i < kLengthBytes; ++i) {
    header_size |= std::uint64_t{static_cast<unsigned char>(text[i])} << (8 * i);
  }
  if (header_size > kMaxHeaderBytes) {
    throw Error(operation, "a safetensors file with a header of at most 100000000 bytes",
                std::to_string(header_size));
  }
  if (header_size > text.size() - kLengthBytes) {
    throw Error(operation,
                "a whole file with a header of " + std::to_string(header_size) + " bytes",
                "a file cut off after " + bytes_text(static_cast<std::int64_t>(text.size())));
  }
  const std::string_view header = text.substr(kLengthBytes, header_size);
  const std::span<const std::byte> data = bytes.subspan(kLengthBytes + header_size);
  const auto data_size = static_cast<std::int64_t>(data.size());
  if (header.empty() || header[0] != '{') {
    throw Error("read the header of " + path_, "a JSON object that begins with {",
                in_quotes(header.substr(0, 1)));
  }

  const JsonFile json = JsonFile::parse(header, "the header of " + path_);
  const JsonNode root = json.root();
  std::vector<Entry> entries;
  entries.reserve(json.json().size());
  for (const auto& [name, value] : json.json().items()) {
    const JsonNode node = root.at(name);
    if (name == "__metadata__") {
      for (const auto& [key, unused] : node.require_object().json().items()) {
        metadata_[key] = node.at(key).string();
      }
    } else {
      entries.push_back(read_entry(node, name, path_, data_size));
    }
  }
  std::sort(entries.begin(), entries.end(), [](const Entry& a, const Entry& b) {
    return std::tie(a.begin, a.end, a.tensor.name) < std::tie(b.begin, b.end, b.tensor.name);
  });
  require_full_cover(entries, data_size, path_);
  tensors_.reserve(entries.size());
  for (Entry& entry : entries) {
    entry.tensor.bytes = data.subspan(static_cast<std::size_t>(entry.begin),
                                      static_cast<std::size_t>(entry.end - entry.begin));
    tensors_.push_back(std::move(entry.tensor));
  }
}

const StoredTensor* Safetensors::find(std::string_view name) const {
  const auto tensor = std::find_if(tensors_.begin(), tensors_.end(),
                                   [&](const StoredTensor& each) { return each.name == name; });
  return tensor == tensors_.end() ? nullptr : &*tensor;
}

}  // namespace tileweave
