// Text forms of the small value types, for error sentences and reports. Host only.
#pragma once

#include <string>

#include "tileweave/core/coord.h"

namespace tileweave {

/// "(2, 0)".
std::string to_string(const Coord& coord);
/// "[0:64, 128:256]".
std::string to_string(const Box& box);
/// "1.5 GiB", "640 B".
std::string human_bytes(std::uint64_t bytes);

}  // namespace tileweave
