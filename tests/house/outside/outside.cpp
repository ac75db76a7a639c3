#include <cstdio>

#include "tileweave/core/format.h"
#include "tileweave/tile/tiling.h"

int main() {
  const tileweave::Shape shape{100, 60};
  const auto target = tileweave::calc_target({32, 60}, shape, {24, 20});
  std::printf(
      "%s is met by %d kernel tiles\n", tileweave::to_string(tileweave::Coord{1, 0}).c_str(),
      static_cast<int>(target({1, 0})));  // rows 32 to 63 meet 2 of the row blocks, 3 columns
}
