// HopReport: what `tileweave bench sync` measured, for either device.
//
// A *hop* is one dependent kernel of a chain: all its blocks wait for one semaphore word of the
// kernel before, and arrive on their own. An *arm* is one way of running the same chain.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "cli/output_form.h"

namespace tileweave::cli {

struct HopArm {
  std::string name = {};                // "serial", "tile launch_completion"
  std::vector<double> us_per_hop = {};  // one per repetition, in the order of measuring
  std::string remark = {};  // what a reader must know, such as a downgrade; may be empty
};

struct HopReport {
  std::string device;   // "cpu" or "cuda"
  std::string machine;  // what ran it, in words
  std::string notice;   // how to read the numbers; may be empty
  std::int64_t blocks = 0;
  std::int64_t threads = 0;  // of a block
  std::int64_t hops = 0;     // of a chain
  std::vector<HopArm> arms = {};
};

/// The middle of `values`; the mean of the two middle ones where their number is even.
double median(std::vector<double> values);

/// Remark on an arm `downgrades` of whose edges ran as full dependencies; empty for none.
std::string downgrade_remark(std::int64_t downgrades, std::int64_t hops);

std::string hop_table(const HopReport& report);
Json hop_json(const HopReport& report);

}  // namespace tileweave::cli
