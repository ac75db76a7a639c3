#include <string>

#include "tileweave/core/error.h"
#include "tileweave/runtime/cuda/driver_entry.cuh"
#include "tileweave/runtime/cuda/sm_partition.cuh"

namespace tileweave {
namespace {

template <class Function>
Function green_entry(const char* symbol, unsigned int version) {
  const auto function = find_driver_entry<Function>(symbol, version);
  if (function == nullptr) {
    throw Error("open part of a GPU", "the driver must support green contexts",
                std::string("a driver without ") + symbol);
  }
  return function;
}

}  // namespace

SmPartition::SmPartition(int device_index, int num_sms) {
  const auto get_resource =
      green_entry<PFN_cuDeviceGetDevResource_v12040>("cuDeviceGetDevResource", 12040);
  const auto split =
      green_entry<PFN_cuDevSmResourceSplitByCount_v12040>("cuDevSmResourceSplitByCount", 12040);
  const auto describe_resource =
      green_entry<PFN_cuDevResourceGenerateDesc_v12040>("cuDevResourceGenerateDesc", 12040);
  const auto create = green_entry<PFN_cuGreenCtxCreate_v12040>("cuGreenCtxCreate", 12040);

  // A runtime device index is the driver's ordinal.
  CUdevResource all{};
  check_driver(get_resource(device_index, &all, CU_DEV_RESOURCE_TYPE_SM), "ask for the GPU's SMs");
  CUdevResource part{};
  CUdevResource rest{};
  unsigned int num_groups = 1;
  check_driver(split(&part, &num_groups, &all, &rest, 0, static_cast<unsigned int>(num_sms)),
               "split the GPU's SMs");
  require(num_groups == 1, "split the GPU's SMs", "one group of the wanted size must come out",
          std::to_string(num_groups) + " groups for " + std::to_string(num_sms) + " SMs");
  CUdevResourceDesc description{};
  check_driver(describe_resource(&description, &part, 1), "describe a part of the GPU");
  check_driver(create(&context_, description, device_index, CU_GREEN_CTX_DEFAULT_STREAM),
               "create a green context");
  num_sms_ = static_cast<int>(part.sm.smCount);
}

SmPartition::~SmPartition() {
  const auto destroy = find_driver_entry<PFN_cuGreenCtxDestroy_v12040>("cuGreenCtxDestroy", 12040);
  if (destroy != nullptr) destroy(context_);
}

cudaStream_t SmPartition::create_stream() const {
  const auto create =
      green_entry<PFN_cuGreenCtxStreamCreate_v12050>("cuGreenCtxStreamCreate", 12050);
  CUstream stream = nullptr;
  check_driver(create(&stream, context_, CU_STREAM_NON_BLOCKING, /*priority=*/0),
               "create a stream on a part of the GPU");
  return stream;
}

}  // namespace tileweave
