#include "cli/trace_model.h"

#include <fmt/format.h>

#include <vector>

#include "cli/command_line.h"
#include "cli/open_model.h"
#include "cli/trace_files.h"
#include "tileweave/core/error.h"
#include "tileweave/trace/exposed_time.h"

namespace tileweave::cli {
namespace {

constexpr std::int64_t kSteps = 3;  // the last one is shown

std::string table_of(const ExposedTime& time) {
  std::string table = fmt::format("{:<24} {:>6} {:>7} {:>12} {:>12} {:>12}\n", "operator", "nodes",
                                  "tiles", "exposed us", "waiting us", "busy us");
  for (const OperatorTime& op : time.ranks.at(0).operators) {
    table += fmt::format("{:<24} {:>6} {:>7} {:>12.1f} {:>12.1f} {:>12.1f}\n", op.op, op.nodes,
                         op.tiles, static_cast<double>(op.exposed) / 1e3,
                         static_cast<double>(op.waiting) / 1e3, static_cast<double>(op.busy) / 1e3);
  }
  return table +
         fmt::format("one step takes {:.1f} us\n", static_cast<double>(time.makespan) / 1e3);
}

Json json_of(const ExposedTime& time) {
  Json operators = Json::array();
  for (const OperatorTime& op : time.ranks.at(0).operators) {
    operators.push_back({{"op", op.op},
                         {"nodes", op.nodes},
                         {"tiles", op.tiles},
                         {"exposed_ns", op.exposed},
                         {"waiting_ns", op.waiting},
                         {"busy_ns", op.busy}});
  }
  return operators;
}

}  // namespace

int trace_model(const TraceOptions& options, std::ostream& out, std::ostream& err) {
  require(options.batch >= 1 && options.context >= 1, "trace a step",
          "a batch and a context of at least 1");
  check_trace_paths(options.timeline, options.trace);
  const std::int64_t tokens = options.context + kSteps;
  DecoderOptions limits{.max_tokens = tokens, .cache_tokens = options.batch * (tokens + 16)};
  limits.run.tracing = Tracing::kOn;
  LoadedModel model =
      load_model(options.choice, read_description(options.choice.model), limits, err);
  Decoder& decoder = *model.decoder;
  std::vector<std::int32_t> next(static_cast<std::size_t>(options.batch), 0);
  std::vector<KvCache::SequenceId> sequences;
  const std::vector<std::int32_t> prompt(static_cast<std::size_t>(options.context), 0);
  for (std::int64_t s = 0; s < options.batch; ++s) {
    sequences.push_back(decoder.add_sequence());
    prefill(decoder, sequences.back(), prompt);
  }
  for (std::int64_t i = 0; i < kSteps; ++i) next = decode_step(decoder, sequences, next);
  const Trace& trace = decoder.last_trace();
  write_step_trace(trace, "one decode step of " + model.description.directory, options.timeline,
                   options.trace, err);
  const ExposedTime time = exposed_time(trace);
  if (options.form == OutputForm::kJson) {
    out << to_text({{"verb", "trace"},
                    {"mode", name_of(options.choice.mode)},
                    {"device", model.device->name()},
                    {"clock", trace.clock},
                    {"timeline", options.timeline},
                    {"trace", options.trace},
                    {"makespan_ns", time.makespan},
                    {"operators", json_of(time)}});
  } else {
    out << table_of(time);
  }
  return kSuccess;
}

}  // namespace tileweave::cli
