#include "cli/logits.h"

#include <fmt/format.h>

#include <algorithm>
#include <fstream>
#include <functional>
#include <span>
#include <vector>

#include "cli/command_line.h"
#include "cli/interrupt.h"
#include "cli/open_model.h"
#include "cli/progress_bar.h"
#include "cli/trace_files.h"
#include "tileweave/core/coord.h"
#include "tileweave/core/error.h"
#include "tileweave/models/checkpoint/safetensors.h"

namespace tileweave::cli {
namespace {

using Ids = std::vector<std::int32_t>;

/// Takes the logits of some rows; false: no more are wanted.
using RowSink = std::function<bool(std::span<const float>)>;

std::vector<Ids> read_ids_file(const std::string& path) {
  std::ifstream file(path);
  require(file.is_open(), "read --ids-file", "a readable file", path);
  std::vector<Ids> sequences;
  for (std::string line; std::getline(file, line);) {
    sequences.push_back(parse_ids(line, fmt::format("line {} of {}", sequences.size() + 1, path)));
  }
  require(!sequences.empty(), "read --ids-file", "a sequence of ids in every line",
          "none in " + path);
  return sequences;
}

std::vector<Ids> sequences_of(const LogitsOptions& options, const ModelDescription& files) {
  if (!options.ids.empty()) return {options.ids};
  if (!options.ids_file.empty()) return read_ids_file(options.ids_file);
  return {open_tokenizer(files.directory).encode(options.prompt, SpecialTokens::kAdd)};
}

std::int64_t longest(std::span<const Ids> sequences) {
  std::size_t length = 0;
  for (const Ids& ids : sequences) length = std::max(length, ids.size());
  return static_cast<std::int64_t>(length);
}

/// A sequence as a prompt, in steps of as many rows as the decoder takes.
bool prompt_logits(Decoder& decoder, std::span<const std::int32_t> ids, const RowSink& sink) {
  const auto sequence = decoder.add_sequence();
  const auto rows = static_cast<std::size_t>(decoder.options().max_rows);
  bool go_on = true;
  for (std::size_t at = 0; go_on && at < ids.size(); at += rows) {
    go_on = sink(decoder
                     .step({.parts = {{sequence, ids.subspan(at, std::min(rows, ids.size() - at))}},
                            .head = Head::kLogits,
                            .outputs = OutputRows::kEvery})
                     .logits);
  }
  decoder.remove_sequence(sequence);
  return go_on;
}

/// Sequences side by side, a step for every position.
bool decode_logits(Decoder& decoder, std::span<const Ids> group, const RowSink& sink) {
  std::vector<KvCache::SequenceId> sequences;
  for (std::size_t i = 0; i < group.size(); ++i) sequences.push_back(decoder.add_sequence());
  bool go_on = true;
  const auto length = static_cast<std::size_t>(longest(group));
  for (std::size_t at = 0; go_on && at < length; ++at) {
    StepRequest request{.parts = {}, .head = Head::kLogits, .outputs = OutputRows::kEvery};
    for (std::size_t i = 0; i < group.size(); ++i) {
      if (at < group[i].size()) {
        request.parts.push_back({sequences[i], std::span(group[i]).subspan(at, 1)});
      }
    }
    go_on = sink(decoder.step(request).logits);
  }
  for (const KvCache::SequenceId sequence : sequences) decoder.remove_sequence(sequence);
  return go_on;
}

bool all_logits(Decoder& decoder, std::span<const Ids> sequences, std::int64_t side_by_side,
                const RowSink& sink) {
  const auto most = static_cast<std::size_t>(std::max<std::int64_t>(1, side_by_side));
  for (std::size_t at = 0; at < sequences.size(); at += most) {
    const auto group = sequences.subspan(at, std::min(most, sequences.size() - at));
    if (!(side_by_side > 0 ? decode_logits(decoder, group, sink)
                           : prompt_logits(decoder, group[0], sink))) {
      return false;
    }
  }
  return true;
}

}  // namespace

int write_logits(const LogitsOptions& options, std::ostream& out, std::ostream& err) {
  const ModelDescription files = read_description(options.choice.model);
  const std::vector<Ids> sequences = sequences_of(options, files);
  std::int64_t tokens = 0;
  for (const Ids& ids : sequences) {
    require(!ids.empty(), "compute logits", "at least one token", "an empty prompt");
    require_in_vocabulary(ids, files.config);
    tokens += static_cast<std::int64_t>(ids.size());
  }
  const std::int64_t length = longest(sequences);
  if (length > files.config.max_position_embeddings) {
    throw Error(
        "compute logits",
        fmt::format("at most {} tokens, the model's limit", files.config.max_position_embeddings),
        std::to_string(length));
  }
  if (!is_pipe(options.out)) require_writable(options.out);
  const std::int64_t at_once = std::min(std::max<std::int64_t>(1, options.side_by_side),
                                        static_cast<std::int64_t>(sequences.size()));
  DecoderOptions limits{.max_tokens = length, .max_rows = options.rows_per_step};
  limits.cache_tokens = at_once * ceil_div(length, limits.page_size) * limits.page_size;
  LoadedModel model = load_model(options.choice, files, limits, err);
  const std::int64_t vocabulary = files.config.vocab_size;
  const CaughtInterrupt interrupt;
  {
    SafetensorsStream file(options.out, "logits", DType::kF32, {tokens, vocabulary});
    ProgressBar bar(err, "computing");
    std::size_t done = 0;
    const bool complete = all_logits(
        *model.decoder, sequences, options.side_by_side, [&](std::span<const float> rows) {
          file.write(std::as_bytes(rows));
          done += rows.size_bytes();
          bar.update(done, static_cast<std::size_t>(tokens * vocabulary) * sizeof(float));
          return !interrupt.happened();
        });
    if (!complete) return kInterrupted;
    file.commit();
  }
  if (options.form == OutputForm::kJson) {
    Json json = {{"verb", "logits"},
                 {"out", options.out},
                 {"sequences", sequences.size()},
                 {"shape", {tokens, vocabulary}},
                 {"device", model.device->name()},
                 {"mode", name_of(options.choice.mode)}};
    if (options.ids_file.empty()) json["ids"] = sequences[0];
    out << to_text(json);
  } else {
    out << fmt::format("logits ({}, {}) F32 written to {}\n", tokens, vocabulary, options.out);
  }
  return kSuccess;
}

}  // namespace tileweave::cli
