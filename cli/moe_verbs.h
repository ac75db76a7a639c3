// The verbs of mixtures of experts: `moe plan` and `moe workload`. Only their options are defined
// here; what they do is in the file of each.
#pragma once

#include "cli/verb_host.h"

namespace tileweave::cli {

void add_moe_verbs(VerbHost& host);

}  // namespace tileweave::cli
