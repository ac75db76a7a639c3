// SmPartition: a green context that owns some SMs of a GPU, and makes streams confined to them.
//
// The driver gives SMs in groups (8 on sm_90), so at least as many as asked for come. Partitions
// promise nothing about concurrency; verify() runs on the SMs that were granted. Streams must be
// destroyed before the partition.
#pragma once

#include <cuda.h>
#include <cuda_runtime.h>

namespace tileweave {

class SmPartition {
 public:
  /// Throws Error when the driver knows no green contexts or refuses the split.
  SmPartition(int device_index, int num_sms);
  ~SmPartition();
  SmPartition(const SmPartition&) = delete;
  SmPartition& operator=(const SmPartition&) = delete;

  int num_sms() const { return num_sms_; }
  cudaStream_t create_stream() const;

 private:
  CUgreenCtx context_ = nullptr;
  int num_sms_ = 0;
};

/// SMs that the driver hands out together.
inline constexpr int kSmGroup = 8;

}  // namespace tileweave
