// Reading the goldens of this folder's data.
#pragma once

#include <chrono>
#include <fstream>
#include <nlohmann/json.hpp>
#include <sstream>
#include <stdexcept>
#include <string>

namespace tileweave {

// Keys keep their order: templates loop over them.
using Golden = nlohmann::ordered_json;

inline std::string data_text(const std::string& name) {
  std::ifstream file(std::string(TW_DATA_DIR) + "/" + name, std::ios::binary);
  if (!file) throw std::runtime_error("no golden file " + name);
  std::ostringstream text;
  text << file.rdbuf();
  return std::move(text).str();
}

inline Golden data_json(const std::string& name) {
  return Golden::parse(data_text(name));
}

// The time at which the goldens were made.
inline std::chrono::local_seconds golden_time() {
  using namespace std::chrono_literals;
  return std::chrono::local_days(std::chrono::year(2025) / 6 / 9) + 15h + 1min + 1s;
}

}  // namespace tileweave
