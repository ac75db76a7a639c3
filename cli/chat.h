// `tileweave chat`: a conversation on the terminal.
//
// Reads one message per line from standard input; the reply streams to standard output. Ctrl-C ends
// the reply, at the prompt it ends the conversation. Tokens of earlier turns stay in the KV cache
// as far as the new prompt begins with them.
#pragma once

#include <cstdint>
#include <istream>
#include <ostream>
#include <string>

#include "cli/model_choice.h"
#include "tileweave/kernels/sampling/sampling_params.h"

namespace tileweave::cli {

struct ChatVerbOptions {
  ModelChoice choice;
  std::string system;
  std::int64_t max_new_tokens = 512;
  std::int64_t context = 0;  // tokens of the whole conversation; 0: 4096, or what the model allows
  SamplingParams sampling = {.temperature = 0};
};

int chat(const ChatVerbOptions& options, std::istream& in, std::ostream& out, std::ostream& err);

}  // namespace tileweave::cli
