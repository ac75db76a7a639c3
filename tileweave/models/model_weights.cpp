#include "tileweave/models/model_weights.h"

#include <algorithm>
#include <cstring>
#include <initializer_list>
#include <string>
#include <utility>

#include "tileweave/core/error.h"
#include "tileweave/kernels/rope/rope_frequencies.h"
#include "tileweave/models/checkpoint/expected_tensors.h"

namespace tileweave {
namespace {

constexpr std::size_t kUploadBytes = 16 << 20;  // between two words about progress

Shape shape_of(const StoredTensor& tensor) {
  return tensor.shape.size() == 1 ? Shape{tensor.shape[0]}
                                  : Shape{tensor.shape[0], tensor.shape[1]};
}

std::size_t bytes_of(const Weight& weight) {
  return static_cast<std::size_t>(weight.shape.volume()) * size_of(weight.dtype);
}

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

class Loader {
 public:
  Loader(Device& device, const Checkpoint& checkpoint, const LoadProgress& progress)
      : device_(device), checkpoint_(checkpoint), progress_(progress) {}

  ModelWeights load(const ModelConfig& config) {
    weights_.embedding = stacked({"model.embed_tokens.weight"});
    for (std::int64_t layer = 0; layer < config.num_layers; ++layer) {
      weights_.layers.push_back(load_layer("model.layers." + std::to_string(layer) + "."));
    }
    weights_.final_norm = stacked({"model.norm.weight"});
    weights_.head = config.tie_word_embeddings ? weights_.embedding : stacked({"lm_head.weight"});
    weights_.inv_freq = inv_freq(config);
    return std::move(weights_);
  }

 private:
  LayerWeights load_layer(const std::string& at) {
    const std::string attention = at + "self_attn.";
    const std::string mlp = at + "mlp.";
    return {.attention_norm = stacked({at + "input_layernorm.weight"}),
            .qkv = stacked({attention + "q_proj.weight", attention + "k_proj.weight",
                            attention + "v_proj.weight"}),
            .qkv_bias = stacked(
                {attention + "q_proj.bias", attention + "k_proj.bias", attention + "v_proj.bias"}),
            .q_norm = stacked({attention + "q_norm.weight"}),
            .k_norm = stacked({attention + "k_norm.weight"}),
            .o = stacked({attention + "o_proj.weight"}),
            .o_bias = stacked({attention + "o_proj.bias"}),
            .mlp_norm = stacked({at + "post_attention_layernorm.weight"}),
            .gate_up = stacked({mlp + "gate_proj.weight", mlp + "up_proj.weight"}),
            .gate_up_bias = stacked({mlp + "gate_proj.bias", mlp + "up_proj.bias"}),
            .down = stacked({mlp + "down_proj.weight"}),
            .down_bias = stacked({mlp + "down_proj.bias"})};
  }

  /// The tensors one below the other; a weight that is not there if the checkpoint has none of
  /// them (require_expected_tensors has seen that those which must be there are).
  Weight stacked(const std::vector<std::string>& names) {
    const StoredTensor* first = checkpoint_.find(names[0]);
    if (first == nullptr) return {};
    Weight weight{.shape = shape_of(*first), .dtype = dtype_of(*first)};
    std::size_t bytes = first->bytes.size();
    for (std::size_t i = 1; i < names.size(); ++i) {
      const StoredTensor& tensor = *checkpoint_.find(names[i]);
      if (dtype_of(tensor) != weight.dtype) {
        throw Error("load " + tensor.file,
                    "`" + names[0] + "` and `" + names[i] + "` to have one dtype",
                    first->dtype_name + " and " + tensor.dtype_name);
      }
      weight.shape[0] += tensor.shape[0];
      bytes += tensor.bytes.size();
    }
    std::byte* at = allocate(bytes);
    weight.address = at;
    for (const std::string& name : names) {
      const StoredTensor& tensor = *checkpoint_.find(name);
      const std::span<const std::byte> from = tensor.bytes;
      for (std::size_t done = 0; done < from.size(); done += kUploadBytes) {
        const std::size_t count = std::min(kUploadBytes, from.size() - done);
        require_numbers(from.subspan(done, count), tensor);
        device_.upload(at + done, from.data() + done, count);
        bytes_done_ += count;
        if (progress_ != nullptr) progress_(bytes_done_, checkpoint_.total_bytes());
      }
      at += from.size();
    }
    return weight;
  }

