// Version of this build, as the project's CMakeLists.txt has it.
#pragma once

namespace tileweave::cli {

inline constexpr const char* kVersion = TW_VERSION;

}  // namespace tileweave::cli
