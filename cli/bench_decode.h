// `tileweave bench decode`: what a decode step takes, `serial` against overlapped.
//
// On the CPU: tokens per second of one shape. On a GPU: a table over granularities, batches and
// contexts (bench_decode_gpu.cpp).
#pragma once

#include <cstdint>
#include <ostream>
#include <string>
#include <vector>

#include "cli/model_choice.h"
#include "cli/output_form.h"

namespace tileweave::cli {

/// Whether an arm that is not always there is measured as well.
enum class ExtraArm : std::uint8_t { kNo, kYes };

/// Steps from a context of so many tokens on.
struct Growth {
  std::int64_t context = 1;
  std::int64_t steps = 1;
};

struct BenchDecodeOptions {
  ModelChoice choice;  // its mode and granularity are not used
  std::vector<std::int64_t> batches = {1};
  std::vector<std::int64_t> contexts = {};      // tokens before the first measured step
  std::vector<Granularity> granularities = {};  // none: ops on the CPU, both on a GPU
  std::int64_t steps = 0;                       // per measurement; 0: 16 on the CPU, 64 on a GPU
  std::int64_t repeat = 10;                     // measurements of each arm
  // On a GPU:
  std::vector<Growth> growths = {};     // beside the contexts; neither: a context of 128
  std::vector<std::string> knobs = {};  // files: of `overlap`, then one arm each; none: as any verb
  std::string serial_knobs = {};        // of the arm `serial`; empty: as the others
  std::string json_file = {};
  ExtraArm tile_arm = ExtraArm::kNo;           // every edge a tile edge
  ExtraArm without_attention = ExtraArm::kNo;  // `overlap` with a copy of q in place of attention
  OutputForm form = OutputForm::kTable;
};

int bench_decode(const BenchDecodeOptions& options, std::ostream& out, std::ostream& err);

/// "1,2,4"; throws Error naming what is no number from 1 to `most`.
std::vector<std::int64_t> parse_counts(const std::string& text, std::int64_t most);
/// "128+64,1024+1024": contexts and steps.
std::vector<Growth> parse_growths(const std::string& text, std::int64_t most);
/// "ops,stages".
std::vector<Granularity> parse_granularities(const std::string& text);

}  // namespace tileweave::cli
