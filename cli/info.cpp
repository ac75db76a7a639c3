#include "cli/info.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <vector>

#include "cli/command_line.h"
#include "cli/open_model.h"
#include "cli/progress_bar.h"
#include "tileweave/core/error.h"
#include "tileweave/models/checkpoint/expected_tensors.h"
#include "tileweave/models/checkpoint/model_directory.h"

namespace tileweave::cli {
namespace {

std::string rope_text(const RopeConfig& rope) {
  std::string text = fmt::format("{}, theta {:g}", name_of(rope.type), rope.theta);
  if (rope.type != RopeType::kDefault) text += fmt::format(", factor {:g}", rope.factor);
  return text;
}

/// Bytes per stored element type, from the headers alone.
std::map<std::string, std::uint64_t> bytes_by_dtype(const Checkpoint& checkpoint) {
  std::map<std::string, std::uint64_t> bytes;
  for (const std::string& name : checkpoint.names()) {
    const StoredTensor& tensor = *checkpoint.find(name);
    bytes[tensor.dtype_name] += tensor.bytes.size();
  }
  return bytes;
}

}  // namespace

int info(const InfoOptions& options, std::ostream& out) {
  const ModelDescription model = read_description(options.model);
  const ModelConfig& config = model.config;
  const tileweave::ModelFiles files = find_model_files(model.directory);
  const Checkpoint checkpoint = Checkpoint::open(model.directory);
  require_expected_tensors(config, checkpoint);
  require(options.context >= 1, "estimate memory", "a context of at least one token",
          std::to_string(options.context));
  const std::int64_t context = std::min(options.context, config.max_position_embeddings);
  const DecoderOptions limits = resolved({.max_tokens = context}, config);
  const auto weights = static_cast<double>(checkpoint.total_bytes());
  const auto cache = static_cast<double>(bytes_of(cache_shape(limits, config)));
  const std::int64_t parameters = parameter_count(config);
  const std::map<std::string, std::uint64_t> dtypes = bytes_by_dtype(checkpoint);

  if (options.form == OutputForm::kJson) {
    out << to_text({{"verb", "info"},
                    {"directory", model.directory},
                    {"architecture", name_of(config.architecture)},
                    {"parameters", parameters},
                    {"layers", config.num_layers},
                    {"hidden_size", config.hidden_size},
                    {"intermediate_size", config.intermediate_size},
                    {"heads", config.num_heads},
                    {"kv_heads", config.num_kv_heads},
                    {"head_dim", config.head_dim},
                    {"vocabulary", config.vocab_size},
                    {"max_tokens", config.max_position_embeddings},
                    {"tied_head", config.tie_word_embeddings},
                    {"rope", rope_text(config.rope)},
                    {"bytes_by_dtype", dtypes},
                    {"eos_ids", eos_ids(model)},
                    {"tokenizer", files.tokenizer.has_value()},
                    {"memory",
                     {{"weights_bytes", checkpoint.total_bytes()},
                      {"context_tokens", context},
                      {"kv_cache_bytes", bytes_of(cache_shape(limits, config))}}}});
    return kSuccess;
  }
  const auto line = [&](const char* name, const std::string& value) {
    out << fmt::format("{:<14} {}\n", name, value);
  };
  std::string stored;
  for (const auto& [dtype, bytes] : dtypes) {
    stored += fmt::format("{}{} {}", stored.empty() ? "" : ", ",
                          bytes_text(static_cast<double>(bytes)), dtype);
  }
  line("model", model.directory);
  line("architecture", name_of(config.architecture));
  line("parameters", count_text(static_cast<double>(parameters)));
  line("layers", fmt::format("{}, hidden {}, intermediate {}", config.num_layers,
                             config.hidden_size, config.intermediate_size));
  line("attention",
       fmt::format("{} heads, {} KV heads, head_dim {}{}", config.num_heads, config.num_kv_heads,
                   config.head_dim, config.has_qk_norm() ? ", QK-norm" : ""));
  line("rope", rope_text(config.rope));
  line("vocabulary",
       fmt::format("{}, {} head", config.vocab_size, config.tie_word_embeddings ? "tied" : "own"));
  line("limit", fmt::format("{} tokens", config.max_position_embeddings));
  line("weights", fmt::format("{} in {} file{}", stored, checkpoint.files().size(),
                              checkpoint.files().size() == 1 ? "" : "s"));
  line("tokenizer", files.tokenizer ? "yes" : "none: token ids only");
  line("memory",
       fmt::format("{} = weights {} + KV cache {} (f32, {} tokens)", bytes_text(weights + cache),
                   bytes_text(weights), bytes_text(cache), context));
  return kSuccess;
}

}  // namespace tileweave::cli
