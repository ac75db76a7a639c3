// What the verbs of language models share: files of a model, and the model loaded on a device.
//
// Everything throws Error with one sentence naming the file and the thing.
#pragma once

#include <memory>
#include <optional>
#include <ostream>
#include <string>
#include <vector>

#include "cli/model_choice.h"
#include "tileweave/models/chat/chat_template.h"
#include "tileweave/models/checkpoint/checkpoint.h"
#include "tileweave/models/checkpoint/config.h"
#include "tileweave/models/decoder.h"
#include "tileweave/models/tokenizer/tokenizer.h"

namespace tileweave::cli {

/// Where a model's numbers come from.
enum class WeightSource : std::uint8_t { kFiles, kRandom };

struct ModelDescription {
  std::string directory;  // or the name of a preset
  WeightSource weights = WeightSource::kFiles;
  ModelConfig config = {};
  GenerationConfig generation = {};
};

/// Reads config.json and generation_config.json, or takes a preset's configuration.
ModelDescription read_description(const std::string& model);

/// The tokenizer of a directory; throws Error when there is none.
Tokenizer open_tokenizer(const std::string& directory);
/// Nothing where the directory has no tokenizer.json.
std::optional<Tokenizer> find_tokenizer(const std::string& directory);

/// "cpu" or "cuda", opened. A GPU that cannot run the model is passed over with a note on `err`;
/// where it was asked for, Error.
std::unique_ptr<Device> open_model_device(const ModelChoice& choice, const ModelConfig& config,
                                          std::ostream& err);

/// What was asked for, or what is usual on the device.
Granularity granularity_of(const ModelChoice& choice, const Device& device);

/// What was asked for; throws Error where only a GPU has that.
WideProducts wide_products_of(const ModelChoice& choice, const Device& device);

/// What `tileweave tune` measured; says on `err` what there is no use of.
std::unique_ptr<TuneCache> open_tuned(const ModelChoice& choice, std::ostream& err);

struct LoadedModel {
  ModelDescription description;
  std::unique_ptr<TuneCache> tuned = nullptr;
  std::unique_ptr<Device> device = nullptr;
  std::unique_ptr<Decoder> decoder = nullptr;
  double load_seconds = 0;
};

/// `options`: max_tokens and cache_tokens as the verb needs them; the rest comes from `choice`.
LoadedModel load_model(const ModelChoice& choice, ModelDescription description,
                       DecoderOptions options, std::ostream& err);

/// Ids that end a reply.
std::vector<std::int32_t> eos_ids(const ModelDescription& description);

/// What a chat template needs to know of the model's tokenizer.
ChatOptions chat_options(const std::string& directory);

/// Token ids of "1,2,3"; throws Error naming what is no id and where they stand.
std::vector<std::int32_t> parse_ids(const std::string& text, const std::string& from = "--ids");

}  // namespace tileweave::cli
