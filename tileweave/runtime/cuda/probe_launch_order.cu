// Do blocks ever begin before the last block of the launch before them began?
//
// CUDA calls launch-completion events best effort, so the answer is counted: every block stamps its
// beginning with the GPU's clock (steps of 32 ns; a tie is not counted), and the host compares.
#include <algorithm>
#include <array>
#include <memory>

#include "tileweave/plan/node.h"
#include "tileweave/runtime/cuda/cuda_launch_queue.cuh"
#include "tileweave/runtime/cuda/probe_parts.cuh"
#include "tileweave/sync/ptx_launch.cuh"

namespace tileweave {
namespace {

struct StampArgs {
  std::uint64_t* begin;  // per block
  std::uint64_t* end;
  std::uint32_t hold_ns;
};

__global__ void stamp(StampArgs args) {
  const std::uint64_t begin = ptx::global_timer_ns();
  // Unequal times make blocks leave their SMs one by one, which is when an order could break.
  const std::uint64_t hold = args.hold_ns + blockIdx.x * 2654435761U % args.hold_ns;
  while (ptx::global_timer_ns() - begin < hold) {
  }
  if (threadIdx.x == 0) {
    args.begin[blockIdx.x] = begin;
    args.end[blockIdx.x] = ptx::global_timer_ns();
  }
}

struct BlockShape {
  std::int64_t num_blocks;
  std::int32_t threads;
  std::int64_t shared_bytes;
};

struct ChainOfLaunches {
  const char* name;
  BlockSizes sizes;
  std::array<BlockShape, 2> shapes;  // by turns
};

constexpr std::uint32_t kHoldNs = 1500;

std::vector<ChainOfLaunches> chains(const DeviceLimits& limits) {
  const std::int64_t sms = limits.num_sms;
  const std::int64_t half = limits.shared_bytes_per_sm / 2 - 16 * 1024;
  const std::int64_t most = limits.shared_bytes_per_block;
  return {
      {"equal blocks, one per SM", BlockSizes::kEqual, {{{sms, 256, 0}, {sms, 256, 0}}}},
      {"equal blocks in several waves",
       BlockSizes::kEqual,
       {{{sms * 7 + 3, 256, half}, {sms * 7 + 3, 256, half}}}},
      {"large and small blocks by turns",
       BlockSizes::kUnequal,
       {{{sms + 9, 512, most}, {2 * sms, 64, 0}}}},
      {"many threads and few by turns",
       BlockSizes::kUnequal,
       {{{3 * sms, 1024, 0}, {sms, 32, 1024}}}},
  };
}

LaunchOrderFinding judge(const std::vector<std::uint64_t>& begin,
                         const std::vector<std::uint64_t>& end,
                         const std::vector<std::int64_t>& sizes) {
  LaunchOrderFinding finding;
  finding.launches = static_cast<std::int64_t>(sizes.size());
  finding.blocks = static_cast<std::int64_t>(begin.size());
  std::size_t at = 0;
  std::uint64_t last_begin = 0;
  std::uint64_t last_end = 0;
  for (std::size_t i = 0; i < sizes.size(); ++i) {
    const std::size_t stop = at + static_cast<std::size_t>(sizes[i]);
    std::int64_t early = 0;
    std::uint64_t first = ~std::uint64_t{0};
    std::uint64_t last = 0;
    std::uint64_t done = 0;
    for (; at < stop; ++at) {
      if (begin[at] < last_begin) {
        ++early;
        finding.longest_lead_ns =
            std::max(finding.longest_lead_ns, static_cast<std::int64_t>(last_begin - begin[at]));
      }
      first = std::min(first, begin[at]);
      last = std::max(last, begin[at]);
      done = std::max(done, end[at]);
    }
    finding.early_blocks += early;
    finding.early_launches += early > 0 ? 1 : 0;
    finding.overlapped_launches += i > 0 && first < last_end ? 1 : 0;
    last_begin = last;
    last_end = done;
  }
  return finding;
}

}  // namespace

std::vector<LaunchOrderFinding> probe_launch_order(CudaDevice& device, std::int32_t launches) {
  std::vector<LaunchOrderFinding> findings;
  const KernelImpl kernel{.name = "stamp", .cuda_function = reinterpret_cast<const void*>(&stamp)};
  for (const ChainOfLaunches& chain : chains(device.limits())) {
    std::vector<std::int64_t> sizes;
    std::int64_t num_blocks = 0;
    for (std::int32_t i = 0; i < launches; ++i) {
      sizes.push_back(chain.shapes[static_cast<std::size_t>(i % 2)].num_blocks);
      num_blocks += sizes.back();
    }
    const ProbeBuffer<std::uint64_t> begin(device, static_cast<std::size_t>(num_blocks));
    const ProbeBuffer<std::uint64_t> end(device, static_cast<std::size_t>(num_blocks));
    for (const std::int32_t num_streams : {2, 3}) {
      const auto queue = device.open_queue(num_streams);
      const auto launch_all = [&] {
        std::int64_t at = 0;
        for (std::int32_t i = 0; i < launches; ++i) {
          const BlockShape& shape = chain.shapes[static_cast<std::size_t>(i % 2)];
          Launch launch{.node = i,
                        .name = "stamp",
                        .kernel = &kernel,
                        .num_blocks = shape.num_blocks,
                        .resources = {.threads = shape.threads, .shared_bytes = shape.shared_bytes},
                        .args = to_bytes(StampArgs{begin.data() + at, end.data() + at, kHoldNs}),
                        .stream = i % num_streams,
                        .completion_event = CompletionEvent::kLaunchCompletion};
          if (i > 0) launch.after = {{.on = i - 1, .release = Release::kLaunchCompleted}};
          queue->launch(launch);
          at += shape.num_blocks;
        }
        queue->barrier();
      };
      const auto look = [&](const char* submit) {
        queue->synchronize();
        LaunchOrderFinding finding = judge(begin.read(), end.read(), sizes);
        finding.chain = chain.name;
        finding.submit = submit;
        finding.sizes = chain.sizes;
        finding.num_streams = num_streams;
        findings.push_back(finding);
      };
      launch_all();
      look("eager");
      queue->begin_recording();
      launch_all();
      const auto recording = queue->end_recording();
      recording->replay();
      look("graph");
    }
  }
  return findings;
}

}  // namespace tileweave
