// `tileweave generate`: continues prompts or token ids, all of them as one batch.
#pragma once

#include <cstdint>
#include <ostream>
#include <string>
#include <vector>

#include "cli/model_choice.h"
#include "cli/output_form.h"
#include "tileweave/kernels/sampling/sampling_params.h"
#include "tileweave/models/generator.h"

namespace tileweave::cli {

enum class PromptForm : std::uint8_t { kText, kChat };
enum class StopAtEos : std::uint8_t { kYes, kIgnore };

struct GenerateOptions {
  ModelChoice choice;
  std::vector<std::string> prompts;  // or
  std::vector<std::string> ids;      // "1,2,3"
  PromptForm form_of_prompt = PromptForm::kText;
  std::string system;  // with kChat: the system message
  std::int64_t max_new_tokens = 128;
  SamplingParams sampling = {.temperature = 0};
  StopAtEos eos = StopAtEos::kYes;
  std::string timeline;  // HTML of the last decode step; empty: none
  std::string trace;     // the same as a Perfetto trace
  OutputForm form = OutputForm::kTable;
};

/// Returns the exit status: 130 when Ctrl-C ended the reply, whose tokens so far are printed.
int generate_text(const GenerateOptions& options, std::ostream& out, std::ostream& err);

/// "12 prompt tokens, first token after 80 ms, 64 new tokens, 31.2 tokens/s".
std::string times_text(const GenerateTimes& times);

}  // namespace tileweave::cli
