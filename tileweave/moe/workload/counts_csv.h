// Counts as CSV: header `rank,expert,count`, then one line per rank and expert that has rows.
//
// Pairs that are missing have no rows; a pair that stands twice, another header, a field that is no
// number: Error naming the file and the line. Blank lines and carriage returns are ignored.
#pragma once

#include <string>
#include <string_view>

#include "tileweave/moe/workload/count_matrix.h"

namespace tileweave {

struct CountsCsvOptions {
  std::int32_t num_ranks = 0;    // 0: the highest rank named, and one
  std::int32_t num_experts = 0;  // 0: the highest expert named, and one
};

CountMatrix read_counts_csv(const std::string& path, const CountsCsvOptions& options = {});
/// `name` stands for the file in errors.
CountMatrix parse_counts_csv(std::string_view text, const std::string& name,
                             const CountsCsvOptions& options = {});
std::string to_counts_csv(const CountMatrix& counts);

}  // namespace tileweave
