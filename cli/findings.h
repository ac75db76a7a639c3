// Findings of `tileweave doctor`: what was found, whether it needs attention, what it means for
// plans. *Failed* is a self-check of the installation itself. Plain values; the device-specific
// parts make them, the verb prints them.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "cli/output_form.h"

namespace tileweave::cli {

enum class FindingStatus : std::uint8_t { kOk, kAttention, kFailed };

constexpr const char* name_of(FindingStatus status) {
  switch (status) {
    case FindingStatus::kOk:
      return "ok";
    case FindingStatus::kAttention:
      return "attention";
    case FindingStatus::kFailed:
      return "failed";
  }
  return "?";
}

struct Finding {
  std::string device;  // "cpu" or "cuda"
  std::string name;
  FindingStatus status = FindingStatus::kOk;
  std::string found;
  std::string means;  // for plans; may be empty
};

/// Grouped by device, in the order given; what a finding means stands below it.
std::string findings_table(const std::vector<Finding>& findings);
Json findings_json(const std::vector<Finding>& findings);

}  // namespace tileweave::cli
