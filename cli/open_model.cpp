#include "cli/open_model.h"

#include <fmt/format.h>

#include <charconv>
#include <chrono>
#include <filesystem>
#include <utility>

#include "cli/progress_bar.h"
#include "tileweave/core/cache_file.h"
#include "tileweave/core/error.h"
#include "tileweave/kernels/vendor/vendor_gemm.h"
#include "tileweave/models/checkpoint/model_directory.h"
#include "tileweave/models/dense_model.h"
#include "tileweave/models/presets.h"

namespace tileweave::cli {
namespace {

constexpr std::uint64_t kPresetSeed = 1;

/// Throws Error with need and have, before anything is loaded, where a GPU has no room for it all.
void require_room(Device& device, const ModelDescription& description,
                  const DecoderOptions& options) {
  const NumericForm form = numeric_form(device.name());
  if (form.matrices == MatrixLayout::kRowMajor) return;  // the CPU's pages come as they are touched
  const ModelConfig& config = description.config;
  const std::size_t weights =
      described_weights(config, DType::kBF16,
                        weight_form(form, options.granularity, options.wide_products))
          .bytes;
  const std::size_t cache = bytes_of(cache_shape(resolved(options, config, form), config, form));
  try {
    const DeviceMemory all(device, weights + cache);
  } catch (const Error& error) {
    throw Error("load " + description.directory,
                fmt::format("{} for weights and {} for the KV cache",
                            bytes_text(static_cast<double>(weights)),
                            bytes_text(static_cast<double>(cache))),
                error.got());
  }
}

}  // namespace

ModelDescription read_description(const std::string& model) {
  if (const std::optional<ModelConfig> preset = preset_config(model);
      preset && !std::filesystem::exists(model)) {
    return {.directory = model, .weights = WeightSource::kRandom, .config = *preset};
  }
  ModelDescription description{.directory = resolve_model(model)};
  const std::filesystem::path folder(description.directory);
  description.config = read_config((folder / "config.json").string());
  description.generation = read_generation_config(
      find_model_files(description.directory).generation_config, description.config);
  return description;
}

std::optional<Tokenizer> find_tokenizer(const std::string& directory) {
  const std::filesystem::path file = std::filesystem::path(directory) / "tokenizer.json";
  if (!std::filesystem::exists(file)) return std::nullopt;
  return Tokenizer::open(file.string());
}

Tokenizer open_tokenizer(const std::string& directory) {
  return Tokenizer::open((std::filesystem::path(directory) / "tokenizer.json").string());
}

std::unique_ptr<Device> open_model_device(const ModelChoice& choice, const ModelConfig& config,
                                          std::ostream& err) {
  const std::string why_not = why_not_on_gpu(config);
  if (choice.device == "cuda") require(why_not.empty(), "run the model on a GPU", why_not.c_str());
  if (choice.device.empty() && cuda_usable()) {
    try {
      require(why_not.empty(), "run the model on a GPU", why_not.c_str());
      std::unique_ptr<Device> device = open_cuda_device();
      add_dense_model_kernels(*device);
      return device;
    } catch (const Error& error) {
      err << fmt::format("tileweave: note: the model runs on the CPU; {}\n", error.what());
    }
  }
  return open_device(choice.device.empty() ? "cpu" : choice.device);
}

Granularity granularity_of(const ModelChoice& choice, const Device& device) {
  return choice.granularity.value_or(usual_granularity(numeric_form(device.name())));
}

WideProducts wide_products_of(const ModelChoice& choice, const Device& device) {
  const bool packed = numeric_form(device.name()).matrices == MatrixLayout::kPacked;
  require(choice.wide_products == WideProducts::kOwn || packed, "run the model",
          "a GPU for --wide-products vendor", "`" + device.name() + "`");
  return choice.wide_products;
}

std::unique_ptr<TuneCache> open_tuned(const ModelChoice& choice, std::ostream& err) {
  const auto note = [&err](const std::string& sentence) {
    err << fmt::format("tileweave: note: {}\n", sentence);
  };
  const bool used = choice.tuned == TunedUse::kYes;
  return std::make_unique<TuneCache>(used ? cache_folder(choice.cache) : "", note);
}

LoadedModel load_model(const ModelChoice& choice, ModelDescription description,
                       DecoderOptions options, std::ostream& err) {
  const auto start = std::chrono::steady_clock::now();
  LoadedModel model{.description = std::move(description)};
  options.run.mode = choice.mode;
  options.run.submit = choice.submit;
  options.num_streams = choice.num_streams;
  if (!choice.knobs.empty()) options.knobs = read_knobs(choice.knobs);
  model.tuned = open_tuned(choice, err);
  options.tuned = model.tuned.get();
  const ModelConfig& config = model.description.config;
  resolved(options, config);  // what is wrong with the limits, before files are read
  std::optional<Checkpoint> checkpoint;
  if (model.description.weights == WeightSource::kFiles) {
    checkpoint = Checkpoint::open(model.description.directory);
  }
  model.device = open_model_device(choice, config, err);
  options.granularity = granularity_of(choice, *model.device);
  options.wide_products = wide_products_of(choice, *model.device);
  if (options.wide_products == WideProducts::kVendor) vendor_gemm_library();  // before a long load
  require_room(*model.device, model.description, options);
  std::string note;
  {
    ProgressBar bar(err, "loading");
    const auto progress = [&](std::size_t done, std::size_t in_all) { bar.update(done, in_all); };
    const WeightForm form =
        weight_form(numeric_form(model.device->name()), options.granularity, options.wide_products);
    ModelWeights weights = checkpoint
                               ? load_weights(*model.device, *checkpoint, config, form, progress)
                               : random_weights(*model.device, config, kPresetSeed, form, progress);
    note = weights.note;
    model.decoder = std::make_unique<Decoder>(*model.device, config, std::move(weights), options);
  }
  if (!note.empty()) err << fmt::format("tileweave: note: {}\n", note);
  model.load_seconds =
      std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  return model;
}

std::vector<std::int32_t> eos_ids(const ModelDescription& description) {
  std::vector<std::int32_t> ids;
  for (const std::int64_t id : description.generation.eos_token_ids) {
    ids.push_back(static_cast<std::int32_t>(id));
  }
  return ids;
}

ChatOptions chat_options(const std::string& directory) {
  const ChatTokens tokens = open_chat_tokens(directory);
  ChatOptions options;
  options.bos_token = tokens.bos_token;
  options.eos_token = tokens.eos_token;
  return options;
}

std::vector<std::int32_t> parse_ids(const std::string& text, const std::string& from) {
  std::vector<std::int32_t> ids;
  const char* at = text.data();
  const char* end = at + text.size();
  while (true) {
    std::int32_t id = 0;
    const auto [next, error] = std::from_chars(at, end, id);
    if (error != std::errc() || id < 0 || (next != end && *next != ',')) {
      throw Error("read " + from, "token ids as in 1,2,3", "`" + text + "`");
    }
    ids.push_back(id);
    if (next == end) return ids;
    at = next + 1;
  }
}

}  // namespace tileweave::cli
