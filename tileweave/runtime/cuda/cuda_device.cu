#include "tileweave/runtime/cuda/cuda_device.cuh"

#include <algorithm>

#include "tileweave/core/error.h"
#include "tileweave/core/format.h"
#include "tileweave/runtime/cuda/base_update_kernel.cuh"
#include "tileweave/runtime/cuda/cuda_environment.h"
#include "tileweave/runtime/cuda/cuda_launch_queue.cuh"
#include "tileweave/runtime/cuda/cuda_status.cuh"
#include "tileweave/runtime/cuda/device_limits.cuh"
#include "tileweave/runtime/cuda/relaxed_capture.cuh"
#include "tileweave/runtime/cuda/wait_kernel.cuh"

namespace tileweave {
namespace {

void check_index(int device_index) {
  int num_devices = 0;
  check_cuda(cudaGetDeviceCount(&num_devices), "open a CUDA device");
  require(num_devices > 0, "open a CUDA device", "the machine must have a GPU");
  if (device_index < 0 || device_index >= num_devices) {
    throw Error("open a CUDA device",
                "the device index must be at most " + std::to_string(num_devices - 1),
                std::to_string(device_index));
  }
  const int capability = compute_capability(device_index);
  if (capability < kOldestComputeCapability) {
    throw Error("open a CUDA device", "compute capability 8.0 or later is needed",
                std::to_string(capability / 10) + "." + std::to_string(capability % 10));
  }
}

[[noreturn]] void throw_out_of_memory(const char* what, std::size_t bytes, cudaError_t status) {
  cudaGetLastError();
  std::string got = describe(status);
  std::size_t free = 0;
  std::size_t total = 0;
  if (cudaMemGetInfo(&free, &total) == cudaSuccess) {
    got += "; " + human_bytes(free) + " of the GPU's " + human_bytes(total) + " are free";
  } else {
    cudaGetLastError();
  }
  throw Error(std::string("allocate ") + what, human_bytes(bytes) + " must be available", got);
}

}  // namespace

CudaDevice::CudaDevice(const CudaOptions& options) : index_(options.device_index) {
  prepare_cuda_environment();
  check_index(index_);
  const CurrentDevice current(index_);
  check_cuda(cudaFree(nullptr), "start CUDA on the GPU");
  limits_ = query_device_limits(index_);
  driver_ = driver_name();
  const int wanted = options.num_sms;
  if (wanted < 0 || wanted > limits_.num_sms) {
    throw Error("open part of a GPU",
                "it has " + std::to_string(limits_.num_sms) + " SMs, so 1 to as many can be had",
                std::to_string(wanted));
  }
  // A part that would be rounded up to more than there is, is the whole GPU.
  if (wanted > 0 && (wanted + kSmGroup - 1) / kSmGroup * kSmGroup <= limits_.num_sms) {
    partition_ = std::make_unique<SmPartition>(index_, wanted);
    limits_.num_sms = partition_->num_sms();
  }
  check_cuda(cudaStreamCreateWithFlags(&copies_, cudaStreamNonBlocking), "create a copy stream");
  loader_ = std::make_unique<KernelLoader>(limits_.shared_bytes_per_block);
  loader_->load("tileweave.wait_begun", wait_kernel_function());
  add_base_update_cuda(kernels());
}

CudaDevice::~CudaDevice() {
  if (copies_ != nullptr) cudaStreamDestroy(copies_);
}

cudaStream_t CudaDevice::create_stream() const {
  if (partition_ != nullptr) return partition_->create_stream();
  cudaStream_t stream = nullptr;
  check_cuda(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking), "create a stream");
  return stream;
}

void* CudaDevice::allocate(std::size_t bytes) {
  const CurrentDevice current(index_);
  const RelaxedCapture relaxed;  // a stream's launches may be captured by the user
  void* pointer = nullptr;
  const cudaError_t status = cudaMalloc(&pointer, std::max<std::size_t>(bytes, 1));
  if (status != cudaSuccess) throw_out_of_memory("device memory", bytes, status);
  return pointer;
}

void CudaDevice::release(void* pointer) noexcept {
  if (cudaFree(pointer) != cudaSuccess) cudaGetLastError();
}

