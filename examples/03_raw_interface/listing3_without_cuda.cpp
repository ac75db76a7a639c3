#include "examples/03_raw_interface/listing3.h"
#include "tileweave/core/error.h"

namespace examples {

void add_row_matmul_cuda(tileweave::KernelLibrary& /*kernels*/) {
  throw tileweave::Error("add row_matmul", "a build with CUDA", "a build without it");
}

}  // namespace examples
