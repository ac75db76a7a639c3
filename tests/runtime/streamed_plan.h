// A random plan's nodes launched on an AsyncStream, and the comparison with the host's evaluation.
#pragma once

#include <gtest/gtest.h>

#include <map>
#include <vector>

#include "tests/runtime/random_plan.h"
#include "tileweave/runtime/async_stream.h"

namespace tileweave {

enum class Poison : std::uint8_t { kNo, kNewValues };

/// Launches the nodes of a plan on a stream. Constants, states and outputs stay; other values are
/// made just before their first use and dropped just after their last, in every run.
class StreamedPlan {
 public:
  StreamedPlan(Device& device, const MixPlan& mix, const RunOptions& run = {},
               Poison poison = Poison::kNo, NodeId first_node = 0)
      : mix_(mix),
        poison_(poison),
        stream(device, {.num_streams = mix.plan.options().num_streams,
                        .edge = mix.plan.options().edge,
                        .run = run,
                        .first_node = first_node}) {
    for (std::size_t n = 0; n < mix.specs().size(); ++n) {
      for (const OperandSpec& operand : mix.specs()[n].operands) last_use_[operand.tensor] = n;
    }
    for (const MixUpload& one : mix.uploads) {
      stream.upload(tensor(one.tensor), one.values.data());
    }
  }

  void launch(std::size_t n) {
    NodeSpec node = mix_.specs()[n];
    for (OperandSpec& operand : node.operands) operand.tensor = tensor(operand.tensor).id();
    node.edge = mix_.plan.edge_of(static_cast<NodeId>(n));
    stream.launch(node);
    for (const OperandSpec& operand : mix_.specs()[n].operands) {
      const TensorSpec& spec = mix_.plan.tensors()[operand.tensor].spec;
      if (spec.kind == TensorKind::kValue && !spec.output && last_use_[operand.tensor] == n) {
        tensors_.erase(operand.tensor);
      }
    }
  }
  void run() {
    stream.begin_run();
    for (std::size_t n = 0; n < mix_.specs().size(); ++n) launch(n);
    stream.end_run();
  }
  const StreamTensor& tensor(TensorId id) {
    if (const auto found = tensors_.find(id); found != tensors_.end()) return found->second;
    TensorSpec spec = mix_.plan.tensors()[id].spec;
    if (spec.shares_buffer_with != kNoTensor) {
      spec.shares_buffer_with = tensor(spec.shares_buffer_with).id();
    }
    const StreamTensor made = stream.tensor(spec);
    addresses.push_back(made.address());
    if (poison_ == Poison::kNewValues && spec.kind == TensorKind::kValue &&
        spec.shares_buffer_with == kNoTensor) {
      const std::vector<std::byte> junk(made.bytes(), std::byte{0xdb});
      stream.upload(made, junk.data());
    }
    return tensors_[id] = made;
  }
  testing::AssertionResult same_bits(const MixOracle& oracle) {
    for (const TensorId id : observable(mix_)) {
      std::vector<std::uint32_t> got(oracle.values(id).size());
      stream.download(tensor(id), got.data());
      if (got != oracle.values(id)) {
        return testing::AssertionFailure()
               << "`" << mix_.plan.tensors()[id].spec.name << "` has other bits";
      }
    }
    return testing::AssertionSuccess();
  }

 private:
  const MixPlan& mix_;
  Poison poison_;
  std::map<TensorId, std::size_t> last_use_;
  std::map<TensorId, StreamTensor> tensors_;

 public:
  AsyncStream stream;
  std::vector<void*> addresses;  // of all tensors, as they were made
};

inline testing::AssertionResult streams_like_the_oracle(Device& device, const MixPlan& mix,
                                                        const RunOptions& options,
                                                        Poison poison = Poison::kNo) {
  try {
    StreamedPlan streamed(device, mix, options, poison);
    MixOracle oracle(mix);
    for (int batch : {1, 2, 3}) {
      for (int run = 0; run < batch; ++run) {
        streamed.run();
        oracle.run();
      }
      streamed.stream.synchronize();
      if (auto same = streamed.same_bits(oracle); !same) return same << ", batch " << batch;
    }
  } catch (const Error& error) {
    return testing::AssertionFailure() << error.what();
  }
  return testing::AssertionSuccess();
}

}  // namespace tileweave