  Weight inv_freq(const ModelConfig& config) {
    const RopeConfig& rope = config.rope;
    const std::vector<float> values =
        rope_inv_freq({.head_dim = config.head_dim,
                       .theta = rope.theta,
                       .scaling = rope.type == RopeType::kLlama3   ? RopeScaling::kLlama3
                                  : rope.type == RopeType::kLinear ? RopeScaling::kLinear
                                                                   : RopeScaling::kDefault,
                       .factor = rope.factor,
                       .low_freq_factor = rope.low_freq_factor,
                       .high_freq_factor = rope.high_freq_factor,
                       .original_max_position_embeddings =
                           static_cast<double>(rope.original_max_position_embeddings)});
    std::byte* at = allocate(values.size() * sizeof(float));
    device_.upload(at, values.data(), values.size() * sizeof(float));
    return {.address = at, .shape = {static_cast<std::int64_t>(values.size())}};
  }

  std::byte* allocate(std::size_t bytes) {
    weights_.memory.emplace_back(device_, bytes);
    weights_.bytes += bytes;
    return weights_.memory.back().at();
  }

  Device& device_;
  const Checkpoint& checkpoint_;
  const LoadProgress& progress_;
  ModelWeights weights_;
  std::size_t bytes_done_ = 0;
};

}  // namespace

std::size_t ModelWeights::bytes_per_step() const {
  const bool tied = head.address == embedding.address;
  return bytes - (tied ? 0 : bytes_of(embedding));
}

ModelWeights load_weights(Device& device, const Checkpoint& checkpoint, const ModelConfig& config,
                          const LoadProgress& progress) {
  require_expected_tensors(config, checkpoint);
  return Loader(device, checkpoint, progress).load(config);
}

ModelWeights described_weights(const ModelConfig& config, DType dtype) {
  ModelWeights weights;
  std::uintptr_t next = 256;  // addresses that nothing reads
  const auto weight = [&](std::initializer_list<std::int64_t> sizes) {
    void* nowhere = reinterpret_cast<void*>(next);  // NOLINT(performance-no-int-to-ptr)
    Weight w{.address = nowhere, .dtype = dtype};
    w.shape =
        sizes.size() == 1 ? Shape{*sizes.begin()} : Shape{*sizes.begin(), *(sizes.begin() + 1)};
    next += (bytes_of(w) + 255) / 256 * 256;
    weights.bytes += bytes_of(w);
    return w;
  };
  const std::int64_t hidden = config.hidden_size;
  const std::int64_t inner = config.intermediate_size;
  const std::int64_t q_columns = config.num_heads * config.head_dim;
  const std::int64_t qkv_columns = q_columns + 2 * config.num_kv_heads * config.head_dim;
  weights.embedding = weight({config.vocab_size, hidden});
  for (std::int64_t layer = 0; layer < config.num_layers; ++layer) {
    LayerWeights w{.attention_norm = weight({hidden}),
                   .qkv = weight({qkv_columns, hidden}),
                   .o = weight({hidden, q_columns}),
                   .mlp_norm = weight({hidden}),
                   .gate_up = weight({2 * inner, hidden}),
                   .down = weight({hidden, inner})};
    if (config.attention_bias) {
      w.qkv_bias = weight({qkv_columns});
      w.o_bias = weight({hidden});
    }
    if (config.mlp_bias) {
      w.gate_up_bias = weight({2 * inner});
      w.down_bias = weight({hidden});
    }
    if (config.has_qk_norm()) {
      w.q_norm = weight({config.head_dim});
      w.k_norm = weight({config.head_dim});
    }
    weights.layers.push_back(w);
  }
  weights.final_norm = weight({hidden});
  weights.head =
      config.tie_word_embeddings ? weights.embedding : weight({config.vocab_size, hidden});
  weights.inv_freq = weight({config.head_dim / 2});
  weights.inv_freq.dtype = DType::kF32;
  return weights;
}

}  // namespace tileweave
