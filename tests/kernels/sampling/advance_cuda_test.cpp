// The decode loop's step on a GPU, with ring and count in memory that host and GPU share.
#include "tests/kernels/sampling/advance_chain.h"

namespace tileweave {
namespace {

TEST(AdvanceCuda, AChainOfRunsDecodesWithoutTheHost) {
  const auto device = open_cuda_device();
  add_sampling(*device);
  expect_advances_in_every_mode(
      *device, [&](const AdvanceArgs& args) { return make_advance(*device, args); });
}

}  // namespace
}  // namespace tileweave
