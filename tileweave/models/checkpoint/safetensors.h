// Files of tensors in the safetensors format: an 8-byte length, a JSON header, the tensors' bytes.
//
// Safetensors::open maps the file and checks everything the header claims before any byte is used:
// the length, the JSON, known dtypes, sizes that fit their shapes, and that the tensors cover the
// bytes after the header without overlap, hole or remainder. Tensors are spans into the map: they
// live as long as the Safetensors, which may be moved. Dtypes that this library cannot compute with
// are refused by dtype_of, that is when a tensor is used. The bytes of a tensor need not be aligned
// (files of other writers). write_safetensors writes a whole file or nothing. Errors name the file.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "tileweave/core/atomic_file.h"
#include "tileweave/core/dtype.h"
#include "tileweave/core/file_map.h"

namespace tileweave {

struct StoredTensor {
  std::string name;
  std::string dtype_name;      // as in the file: "BF16"
  std::optional<DType> dtype;  // nothing when the library does not compute with it
  std::vector<std::int64_t> shape;
  std::span<const std::byte> bytes;
  std::string file;  // for errors
};

/// The element type; throws Error naming file, tensor and dtype when it is not supported.
DType dtype_of(const StoredTensor& tensor);

/// "(2, 3)"; "()" for a scalar.
std::string shape_text(std::span<const std::int64_t> shape);

class Safetensors {
 public:
  static Safetensors open(const std::string& path);
  /// The same over bytes in memory, which must outlive the result; `name` stands for the path.
  static Safetensors view(std::span<const std::byte> bytes, std::string name);

  const std::string& path() const { return path_; }
  /// In the order of their bytes.
  const std::vector<StoredTensor>& tensors() const { return tensors_; }
  /// The tensor of that name or null.
  const StoredTensor* find(std::string_view name) const;
  const std::map<std::string, std::string>& metadata() const { return metadata_; }

 private:
  explicit Safetensors(std::string path) : path_(std::move(path)) {}
  void read_header(std::span<const std::byte> bytes);

  std::string path_;
  std::optional<FileMap> file_;
  std::map<std::string, std::string> metadata_;
  std::vector<StoredTensor> tensors_;
};

struct TensorToWrite {
  std::string name;
  DType dtype = DType::kF32;
  std::vector<std::int64_t> shape;
  std::span<const std::byte> bytes;
};

/// Tensors go by element type, the largest first, then by name, so that each is aligned; the bytes
/// are those of the reference implementation. Throws Error when the path cannot be written, a name
/// stands twice or `bytes` does not fit the shape; an old file stays.
void write_safetensors(const std::string& path, std::span<const TensorToWrite> tensors,
                       const std::map<std::string, std::string>& metadata = {});

/// A file of one tensor whose bytes come piece by piece, for those too large for memory. As
/// AtomicFile has it: whole or not at all, and straight into a named pipe.
class SafetensorsStream {
 public:
  SafetensorsStream(const std::string& path, const std::string& name, DType dtype,
                    const std::vector<std::int64_t>& shape);
  void write(std::span<const std::byte> bytes);
  /// The last call; throws Error unless as many bytes came as the shape has.
  void commit();

 private:
  std::string path_;
  AtomicFile file_;
  std::size_t missing_;
};

}  // namespace tileweave
