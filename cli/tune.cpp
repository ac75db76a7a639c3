#include "cli/tune.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <string>

#include "cli/command_line.h"
#include "cli/open_model.h"
#include "cli/progress_bar.h"
#include "cli/version.h"
#include "tileweave/core/error.h"
#include "tileweave/models/plan_tuner.h"

namespace tileweave::cli {
namespace {

constexpr std::int64_t kPage = 16;

const char* name_of(TuneSource source) {
  switch (source) {
    case TuneSource::kDefault:
      return "default";
    case TuneSource::kCached:
      return "cached";
    case TuneSource::kMeasured:
      return "measured";
  }
  return "?";
}

using Products = std::map<StepOp, TunedConfig>;

/// The products of a step alone; one that cannot be measured is left at its default.
Products tune_products(const TuneVerbOptions& options, LoadedModel& model, std::int64_t rows,
                       std::ostream& err) {
  Products tuned;
  if (options.products == ProductTuning::kNo) return tuned;
  const std::map<StepOp, SkinnyGemmProblem> problems = step_products(*model.decoder, rows);
  ProgressBar bar(err, "tuning products");
  std::size_t done = 0;
  for (const auto& [op, problem] : problems) {
    try {
      tuned[op] = tune_config(
          *model.device, skinny_gemm_task(*model.device, problem), *model.tuned,
          options.products == ProductTuning::kAgain ? TuneLookup::kNever : TuneLookup::kFirst,
          {.budget_seconds = static_cast<double>(options.budget)});
    } catch (const Error& error) {
      err << fmt::format("tileweave: note: product `{}` is not tuned; {}\n", tileweave::name_of(op),
                         error.what());
    }
    bar.update(++done, problems.size());
  }
  return tuned;
}

/// As an arm of its own, where any of them gains.
void add_products(const Products& products, std::vector<PlanArm>& arms) {
  PlanArm arm{.name = "tuned products", .knobs = arms[0].knobs};
  for (const auto& [op, tuned] : products) {
    arm.knobs = with_cut(arm.knobs, op, skinny_gemm_knobs(tuned));
  }
  if (arm.knobs != arms[0].knobs) arms.push_back(arm);
}

Json to_json(const Products& products) {
  Json json = Json::array();
  for (const auto& [op, tuned] : products) {
    json.push_back({{"op", tileweave::name_of(op)},
                    {"source", name_of(tuned.source)},
                    {"us", tuned.seconds * 1e6},
                    {"default_us", tuned.default_seconds * 1e6},
                    {"knobs", tuned.values},
                    {"refused", tuned.refused.size()}});
  }
  return json;
}

std::string table_of(const Products& products, std::int64_t rows) {
  std::string table;
  for (const auto& [op, tuned] : products) {
    std::string values;
    for (const auto& [name, value] : tuned.values) values += fmt::format(" {} {}", name, value);
    table += fmt::format("  {:<8} {} row{}, alone: {:.2f} us, default {:.2f} us, {}:{}\n",
                         tileweave::name_of(op), rows, rows == 1 ? "" : "s", tuned.seconds * 1e6,
                         tuned.default_seconds * 1e6, name_of(tuned.source),
                         values.empty() ? " default" : values);
  }
  return table;
}

Json to_json(const PlanTuning& tuning) {
  Json arms = Json::array();
  for (const PlanArm& arm : tuning.arms) {
    Json json = {{"arm", arm.name}};
    if (arm.failure.empty()) {
      json["ms_per_step"] = arm.seconds * 1e3;
      json["gain_over_default"] = tuning.arms[0].seconds / arm.seconds;
    } else {
      json["failure"] = arm.failure;
    }
    json["knobs"] = Json::parse(tileweave::to_json(arm.knobs));
    arms.push_back(json);
  }
  return arms;
}

std::string table_of(const PlanTuning& tuning) {
  std::string table;
  for (std::size_t i = 0; i < tuning.arms.size(); ++i) {
    const PlanArm& arm = tuning.arms[i];
    const char* mark = i == tuning.chosen ? "*" : " ";
    table += arm.failure.empty()
                 ? fmt::format("{} {:<18} {:>10.4f} {:>8.3f}\n", mark, arm.name, arm.seconds * 1e3,
                               tuning.arms[0].seconds / arm.seconds)
                 : fmt::format("{} {:<18} {}\n", mark, arm.name, arm.failure);
  }
  return table;
}

}  // namespace

int tune_model(const TuneVerbOptions& options, std::ostream& out, std::ostream& err) {
  const std::int64_t batch = *std::max_element(options.batches.begin(), options.batches.end());
  const std::int64_t context = *std::max_element(options.contexts.begin(), options.contexts.end());
  const auto tuning_of = [&](std::int64_t rows, std::int64_t tokens) {
    return PlanTuneOptions{
        .rows = rows, .context = tokens, .steps = options.steps, .repeat = options.repeat};
  };
  const std::int64_t tokens = tokens_of(tuning_of(batch, context));
  LoadedModel model = load_model(options.choice, read_description(options.choice.model),
                                 {.page_size = kPage,
                                  .max_tokens = tokens,
                                  .cache_tokens = batch * (ceil_div(tokens, kPage) + 1) * kPage},
                                 err);
  Decoder& decoder = *model.decoder;
  const Granularity granularity = decoder.options().granularity;
  Json cases = Json::array();
  std::string table;
  for (const std::int64_t b : options.batches) {
    const StepShape shape = decode_shape(b);
    const Products products = tune_products(options, model, shape.rows, err);
    table += table_of(products, shape.rows);
    for (const std::int64_t c : options.contexts) {
      std::vector<PlanArm> arms = plan_arms(decoder, shape);
      add_products(products, arms);
      PlanTuneOptions how = tuning_of(b, c);
      ProgressBar bar(err, "measuring");
      how.progress = [&](std::size_t done, std::size_t in_all) { bar.update(done, in_all); };
      const PlanTuning tuning = tune_plan(decoder, std::move(arms), how);
      const PlanArm& chosen = tuning.arms[tuning.chosen];
      const std::string path = keep_plan(*model.device,
                                         {.config = &decoder.config(),
                                          .granularity = granularity,
                                          .rows = shape.rows,
                                          .tokens = tokens_of(how)},
                                         {.arm = chosen.name,
                                          .knobs = chosen.knobs,
                                          .seconds_per_step = chosen.seconds,
                                          .default_seconds_per_step = tuning.arms[0].seconds},
                                         *model.tuned);
      table += fmt::format("batch {}, context {}    ms/step     gain\n{}", b, c, table_of(tuning));
      table += path.empty() ? "  not kept\n" : fmt::format("  kept in {}\n", path);
      cases.push_back({{"batch", b},
                       {"context", c},
                       {"products", to_json(products)},
                       {"arms", to_json(tuning)},
                       {"chosen", chosen.name},
                       {"stored_in", path.empty() ? Json(nullptr) : Json(path)}});
    }
  }
  if (options.form == OutputForm::kJson) {
    out << to_text({{"verb", "tune"},
                    {"version", kVersion},
                    {"model", model.description.directory},
                    {"device", model.device->name()},
                    {"machine", model.device->limits().name},
                    {"sms", model.device->limits().num_sms},
                    {"driver", model.device->driver()},
                    {"granularity", tileweave::name_of(granularity)},
                    {"steps", options.steps},
                    {"repeat", options.repeat},
                    {"cases", cases}});
    return kSuccess;
  }
  out << fmt::format("{} on {}, {} SMs, {}; medians of {} runs of {} steps; *: chosen\n{}",
                     model.description.directory, model.device->limits().name,
                     model.device->limits().num_sms, tileweave::name_of(granularity),
                     options.repeat, options.steps, table);
  return kSuccess;
}

}  // namespace tileweave::cli
