#include "tileweave/runtime/cpu/described_device.h"

#include <cmath>
#include <cstdint>
#include <filesystem>
#include <fstream>
#include <functional>
#include <map>
#include <sstream>
#include <system_error>

#include "tileweave/core/error.h"

namespace tileweave::cpu {

namespace {

std::string trim(const std::string& text) {
  const auto first = text.find_first_not_of(" \t\r");
  if (first == std::string::npos) return {};
  return text.substr(first, text.find_last_not_of(" \t\r") - first + 1);
}

using Setter = std::function<bool(const std::string& value)>;

Setter number(double& field) {
  return [&field](const std::string& value) {
    std::istringstream in(value);
    return (in >> field) && in.eof() && std::isfinite(field) && field >= 0;
  };
}

template <class Int>
Setter integer(Int& field) {
  return [&field](const std::string& value) {
    std::istringstream in(value);
    return (in >> field) && in.eof() && field >= 0;
  };
}

std::map<std::string, Setter> setters(DescribedDevice& device) {
  DeviceLimits& limits = device.limits;
  return {
      {"name",
       [&limits](const std::string& value) {
         limits.name = value;
         return !value.empty();
       }},
      {"num_sms", integer(limits.num_sms)},
      {"threads_per_sm", integer(limits.threads_per_sm)},
      {"threads_per_block", integer(limits.threads_per_block)},
      {"blocks_per_sm", integer(limits.blocks_per_sm)},
      {"registers_per_sm", integer(limits.registers_per_sm)},
      {"registers_per_block", integer(limits.registers_per_block)},
      {"register_unit", integer(limits.register_unit)},
      {"warp_size", integer(limits.warp_size)},
      {"shared_bytes_per_sm", integer(limits.shared_bytes_per_sm)},
      {"shared_bytes_per_block", integer(limits.shared_bytes_per_block)},
      {"shared_unit", integer(limits.shared_unit)},
      {"shared_reserved", integer(limits.shared_reserved)},
      {"hardware_queues", integer(limits.hardware_queues)},
      {"start_after_completion", number(device.start_after_completion)},
      {"start_after_trigger", number(device.start_after_trigger)},
      {"start_after_begun", number(device.start_after_begun)},
      {"block_start", number(device.block_start)},
      {"signal", number(device.signal)},
      {"wait", number(device.wait)},
      {"shared_sm", number(device.shared_sm)},
  };
}

}  // namespace

DescribedDevice DescribedDevice::host() {
  DescribedDevice device = unit();
  DeviceLimits& limits = device.limits;
  limits.name = "emulated";
  limits.blocks_per_sm = 32;
  // A core runs blocks as fibers: of what a GPU's SM runs short of, only slots count.
  limits.threads_per_sm = limits.blocks_per_sm * limits.threads_per_block;
  limits.registers_per_sm = limits.blocks_per_sm * limits.registers_per_block;
  limits.shared_bytes_per_sm = limits.blocks_per_sm * (limits.shared_bytes_per_block + 1024);
  return device;
}

DescribedDevice DescribedDevice::unit() {
  DescribedDevice device;
  device.limits = {.name = "unit",
                   .num_sms = 4,
                   .blocks_per_sm = 1,
                   .shared_bytes_per_sm = 228 * 1024,
                   .shared_bytes_per_block = 227 * 1024,
                   .shared_reserved = 1024};
  return device;
}

DescribedDevice DescribedDevice::load(const std::string& path) {
  const std::string operation = "read described device '" + path + "'";
  // A pipe or a device might never end.
  std::error_code error;
  const bool regular = std::filesystem::is_regular_file(path, error);
  std::ifstream file(path);
  require(regular && file.is_open(), operation.c_str(), "a readable file");
  DescribedDevice device;
  std::map<std::string, Setter> missing = setters(device);
  const std::map<std::string, Setter> known = missing;
  std::string line;
  for (int at = 1; std::getline(file, line); ++at) {
    const std::string text = trim(line.substr(0, line.find('#')));
    if (text.empty()) continue;
    const std::string where = "line " + std::to_string(at) + ": '" + text + "'";
    const auto equals = text.find('=');
    require(equals != std::string::npos, operation.c_str(), "`key = value`", where);
    const auto key = known.find(trim(text.substr(0, equals)));
    require(key != known.end(), operation.c_str(), "a known key", where);
    require(missing.erase(key->first) == 1, operation.c_str(), "each key once", where);
    require(key->second(trim(text.substr(equals + 1))), operation.c_str(),
            "a value that is not negative", where);
  }
  require(missing.empty(), operation.c_str(), "every constant",
          missing.empty() ? "" : "no `" + missing.begin()->first + "`");
  require(device.limits.num_sms >= 1, operation.c_str(), "at least one SM");
  return device;
}

}  // namespace tileweave::cpu
