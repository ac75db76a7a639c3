// Advance: the step from one decode step to the next, without the host.
//
//   program.set_between_runs(make_advance(device, args));   // args: addresses of the step's inputs
//   for (...) program.run();                                // each run decodes one token per row
//
// Not a node of a plan: it writes what a run reads as constants, so it runs between runs. For every
// row that is not padding (slot -1) the token that was drawn becomes the next input, position and
// past grow by one, and the slot becomes that of the new position, or -1 where the row has no page
// for it: from then on it is padding. Each step appends a row to the ring of tokens, -1 for
// padding, and then counts the step. advance_args.h names the arrays, advance_ref.h says the same
// in plain loops. The device must outlive the call; everything in `args` must outlive its runs.
#pragma once

#include <functional>

#include "tileweave/kernels/sampling/advance_args.h"
#include "tileweave/runtime/device.h"
#include "tileweave/runtime/launch.h"

namespace tileweave {

/// On the emulated device: acts at once, on the calling thread, whatever the stream. Throws Error
/// as make_advance does.
std::function<void(NativeStream)> make_advance_cpu(const AdvanceArgs& args);
/// On a GPU: enqueues one small kernel, loaded here so that nothing is loaded while others spin. In
/// builds without CUDA: throws Error saying so.
std::function<void(NativeStream)> make_advance_cuda(Device& device, const AdvanceArgs& args);

/// Throws Error for arrays that are missing or sizes that mean nothing.
inline std::function<void(NativeStream)> make_advance(Device& device, const AdvanceArgs& args) {
  return device.name() == "cuda" ? make_advance_cuda(device, args) : make_advance_cpu(args);
}

}  // namespace tileweave
