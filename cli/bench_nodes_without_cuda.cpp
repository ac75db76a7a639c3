#include "cli/bench_nodes.h"
#include "tileweave/core/error.h"

namespace tileweave::cli {

void add_bench_kernels(Device& /*device*/) {
  throw Error("measure on a GPU", "this build has no CUDA; configure it with TILEWEAVE_CUDA=ON");
}

}  // namespace tileweave::cli
