// Program: a verified plan loaded on a device, ready to run again and again.
//
//   Program program(device, plan, {.mode = Mode::kOverlap, .submit = Submit::kGraph});
//   program.write(x, values);  program.run();  program.synchronize();  program.read(z, result);
//
// The constructor verifies (throws Error with the fault's sentence), plans memory, allocates the
// arena and the semaphores, and records. `run` is asynchronous; runs follow one another without
// host synchronisation. A run in which a wait expires drains, and synchronize() throws Error with
// the hang report as one sentence; the program is then *poisoned* and refuses to run until
// recover(). The device must outlive the program. One host thread at a time.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "tileweave/core/error.h"
#include "tileweave/plan/memory_plan.h"
#include "tileweave/plan/plan.h"
#include "tileweave/plan/verdict.h"
#include "tileweave/runtime/device.h"
#include "tileweave/runtime/hang.h"
#include "tileweave/runtime/run_options.h"
#include "tileweave/runtime/sync_state.h"
#include "tileweave/trace/trace.h"

namespace tileweave {

class Program {
 public:
  Program(Device& device, Plan plan, const RunOptions& options = {});
  ~Program();
  Program(const Program&) = delete;
  Program& operator=(const Program&) = delete;

  const Plan& plan() const;
  const Verdict& verdict() const;
  const MemoryPlan& memory() const;
  Device& device();

  void* address(TensorId id);
  /// Blocking copies between host and a tensor; the sizes must match exactly.
  void write_bytes(TensorId id, std::span<const std::byte> bytes);
  void read_bytes(TensorId id, std::span<std::byte> bytes);
  template <class T>
  void write(TensorId id, const std::vector<T>& values) {
    write_bytes(id, std::as_bytes(std::span(values)));
  }
  template <class T>
  std::vector<T> read(TensorId id) {
    std::vector<T> values(plan().tensors()[id].bytes() / sizeof(T));
    read_bytes(id, std::as_writable_bytes(std::span(values)));
    return values;
  }

  void run();
  void synchronize();

  /// Makes `enqueue` part of every run, behind all its nodes and its base update and before
  /// anything of the next run: it puts its work on the given stream (recorded like a kernel: on a
  /// GPU it must be capturable, and is called once for all replays; an emulated device calls it in
  /// every run, with no stream). It may write what the host may write between runs, constants
  /// included, at addresses that stay the same; the host's own writes wait for synchronize(). After
  /// an aborted run it still runs, on whatever that left. Waits for all runs so far; null: nothing
  /// between runs. Throws Error when recording fails; then set it again before the next run.
  void set_between_runs(std::function<void(NativeStream)> enqueue);
  bool poisoned() const;
  const std::optional<Hang>& hang() const;
  /// With everything idle, zeroes semaphores, counters and bases; the program may run again.
  void recover();

  /// Semaphores of a tiled tensor.
  std::vector<SemaphoreView> semaphores(TensorId id);
  /// Records of all runs since the last call (tracing on), with tile arrows.
  Trace take_trace();
  /// Ticks of the virtual clock taken by the last run (model), or -1.
  double model_ticks() const;

  /// Native streams of the user: the next run waits for it / it waits for all runs so far.
  void wait_for(NativeStream stream);
  void block(NativeStream stream);

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace tileweave
