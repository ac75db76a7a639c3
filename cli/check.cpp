#include "cli/check.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <string>

#include "cli/command_line.h"
#include "cli/open_model.h"
#include "tileweave/core/error.h"
#include "tileweave/models/dense_model.h"
#include "tileweave/plan/verify.h"

namespace tileweave::cli {
namespace {

std::string edge_text(const EdgeReport& edge) {
  return edge.kind == EdgeKind::kTile ? fmt::format("{}, {}, ground {}", name_of(edge.kind),
                                                    name_of(edge.start), name_of(edge.ground))
                                      : name_of(edge.kind);
}

}  // namespace

int check(const CheckOptions& options, std::ostream& out, std::ostream& err) {
  const ModelDescription description = read_description(options.choice.model);
  const ModelConfig& config = description.config;
  require(options.batch >= 1 && options.rows >= 0, "check a plan", "a batch of at least 1");
  const std::int64_t rows = bucket_of(std::max(options.rows, options.batch));
  const StepShape shape{.rows = rows,
                        .sequences = bucket_of(options.batch),
                        .outputs = options.rows == 0 ? rows : bucket_of(options.batch),
                        .decode = options.rows == 0};
  const std::unique_ptr<Device> device = open_model_device(options.choice, config, err);
  const DecoderOptions limits = resolved(
      {.max_tokens = std::min<std::int64_t>(config.max_position_embeddings, rows)}, config);
  const NumericForm form = numeric_form(device->name());
  const Granularity granularity = granularity_of(options.choice, *device);
  const WideProducts wide = wide_products_of(options.choice, *device);
  const KvCache cache(*device, cache_shape(limits, config, form));
  const ModelWeights weights = described_weights(config, config.dtype.value_or(DType::kBF16),
                                                 weight_form(form, granularity, wide));
  ChosenKnobs chosen;
  const std::unique_ptr<TuneCache> tuned = open_tuned(options.choice, err);
  if (!options.choice.knobs.empty()) {
    chosen = {read_knobs(options.choice.knobs), KnobsSource::kGiven};
  } else {
    chosen = choose_knobs(*device,
                          {.config = &config,
                           .granularity = granularity,
                           .rows = rows,
                           .tokens = limits.max_tokens,
                           .wide_products = wide},
                          shape, tuned.get());
    if (options.choice.num_streams > 0) chosen.knobs.num_streams = options.choice.num_streams;
  }
  StepBuilder builder({.config = &config,
                       .weights = &weights,
                       .cache = &cache,
                       .max_pages = cache.shape().num_pages,
                       .limits = device->limits(),
                       .num_streams = kUsualStreams,
                       .granularity = granularity,
                       .form = form,
                       .wide_products = wide},
                      shape, chosen.knobs);
  dense_step(builder);
  const Verdict verdict = verify(builder.plan(), {.device = device->limits()});
  std::map<std::string, std::int64_t> kinds;
  for (const EdgeReport& edge : verdict.edges) ++kinds[edge_text(edge)];

  if (options.form == OutputForm::kJson) {
    Json faults = Json::array();
    for (const Fault& fault : verdict.faults) {
      faults.push_back({{"kind", name_of(fault.kind)}, {"sentence", fault.sentence}});
    }
    Json edges = Json::array();
    for (const EdgeReport& edge : verdict.edges) {
      const std::vector<NodeSpec>& nodes = builder.plan().nodes();
      edges.push_back({{"from", nodes[static_cast<std::size_t>(edge.from)].name},
                       {"to", nodes[static_cast<std::size_t>(edge.to)].name},
                       {"tensor", builder.tensors()[edge.tensor].spec.name},
                       {"requested", name_of(edge.requested)},
                       {"kind", name_of(edge.kind)},
                       {"start", name_of(edge.start)},
                       {"ground", name_of(edge.ground)},
                       {"why", edge.why}});
    }
    out << to_text({{"verb", "check"},
                    {"ok", verdict.ok()},
                    {"granularity", name_of(granularity)},
                    {"knobs", name_of(chosen.source)},
                    {"rows", rows},
                    {"nodes", builder.plan().nodes().size()},
                    {"downgrades", verdict.num_downgrades()},
                    {"edge_counts", kinds},
                    {"faults", faults},
                    {"edges", edges}});
  } else {
    out << verdict.table(builder.plan());
    out << fmt::format("\n{} nodes, {} rows, {} edges, {} downgraded\n",
                       builder.plan().nodes().size(), rows, verdict.edges.size(),
                       verdict.num_downgrades());
    for (const auto& [kind, count] : kinds) out << fmt::format("{:6} {}\n", count, kind);
  }
  if (verdict.ok()) return kSuccess;
  if (options.form == OutputForm::kJson) return kFailure;
  throw_if_faulty(verdict, builder.plan());
  return kFailure;
}

}  // namespace tileweave::cli
