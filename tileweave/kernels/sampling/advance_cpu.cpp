// Advance on the emulated device: on the thread that takes the call.
#include <atomic>

#include "tileweave/kernels/sampling/advance.h"

namespace tileweave {

std::function<void(NativeStream)> make_advance_cpu(const AdvanceArgs& args) {
  check_advance_args(args);
  return [args](NativeStream /*stream*/) {
    const std::uint32_t step = *args.step;
    for (std::int64_t row = 0; row < args.rows; ++row) advance_row(args, step, row);
    std::atomic_ref(*args.step).store(step + 1, std::memory_order_release);
    if (args.published != nullptr) {
      std::atomic_ref(*args.published).store(step + 1, std::memory_order_release);
    }
  };
}

}  // namespace tileweave
