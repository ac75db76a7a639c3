#include "tileweave/models/model_weights.h"

#include <algorithm>
#include <cstring>
#include <optional>
#include <span>
#include <string>
#include <utility>

#include "tileweave/core/error.h"
#include "tileweave/models/checkpoint/expected_tensors.h"
#include "tileweave/models/weight_store.h"

namespace tileweave {
namespace {

constexpr std::size_t kUploadBytes = 16 << 20;  // between two words about progress

/// Whether an element's exponent is all ones, that is NaN or infinity. The masks repeat an
/// element's exponent, lowest and highest bit through a word; the bytes need not be aligned.
bool has_no_number(std::span<const std::byte> bytes, std::uint64_t exponent, std::uint64_t lowest,
                   std::uint64_t highest) {
  std::uint64_t found = 0;
  for (std::size_t at = 0; at < bytes.size(); at += sizeof(std::uint64_t)) {
    std::uint64_t word = 0;  // and zeros after the last element
    if (bytes.size() - at >= sizeof word) {
      std::memcpy(&word, bytes.data() + at, sizeof word);
    } else {
      std::memcpy(&word, bytes.data() + at, bytes.size() - at);
    }
    // An element of `missing` is 0 where its exponent has all bits; only below a 0 borrows.
    const std::uint64_t missing = (word & exponent) ^ exponent;
    found |= (missing - lowest) & ~missing & highest;
  }
  return found != 0;
}

/// `bytes`: whole elements of the tensor.
void require_numbers(std::span<const std::byte> bytes, const StoredTensor& tensor) {
  constexpr std::uint64_t kHalves = 0x0001000100010001, kWords = 0x0000000100000001;
  const DType dtype = dtype_of(tensor);
  const std::uint64_t lanes = dtype == DType::kF32 ? kWords : kHalves;
  const std::uint64_t exponent = dtype == DType::kF32    ? 0x7f800000
                                 : dtype == DType::kBF16 ? 0x7f80
                                                         : 0x7c00;
  const std::uint64_t sign = dtype == DType::kF32 ? 0x80000000 : 0x8000;
  if (!has_no_number(bytes, exponent * lanes, lanes, sign * lanes)) return;
  throw Error("load " + tensor.file, "finite numbers in tensor `" + tensor.name + "`",
              "NaN or infinity");
}

template <class T>
void append_floats(std::span<const std::byte> bytes, std::vector<float>& to) {
  for (std::size_t at = 0; at < bytes.size(); at += sizeof(T)) {
    T value{};
    std::memcpy(&value, bytes.data() + at, sizeof value);
    to.push_back(to_float(value));
  }
}

/// Elements as floats, whatever they are stored as.
std::vector<float> floats_of(std::span<const std::byte> bytes, DType dtype) {
  std::vector<float> values;
  values.reserve(bytes.size() / size_of(dtype));
  if (dtype == DType::kF32) append_floats<float>(bytes, values);
  if (dtype == DType::kBF16) append_floats<BFloat16>(bytes, values);
  if (dtype == DType::kF16) append_floats<Float16>(bytes, values);
  return values;
}

class Loader {
 public:
  Loader(Device& device, const Checkpoint& checkpoint, const WeightForm& form,
         const LoadProgress& progress)
      : device_(device), checkpoint_(checkpoint), progress_(progress), store_(device, form) {}

  ModelWeights load(const ModelConfig& config) {
    ModelWeights weights = assemble_weights(config, store_.form(),
                                            [&](const WeightSpec& spec) { return stacked(spec); });
    if (rounded_) {
      weights.note = "matrices are stored as " + std::string(name_of(*rounded_)) +
                     " and were rounded to bf16, which this device computes with";
    }
    return finished(std::move(weights), config, device_, store_);
  }

 private:
  /// The tensors one below the other.
  Weight stacked(const WeightSpec& spec) {
    std::vector<const StoredTensor*> tensors;
    for (const std::string& name : spec.names) tensors.push_back(checkpoint_.find(name));
    const DType stored = dtype_of(*tensors[0]);
    for (std::size_t i = 1; i < tensors.size(); ++i) {
      if (dtype_of(*tensors[i]) == stored) continue;
      throw Error("load " + tensors[i]->file,
                  "`" + spec.names[0] + "` and `" + spec.names[i] + "` to have one dtype",
                  tensors[0]->dtype_name + " and " + tensors[i]->dtype_name);
    }
    const auto as = [&](DType dtype) -> PlaceRows {
      return [this, &spec, &tensors, dtype](std::int64_t first, std::int64_t count, std::byte* to) {
        const std::int64_t columns = spec.shape.num_axes == 1 ? 1 : spec.shape[1];
        std::int64_t above = 0;  // rows of the tensors before
        for (const StoredTensor* tensor : tensors) {
          const std::int64_t from = std::max(first, above);
          const std::int64_t end = std::min(first + count, above + tensor->shape[0]);
          if (from < end) {
            place(*tensor, (from - above) * columns, (end - from) * columns, dtype,
                  to + static_cast<std::size_t>((from - first) * columns) * size_of(dtype));
          }
          above += tensor->shape[0];
        }
      };
    };
    if (store_.form().matrices == MatrixLayout::kRowMajor) {
      return store_.plain(spec.shape, stored, as(stored));
    }
    const bool vector = spec.role == WeightRole::kNorm || spec.role == WeightRole::kBias;
    if (vector) {  // f32 or bf16
      const DType dtype = stored == DType::kF16 ? DType::kF32 : stored;
      return store_.plain(spec.shape, dtype, as(dtype));
    }
    if (stored != DType::kBF16) rounded_ = stored;
    if (spec.role == WeightRole::kEmbedding) {
      return store_.plain(spec.shape, DType::kBF16, as(DType::kBF16));
    }
    const bool gate_up = spec.role == WeightRole::kGateUp;
    return store_.packed(spec.shape, gate_up ? store_.form().gate_up : StripOrder::kRows,
                         as(DType::kBF16), spec.row_major);
  }

