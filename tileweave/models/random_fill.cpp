#include "tileweave/models/random_fill.h"

namespace tileweave {

void fill_random_on(Device& device, BFloat16* to, const RandomFill& fill) {
  if (device.name() == "cuda") return fill_random_cuda(to, fill);
  for (std::int64_t i = 0; i < fill.count; ++i) to[i] = random_element(fill, fill.first + i);
}

}  // namespace tileweave
