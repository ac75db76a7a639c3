// Arguments of the kernels of bench_nodes.h, as host and GPU see them.
#pragma once

#include <cstdint>

#include "tileweave/core/dtype.h"
#include "tileweave/sync/access.h"

namespace tileweave::cli {

inline constexpr int kReadThreads = 512;
inline constexpr int kRowThreads = 512;
inline constexpr int kRowLoads = 4;  // of four columns each, per thread
inline constexpr int kRowMostColumns = kRowThreads * kRowLoads * 4;

inline constexpr const char* kReadKernel = "bench.read";
inline constexpr const char* kNextRowKernel = "bench.next_row";
inline constexpr const char* kCopyQueryKernel = "bench.copy_query";

struct ReadArgs {
  const std::byte* from;
  std::int64_t vectors;  // of 16 bytes
  std::uint32_t* never;
};

struct NextRowArgs {
  Produced<BFloat16> attended;  // null: `before` instead
  Produced<float> before;
  Stable<float> base;
  Output<float> to;
  std::int32_t attended_columns, columns;
};

struct CopyQueryArgs {
  Produced<float> qkv;   // (T, from_columns), the query first; null: `q` instead
  Produced<BFloat16> q;  // (T, from_columns)
  Output<BFloat16> to;   // (T, columns)
  std::int32_t from_columns, columns;
};

}  // namespace tileweave::cli
