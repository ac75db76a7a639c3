// AsyncStream: one logical stream without barriers (paper section 2.3), over N internal streams.
//
//   AsyncStream stream(device, {.num_streams = 2});
//   StreamTensor y = stream.tensor({.name = "Y", .shape = {m, n}, .tiles = {64, n}});
//   stream.begin_run();
//   stream.launch(gemm(stream.tensors(), {}, x.id(), w.id(), y.id()));
//   stream.end_run();
//   stream.synchronize();
//
// Kernels dispatch round-robin; each launch is verified against the window in flight before it is
// enqueued (throws Error with the fault's sentence, nothing is enqueued then). A tensor handle that
// the user drops is released only when max_in_flight more kernels have been launched and the
// kernels that use it have completed. A run is what lies between begin_run and end_run; end_run
// launches the base update, and is captured with the rest if the user captures a graph.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "tileweave/plan/plan.h"
#include "tileweave/runtime/device.h"
#include "tileweave/runtime/program.h"
#include "tileweave/runtime/run_options.h"

namespace tileweave {

struct AsyncStreamOptions {
  std::int32_t num_streams = 2;
  EdgePolicy edge = {};
  RunOptions run = {};
  NodeId first_node = 0;  // number of the first launch; runs start again at 0 well before 2^31
};

class AsyncStream;

/// Reference-counted handle of a device tensor made by a stream.
class StreamTensor {
 public:
  StreamTensor() = default;
  TensorId id() const;
  void* address() const;
  std::size_t bytes() const;
  bool valid() const { return state_ != nullptr; }

 private:
  friend class AsyncStream;
  struct State;
  std::shared_ptr<State> state_;
};

class AsyncStream {
 public:
  AsyncStream(Device& device, const AsyncStreamOptions& options = {});
  ~AsyncStream();
  AsyncStream(const AsyncStream&) = delete;
  AsyncStream& operator=(const AsyncStream&) = delete;

  StreamTensor tensor(const TensorSpec& spec);
  /// Over memory that the user owns; kept alive by the user until the stream is synchronised.
  StreamTensor wrap(const TensorSpec& spec, void* address);
  const TensorTable& tensors() const;

  void begin_run();
  void launch(NodeSpec node);
  /// An operator that knows nothing of tiles: full dependencies on both sides.
  void call(const std::string& name, const std::vector<TensorId>& reads,
            const std::vector<TensorId>& writes, std::function<void(NativeStream)> enqueue);
  void end_run();

  /// Everything launched from now on waits for what the user's stream holds now.
  void wait_for(NativeStream stream);
  /// The user's stream waits for everything launched so far.
  void block(NativeStream stream);
  void synchronize();
  bool poisoned() const;
  const std::optional<Hang>& hang() const;
  void recover();

  /// Blocking; upload first waits for kernels that may touch the tensor's memory, download for
  /// none.
  void upload(const StreamTensor& tensor, const void* host);
  void download(const StreamTensor& tensor, void* host);
  std::vector<SemaphoreView> semaphores(const StreamTensor& tensor);
  /// Bytes held by tensors that are not yet released, and kernels known to be in flight.
  std::size_t bytes_held() const;
  std::int64_t num_in_flight();
  Trace take_trace();

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace tileweave
