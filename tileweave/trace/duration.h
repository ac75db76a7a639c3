// Times as people read them.
//
// Pure functions. Nanoseconds are scaled to ns, us, ms or s with at least four figures; units of a
// virtual clock are printed as whole numbers, with their unit.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace tileweave {

/// "3.214 ms", "812 ns", "4 ticks". The micro sign is printed as U+00B5.
std::string format_duration(std::uint64_t duration, std::string_view time_unit);

/// "12.3 %" of `whole`; "–" if `whole` is 0.
std::string format_share(double part, double whole);

/// "12,345".
std::string format_count(std::uint64_t count);

}  // namespace tileweave