void* CudaDevice::allocate_shared(std::size_t bytes) {
  const CurrentDevice current(index_);
  void* pointer = nullptr;
  const cudaError_t status = cudaHostAlloc(&pointer, std::max<std::size_t>(bytes, 1),
                                           cudaHostAllocMapped | cudaHostAllocPortable);
  if (status != cudaSuccess) throw_out_of_memory("host memory shared with the GPU", bytes, status);
  return pointer;
}

void CudaDevice::release_shared(void* pointer) noexcept {
  if (cudaFreeHost(pointer) != cudaSuccess) cudaGetLastError();
}

void CudaDevice::upload(void* device, const void* host, std::size_t bytes) {
  const CurrentDevice current(index_);
  const RelaxedCapture relaxed;  // a stream's launches may be captured by the user
  check_cuda(cudaMemcpyAsync(device, host, bytes, cudaMemcpyHostToDevice, copies_),
             "copy to the GPU");
  check_cuda(cudaStreamSynchronize(copies_), "copy to the GPU");
}

void CudaDevice::download(void* host, const void* device, std::size_t bytes) const {
  const CurrentDevice current(index_);
  const RelaxedCapture relaxed;  // a stream's launches may be captured by the user
  check_cuda(cudaMemcpyAsync(host, device, bytes, cudaMemcpyDeviceToHost, copies_),
             "copy from the GPU");
  check_cuda(cudaStreamSynchronize(copies_), "copy from the GPU");
}

void CudaDevice::fill(void* device, std::uint8_t byte, std::size_t bytes) {
  const CurrentDevice current(index_);
  const RelaxedCapture relaxed;  // a stream's launches may be captured by the user
  check_cuda(cudaMemsetAsync(device, byte, bytes, copies_), "fill memory of the GPU");
  check_cuda(cudaStreamSynchronize(copies_), "fill memory of the GPU");
}

KernelResources CudaDevice::measured_resources(const KernelImpl& kernel,
                                               const KernelResources& declared) const {
  const CurrentDevice current(index_);
  const LoadedKernel& loaded = loader_->load(kernel);
  KernelResources measured = declared;
  measured.registers_per_thread = loaded.registers_per_thread;
  measured.shared_bytes = std::max(declared.shared_bytes, loaded.static_shared_bytes);
  return measured;
}

std::int32_t CudaDevice::occupancy(const KernelImpl& kernel,
                                   const KernelResources& resources) const {
  const CurrentDevice current(index_);
  const LoadedKernel& loaded = loader_->load(kernel);
  int blocks = 0;
  const cudaError_t status = cudaOccupancyMaxActiveBlocksPerMultiprocessor(
      &blocks, loaded.function, resources.threads, dynamic_shared_bytes(loaded, resources));
  if (status != cudaSuccess) {
    throw_cuda_error(status, "ask how many blocks of `" + kernel.name + "` fit an SM");
  }
  return blocks;
}

std::unique_ptr<LaunchQueue> CudaDevice::open_queue(std::int32_t num_streams) {
  if (num_streams < 1 || num_streams > limits_.hardware_queues) {
    throw Error("open a queue",
                "1 to " + std::to_string(limits_.hardware_queues) +
                    " streams, as many as the GPU has hardware queues "
                    "(CUDA_DEVICE_MAX_CONNECTIONS)",
                std::to_string(num_streams));
  }
  const CurrentDevice current(index_);
  loader_->load_all(kernels());
  return std::make_unique<CudaLaunchQueue>(*this, num_streams);
}

std::size_t dynamic_shared_bytes(const LoadedKernel& kernel, const KernelResources& resources) {
  const std::int64_t bytes = resources.shared_bytes - kernel.static_shared_bytes;
  return bytes > 0 ? static_cast<std::size_t>(bytes) : 0;
}

std::unique_ptr<Device> open_cuda_device(const CudaOptions& options) {
  return std::make_unique<CudaDevice>(options);
}

bool cuda_usable() noexcept {
  prepare_cuda_environment();
  int num_devices = 0;
  if (cudaGetDeviceCount(&num_devices) != cudaSuccess) {
    cudaGetLastError();
    return false;
  }
  for (int device = 0; device < num_devices; ++device) {
    int major = 0;
    if (cudaDeviceGetAttribute(&major, cudaDevAttrComputeCapabilityMajor, device) == cudaSuccess &&
        major * 10 >= kOldestComputeCapability) {
      return true;
    }
  }
  return false;
}

}  // namespace tileweave
