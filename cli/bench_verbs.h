// The verbs `bench decode`, `prefill`, `gemm` and `attention`. Only their options are defined here;
// what they do is in the file of each.
#pragma once

#include "cli/verb_host.h"

namespace tileweave::cli {

/// After the verb `bench`.
void add_bench_verbs(VerbHost& host);

}  // namespace tileweave::cli
