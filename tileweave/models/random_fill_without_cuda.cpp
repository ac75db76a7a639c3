#include "tileweave/core/error.h"
#include "tileweave/models/random_fill.h"

namespace tileweave {

void fill_random_cuda(BFloat16* /*to*/, const RandomFill& /*fill*/) {
  throw Error("fill GPU memory with random numbers", "a build with CUDA", "a build without it");
}

}  // namespace tileweave
