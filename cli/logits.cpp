#include "cli/logits.h"

#include <fmt/format.h>

#include <algorithm>
#include <span>
#include <vector>

#include "cli/command_line.h"
#include "cli/interrupt.h"
#include "cli/open_model.h"
#include "cli/trace_files.h"
#include "tileweave/core/error.h"
#include "tileweave/models/checkpoint/safetensors.h"

namespace tileweave::cli {
namespace {

std::vector<float> all_logits(Decoder& decoder, std::span<const std::int32_t> ids) {
  const auto sequence = decoder.add_sequence();
  std::vector<float> logits;
  const auto rows = static_cast<std::size_t>(decoder.options().max_rows);
  for (std::size_t at = 0; at < ids.size(); at += rows) {
    const StepResult step =
        decoder.step({.parts = {{sequence, ids.subspan(at, std::min(rows, ids.size() - at))}},
                      .head = Head::kLogits,
                      .outputs = OutputRows::kEvery});
    logits.insert(logits.end(), step.logits.begin(), step.logits.end());
  }
  decoder.remove_sequence(sequence);
  return logits;
}

}  // namespace

int write_logits(const LogitsOptions& options, std::ostream& out, std::ostream& err) {
  const ModelDescription files = read_description(options.choice.model);
  const std::vector<std::int32_t> ids =
      options.ids.empty()
          ? open_tokenizer(files.directory).encode(options.prompt, SpecialTokens::kAdd)
          : options.ids;
  const auto tokens = static_cast<std::int64_t>(ids.size());
  require(tokens >= 1, "compute logits", "at least one token", "an empty prompt");
  if (tokens > files.config.max_position_embeddings) {
    throw Error(
        "compute logits",
        fmt::format("at most {} tokens, the model's limit", files.config.max_position_embeddings),
        std::to_string(tokens));
  }
  require_in_vocabulary(ids, files.config);
  require_writable(options.out);
  LoadedModel model =
      load_model(options.choice, files, {.max_tokens = tokens, .max_rows = 64}, err);
  const std::vector<float> logits = all_logits(*model.decoder, ids);
  const std::int64_t vocabulary = files.config.vocab_size;
  {
    const UninterruptedSection section;
    const std::vector<TensorToWrite> tensors = {{.name = "logits",
                                                 .dtype = DType::kF32,
                                                 .shape = {tokens, vocabulary},
                                                 .bytes = std::as_bytes(std::span(logits))}};
    write_safetensors(options.out, tensors);
  }
  if (options.form == OutputForm::kJson) {
    out << to_text({{"verb", "logits"},
                    {"out", options.out},
                    {"ids", ids},
                    {"shape", {tokens, vocabulary}},
                    {"device", model.device->name()},
                    {"mode", name_of(options.choice.mode)}});
  } else {
    out << fmt::format("logits ({}, {}) F32 written to {}\n", tokens, vocabulary, options.out);
  }
  return kSuccess;
}

}  // namespace tileweave::cli
