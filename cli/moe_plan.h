// `tileweave moe plan`: what a planner makes of a load: rows and blocks of every rank before and
// after, replicas, predicted times; as a table, JSON and a picture.
#pragma once

#include <cstdint>
#include <optional>
#include <ostream>
#include <string>

#include "cli/moe_source.h"
#include "cli/output_form.h"
#include "tileweave/moe/planner/planner_options.h"

namespace tileweave::cli {

enum class MoePreset : std::uint8_t { kPaper, kTuned };

struct MoePlanOptions {
  MoeSource source;
  MoePreset preset = MoePreset::kTuned;
  PlanMethod method = PlanMethod::kSearches;
  PlanObjective objective = PlanObjective::kLoadOnly;
  MachineRates rates;
  std::int32_t block_rows = 128;
  std::optional<std::int32_t> slots;
  std::optional<double> lambda;  // blocks
  std::optional<PlanGate> gate;
  std::optional<double> slack_percent;
  std::string svg;
  OutputForm form = OutputForm::kTable;
};

int moe_plan(const MoePlanOptions& options, std::ostream& out, std::ostream& err);

}  // namespace tileweave::cli
