#include "bench/baselines/graph_recorder.cuh"

#include <map>
#include <utility>

#include "tileweave/core/error.h"
#include "tileweave/runtime/cuda/cuda_status.cuh"
#include "tileweave/runtime/cuda/kernel_parameters.cuh"
#include "tileweave/runtime/loader.h"

namespace tileweave::bench {

GraphRecorder::GraphRecorder(Device& device)
    : device_(dynamic_cast<CudaDevice&>(device)), state_(device, RunOptions{}) {}

GraphRecorder::~GraphRecorder() {
  if (executable_ != nullptr) cudaGraphExecDestroy(executable_);
}

void GraphRecorder::add(const TensorTable& tensors, NodeSpec node) {
  measure_resources(node, device_);
  const auto id = static_cast<NodeId>(launches_.size());
  const NodeSync sync = state_.make_node(node, tensors);
  Launch launch;
  launch.node = id;
  launch.name = node.name;
  launch.kernel = &device_.kernels().find(node.kernel);
  launch.num_blocks = blocks_of(node);
  launch.num_works = node.num_works;
  launch.resources = node.resources;

  Addresses addresses;
  for (const OperandSpec& operand : node.operands) {
    void* address = tensors[operand.tensor].spec.address;
    if (address == nullptr) {
      throw Error("record `" + node.name + "`", "tensors that have an address",
                  "none for `" + tensors[operand.tensor].spec.name + "`");
    }
    addresses.operands.push_back(address);
  }
  if (node.scratch_bytes > 0) {
    scratch_.emplace_back(device_, node.scratch_bytes);
    addresses.scratch = scratch_.back().at();
  }
  if (node.make_args) launch.args = node.make_args(addresses);
  std::uint32_t flags = SyncHeader::kProgrammaticProducer;
  if (id > 0) flags |= SyncHeader::kProgrammaticConsumer;
  if (launch.kernel->num_sync_slots > 0) {
    launch.context = state_.context({.node = id,
                                     .spec = &node,
                                     .live = std::vector<bool>(node.operands.size(), false),
                                     .flags = flags},
                                    sync, tensors, {});
    // Counters that blocks share go on from run to run, so their base has to follow.
    if (sync.counter.words != nullptr) {
      updates_.push_back({sync.counter.base, sync.counter_targets, sync.counter_target,
                          static_cast<std::int32_t>(sync.counter.bases), sync.counter.base_stride});
    }
  }
  launches_.push_back(std::move(launch));
}

void GraphRecorder::add(const std::string& name, std::function<void(cudaStream_t)> call) {
  Launch launch;
  launch.node = static_cast<NodeId>(launches_.size());
  launch.name = name;
  launch.call = [call = std::move(call)](NativeStream stream) {
    call(static_cast<cudaStream_t>(stream));
  };
  launches_.push_back(std::move(launch));
}

void GraphRecorder::launch(const Launch& launch, cudaStream_t stream) {
  if (launch.call != nullptr) return launch.call(stream);
  const LoadedKernel& kernel = device_.loader().load(*launch.kernel);
  KernelParameters parameters(launch, kernel);
  cudaLaunchAttribute attribute{};
  attribute.id = cudaLaunchAttributeProgrammaticStreamSerialization;
  attribute.val.programmaticStreamSerializationAllowed = 1;
  const bool programmatic =
      launch.node > 0 && !launch.context.empty() && kernel.waits_for_grid_dependency;
  cudaLaunchConfig_t config{};
  config.gridDim = dim3(static_cast<unsigned int>(launch.num_blocks));
  config.blockDim = dim3(static_cast<unsigned int>(launch.resources.threads));
  config.dynamicSmemBytes = dynamic_shared_bytes(kernel, launch.resources);
  config.stream = stream;
  config.attrs = &attribute;
  config.numAttrs = programmatic ? 1 : 0;
  const cudaError_t status = cudaLaunchKernelExC(&config, kernel.function, parameters.pointers());
  if (status != cudaSuccess) throw_cuda_error(status, "launch `" + launch.name + "`");
}

void GraphRecorder::record(cudaStream_t stream) {
  if (!updates_.empty()) {
    launches_.push_back(state_.base_update(static_cast<NodeId>(launches_.size()), updates_));
  }
  for (const Launch& one : launches_) {
    if (one.kernel != nullptr) device_.loader().load(*one.kernel);
  }
  check_cuda(cudaStreamBeginCapture(stream, cudaStreamCaptureModeThreadLocal), "begin a capture");
  cudaGraph_t graph = nullptr;
  try {
    for (const Launch& one : launches_) launch(one, stream);
  } catch (...) {
    if (cudaStreamEndCapture(stream, &graph) == cudaSuccess && graph != nullptr) {
      cudaGraphDestroy(graph);
    }
    cudaGetLastError();
    throw;
  }
  check_cuda(cudaStreamEndCapture(stream, &graph), "end a capture");
  cudaError_t status = cudaGraphGetNodes(graph, nullptr, &num_graph_nodes_);
  if (status == cudaSuccess) status = cudaGraphInstantiate(&executable_, graph, 0);
  cudaGraphDestroy(graph);
  check_cuda(status, "make a graph executable");
  check_cuda(cudaGraphUpload(executable_, stream), "upload a graph");
  check_cuda(cudaStreamSynchronize(stream), "upload a graph");
}

void GraphRecorder::replay(cudaStream_t stream) const {
  check_cuda(cudaGraphLaunch(executable_, stream), "replay a graph");
}

}  // namespace tileweave::bench
