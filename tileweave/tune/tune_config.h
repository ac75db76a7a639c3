// tune_config: the fastest values of one kernel's knobs for given shapes, measured alone on the
// device once and kept in the cache.
//
//   const TuneTask task = skinny_gemm_task(device, {.m = 1, .n = 4096, .k = 4096});
//   const TunedConfig tuned = tune_config(device, task, cache);
//   tuned.value("stages")   // 0: the default
//
// The key of an entry is operator, shapes, element types, GPU, SMs, driver and version; an entry
// that is damaged or names knobs or values that the task does not have is a miss. Throws Error when
// the default itself cannot be measured; that a result cannot be stored is said through the cache's
// note.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <vector>

#include "tileweave/runtime/device.h"
#include "tileweave/tune/search.h"
#include "tileweave/tune/tune_cache.h"

namespace tileweave {

/// One kernel, how it may be run and how a way is measured.
struct TuneTask {
  std::string op;      // "skinny_gemm"
  std::string shapes;  // "1x4096x4096 norm"
  std::string dtypes;  // "f32 bf16 f32"
  std::vector<TuneKnob> knobs;
  TunePrepare prepare = {};
};

enum class TuneLookup : std::uint8_t {
  kFirst,  // measure where the cache has no answer
  kOnly,   // never measure: the defaults where the cache has no answer
  kNever,  // measure, whatever the cache has
};

enum class TuneSource : std::uint8_t { kDefault, kCached, kMeasured };

struct TunedConfig {
  std::map<std::string, std::int64_t> values;  // of the knobs that are not at their default
  double seconds = 0;                          // of one launch; 0: not measured
  double default_seconds = 0;
  TuneSource source = TuneSource::kDefault;
  std::vector<SearchResult::Refusal> refused = {};

  /// 0 for a knob at its default.
  std::int64_t value(const std::string& knob) const;
};

TunedConfig tune_config(const Device& device, const TuneTask& task, TuneCache& cache,
                        TuneLookup lookup = TuneLookup::kFirst, const SearchOptions& options = {});

}  // namespace tileweave
