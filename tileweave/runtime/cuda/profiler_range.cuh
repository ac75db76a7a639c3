// ProfilerRange: a named range of host time, shown by profilers that understand NVTX. Costs a few
// nanoseconds when no profiler is attached.
#pragma once

#include <nvtx3/nvToolsExt.h>

#include <string>

namespace tileweave {

class ProfilerRange {
 public:
  explicit ProfilerRange(const char* name) { nvtxRangePushA(name); }
  explicit ProfilerRange(const std::string& name) : ProfilerRange(name.c_str()) {}
  ~ProfilerRange() { nvtxRangePop(); }
  ProfilerRange(const ProfilerRange&) = delete;
  ProfilerRange& operator=(const ProfilerRange&) = delete;
};

}  // namespace tileweave
