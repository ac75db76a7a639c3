// A picture of rows per rank before and after a plan, as a self-contained SVG.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace tileweave::cli {

struct RankBars {
  std::int64_t before = 0;
  std::int64_t after_own = 0;       // rows of experts that the rank owns
  std::int64_t after_replicas = 0;  // rows of its replicas
};

struct LoadPicture {
  std::string title;
  std::string workload;
  std::string plan;
  std::vector<RankBars> ranks;
};

std::string to_svg(const LoadPicture& picture);

}  // namespace tileweave::cli
