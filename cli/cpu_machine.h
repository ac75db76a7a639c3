// What `tileweave doctor` finds out about the emulated device on this machine.
//
// Runs two small matrix products in all three ways of running blocks and compares with sums made
// here. A self-check that fails is a finding; nothing is thrown for it.
#pragma once

#include <vector>

#include "cli/findings.h"

namespace tileweave::cli {

std::vector<Finding> inspect_cpu();

}  // namespace tileweave::cli
