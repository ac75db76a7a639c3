// The verbs that take a language model: info, generate, chat, logits, tokenize, check, trace, tune.
// Only their options are defined here; what they do is in the file of each.
#pragma once

#include "cli/verb_host.h"

namespace tileweave::cli {

void add_model_verbs(VerbHost& host);

}  // namespace tileweave::cli
