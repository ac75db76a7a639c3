// Text forms of the small value types, for error sentences and reports. Host only.
#pragma once

#include <string>
#include <string_view>

#include "tileweave/core/coord.h"

namespace tileweave {

/// "(2, 0)".
std::string to_string(const Coord& coord);
/// "[0:64, 128:256]".
std::string to_string(const Box& box);
/// "1.5 GiB", "640 B".
std::string human_bytes(std::uint64_t bytes);
/// Text of a file or a user for an error sentence: in double quotes, printable, at most about 80
/// characters; whatever is no printable ASCII and no UTF-8 stands as \xNN.
std::string in_quotes(std::string_view text);
/// Length of the longest prefix that is UTF-8 (no surrogates, no overlong forms).
std::size_t valid_utf8_prefix(std::string_view text);

}  // namespace tileweave
