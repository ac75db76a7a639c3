// Names come from users and may hold any bytes; these functions make them harmless.
//
// All three first replace invalid UTF-8 by U+FFFD, one per maximal ill-formed part. Pure functions.
#pragma once

#include <string>
#include <string_view>

namespace tileweave {

/// A JSON string with its quotes, in ASCII only. '<', '>' and '&' are escaped too, so the text may
/// stand inside an HTML script element: no name can close it.
std::string json_quote(std::string_view text);

/// Text for HTML content and double-quoted attributes. Control characters become U+FFFD.
std::string html_escape(std::string_view text);

/// Valid UTF-8 without control characters (they become U+FFFD): one line of a terminal table.
std::string printable(std::string_view text);

/// Code points in a string made by `printable`: columns for aligning tables of ordinary names.
std::size_t num_code_points(std::string_view text);

}  // namespace tileweave
