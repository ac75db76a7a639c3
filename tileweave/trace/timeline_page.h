// The parts that timeline_html.cpp puts together: style sheet, script, and the data it draws.
//
// Private to the HTML timeline. The style and the script are constants without any text of a trace;
// the data is JSON that is safe inside a script element. The names of its members are spelt in
// timeline_data.cpp and read in timeline_script.cpp. Times in it count from the run start.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

#include "tileweave/trace/node_colors.h"
#include "tileweave/trace/trace.h"

namespace tileweave {

std::string_view timeline_style();
std::string_view timeline_script();

/// The JSON of element #trace-data, for a checked trace.
std::string timeline_data(const Trace& trace, const NodeColors& colors, std::size_t max_arrows);

}  // namespace tileweave
