// Chain: L kernels, each of which reads everything that the kernel before it wrote, synchronised on
// one semaphore per node. Built by hand from contexts and launches, so that it tests a queue alone.
//
// Block b of node i waits until all B blocks of node i - 1 have signalled, computes B words of its
// own from all of theirs, and signals. The result depends on every word of every node, and on the
// input word of the run, so a block that reads too early changes it.
#pragma once

#include <cuda_runtime.h>

#include <cstdint>
#include <string>
#include <vector>

#include "tileweave/plan/node.h"
#include "tileweave/runtime/base_update.h"
#include "tileweave/runtime/device.h"
#include "tileweave/runtime/launch.h"
#include "tileweave/sync/context.h"

namespace tileweave {

struct ChainArgs {
  const std::uint32_t* input;  // (B) of the node before, or null
  std::uint32_t* output;       // (B)
  const std::uint32_t* seed;   // what changes between runs
  std::uint64_t* times;        // (2 B) begin and end of every block, or null
  std::uint32_t delay_ns;      // each block is held up by a random time below this
  std::uint32_t node;
};

struct ChainShape {
  int num_nodes = 24;
  int num_blocks = 132;
  int num_streams = 2;
  Release release = Release::kCompleted;
  std::uint32_t delay_ns = 0;
  std::uint64_t deadline_ns = 5'000'000'000;
  std::uint32_t start_count = 0;  // of all semaphores, counters and bases
  int hang_at = -1;               // this node waits for one arrival too many
  bool measure = false;
};

const void* chain_kernel();

class Chain {
 public:
  Chain(Device& device, const ChainShape& shape);
  ~Chain();
  Chain(const Chain&) = delete;
  Chain& operator=(const Chain&) = delete;

  /// Puts one run on the queue: all nodes, then the base update behind a barrier.
  void launch(LaunchQueue& queue) const;
  const std::vector<Launch>& nodes() const { return nodes_; }
  const Launch& base_update() const { return base_update_; }

  void set_seed(std::uint32_t seed);
  std::uint32_t* seed_word() const { return seed_; }
  /// What the last node must have written for this seed.
  std::vector<std::uint32_t> expected(std::uint32_t seed) const;
  std::vector<std::uint32_t> result() const;
  const std::uint32_t* output_of(int node) const;

  HangReport report() const { return *report_; }
  std::uint32_t abort_word() const;
  /// Device idle: counts, bases, abort word and report back to their start.
  void reset();
  /// begin and end of every block of `node`, in ns of the GPU's clock.
  std::vector<std::uint64_t> times(int node) const;

 private:
  Launch make_node(int node) const;

  Device& device_;
  ChainShape shape_;
  KernelImpl kernel_;
  std::uint32_t* words_ = nullptr;  // per node: semaphore, base, begun, begun base
  std::uint32_t* data_ = nullptr;   // (L, B)
  std::uint32_t* seed_ = nullptr;
  std::uint32_t* abort_ = nullptr;
  std::uint64_t* times_ = nullptr;  // (L, B, 2)
  BaseUpdate* updates_ = nullptr;
  HangReport* report_ = nullptr;
  std::vector<Launch> nodes_;
  Launch base_update_;
};

}  // namespace tileweave