  /// Elements [first, first + count) of a tensor, as `dtype`.
  void place(const StoredTensor& tensor, std::int64_t first, std::int64_t count, DType dtype,
             std::byte* to) {
    const DType stored = dtype_of(tensor);
    const std::size_t size = size_of(stored);
    const std::span<const std::byte> from = std::span<const std::byte>(tensor.bytes)
                                                .subspan(static_cast<std::size_t>(first) * size,
                                                         static_cast<std::size_t>(count) * size);
    for (std::size_t done = 0; done < from.size(); done += kUploadBytes) {
      const std::span<const std::byte> part =
          from.subspan(done, std::min(kUploadBytes, from.size() - done));
      require_numbers(part, tensor);
      std::byte* at = to + done / size * size_of(dtype);
      if (dtype == stored) {
        device_.upload(at, part.data(), part.size());
      } else if (dtype == DType::kF32) {
        const std::vector<float> values = floats_of(part, stored);
        device_.upload(at, values.data(), values.size() * sizeof(float));
      } else {
        std::vector<BFloat16> values;
        for (const float value : floats_of(part, stored)) values.push_back(to_bfloat16(value));
        device_.upload(at, values.data(), values.size() * sizeof(BFloat16));
      }
      bytes_done_ += part.size();
      // A tied head that is packed is read a second time.
      const std::size_t in_all = checkpoint_.total_bytes();
      if (progress_ != nullptr) progress_(std::min(bytes_done_, in_all), in_all);
    }
  }

  Device& device_;
  const Checkpoint& checkpoint_;
  const LoadProgress& progress_;
  WeightStore store_;
  std::size_t bytes_done_ = 0;
  std::optional<DType> rounded_;  // what was rounded to bf16
};

}  // namespace

std::size_t bytes_of(const Weight& weight) {
  if (weight.packing) {
    return static_cast<std::size_t>(
        PackedLayout{.n = weight.shape[0], .k = weight.shape[1], .order = *weight.packing}.bytes());
  }
  return static_cast<std::size_t>(weight.shape.volume()) * size_of(weight.dtype);
}

std::size_t ModelWeights::bytes_per_step() const {
  const bool tied = head.address == embedding.address;
  return bytes - copy_bytes - (tied ? 0 : bytes_of(embedding));
}

ModelWeights load_weights(Device& device, const Checkpoint& checkpoint, const ModelConfig& config,
                          const LoadProgress& progress, Granularity granularity) {
  return load_weights(device, checkpoint, config,
                      weight_form(numeric_form(device.name()), granularity), progress);
}

ModelWeights load_weights(Device& device, const Checkpoint& checkpoint, const ModelConfig& config,
                          const WeightForm& form, const LoadProgress& progress) {
  require_expected_tensors(config, checkpoint);
  return Loader(device, checkpoint, form, progress).load(config);
}

ModelWeights described_weights(const ModelConfig& config, DType dtype, const WeightForm& form) {
  std::uintptr_t next = 256;  // addresses that nothing reads
  std::size_t bytes = 0;
  std::size_t copy_bytes = 0;
  const auto address = [&](std::size_t size) {
    auto* at = reinterpret_cast<void*>(next);  // NOLINT(performance-no-int-to-ptr)
    next += (size + 255) / 256 * 256;
    bytes += size;
    return at;
  };
  const auto add = [&](Weight w) {
    w.address = address(bytes_of(w));
    return w;
  };
  ModelWeights weights = assemble_weights(config, form, [&](const WeightSpec& spec) {
    Weight w{.shape = spec.shape, .dtype = dtype};
    if (form.matrices == MatrixLayout::kPacked) {
      w.dtype = DType::kBF16;
      if (spec.role == WeightRole::kMatrix) w.packing = StripOrder::kRows;
      if (spec.role == WeightRole::kGateUp) w.packing = form.gate_up;
      if (form.keeps_copies() && w.packing) {
        const std::size_t size = row_major_bytes(spec.shape);
        w.row_major = spec.row_major != nullptr ? spec.row_major : address(size);
        copy_bytes += spec.row_major != nullptr ? 0 : size;
      }
    }
    return add(w);
  });
  weights.inv_freq = add({.shape = {config.head_dim / 2}});
  weights.bytes = bytes;
  weights.copy_bytes = copy_bytes;
  return weights;
}

}  // namespace tileweave
