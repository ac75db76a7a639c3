#include <cuda_bf16.h>
#include <cuda_runtime.h>

#include <algorithm>

#include "bench/runtime/weight_stream.h"
#include "tileweave/core/error.h"
#include "tileweave/kernels/gemm/ptx_mma.cuh"
#include "tileweave/sync/atomics_cuda.cuh"
#include "tileweave/sync/mbarrier.cuh"
#include "tileweave/sync/sync_cta.h"

namespace tileweave::bench {
namespace {

using Bf16 = __nv_bfloat16;
using ConsumerGroup = BarrierGroup<1, kConsumerWarps * 32>;

struct StreamArgs {
  Stable<unsigned char> w;
  Produced<Bf16> x;
  Output<Bf16> y;
  std::int64_t product_bytes;  // of the packed weights of one product
  int k;
  int tiles_per_block;  // row tiles, one after the other
  int chunks_per_tile;
  int length;  // products of a persistent chain; 1 otherwise
  int window;  // copies in flight per block
};

template <int kStages>
struct Ring {
  alignas(128) unsigned char chunk[kStages][kChunkBytes];
  float partial[kConsumerWarps][kRowsPerTile];
  std::uint64_t full[kStages];
  std::uint64_t empty[kStages];
  // x follows: K values
};

template <int kStages>
std::int64_t shared_bytes(std::int64_t k) {
  return static_cast<std::int64_t>(sizeof(Ring<kStages>)) + k * 2;
}

/// Where loader and consumers are in the ring. Chunks are numbered through all products of a
/// launch; chunk i lives in stage i % kStages and is the (i / kStages)-th to do so.
template <int kStages>
struct Place {
  int stage = 0;
  unsigned parity = 0;

  __device__ void next() {
    if (++stage < kStages) return;
    stage = 0;
    parity ^= 1U;
  }
};

template <int kStages>
__device__ Ring<kStages>& shared_ring() {
  extern __shared__ __align__(128) unsigned char memory[];
  return *reinterpret_cast<Ring<kStages>*>(memory);
}

template <int kStages>
__device__ Bf16* shared_x(Ring<kStages>& ring) {
  return reinterpret_cast<Bf16*>(&ring + 1);
}

/// The loader warp arrives and goes on; consumers wait for it before their first barrier.
__device__ void say_ring_ready() {
  asm volatile("bar.arrive 2, %0;" ::"n"(kStreamThreads) : "memory");
}
__device__ void ring_ready() {
  asm volatile("bar.sync 2, %0;" ::"n"(kStreamThreads) : "memory");
}

/// The loader warp's work: barriers, one lane each; then, by its first lane, chunk after chunk, as
/// soon as the consumer warps have left the stage, which needs no waiting in the first round:
/// weights are constant. `wait_empty` says false when the run is aborted. Ends when every copy has
/// landed, since the copies write to this block's shared memory.
///
/// Short on purpose. Other blocks stream meanwhile, and each line of code that is not in the cache
/// stands in their queue.
template <int kStages, class WaitEmpty>
__device__ void load(Ring<kStages>& ring, const StreamArgs& args, WaitEmpty wait_empty) {
  const int lane = static_cast<int>(threadIdx.x) % 32;
  if (lane == 0) {
    TW_ROLLED_LOOP
    for (int s = 0; s < kStages; ++s) {
      ptx::mbarrier_init(&ring.full[s], 1);
      ptx::mbarrier_init(&ring.empty[s], kConsumerWarps);
    }
    ptx::mbarrier_init_fence();
  }
  __syncwarp();
  say_ring_ready();
  if (lane != 0) return;
  const int count = args.tiles_per_block * args.chunks_per_tile;
  const int own_bytes = count * kChunkBytes;
  const unsigned char* from = args.w.get() + static_cast<std::int64_t>(blockIdx.x) * own_bytes;
  const int total = count * args.length;
  int left = count;  // chunks of this product
  const auto issue = [&](int stage) {
    ptx::mbarrier_arrive_expect(&ring.full[stage], kChunkBytes);
    ptx::bulk_load(ring.chunk[stage], from, kChunkBytes, &ring.full[stage]);
    from += kChunkBytes;
    if (--left == 0) {
      left = count;
      from += args.product_bytes - own_bytes;
    }
  };
  // A release at GPU scope waits for all bulk copies in flight on its SM, whoever issued them: with
  // the whole ring in flight it would wait for all of the next product. So a few at a time.
  Place<kStages> at;
  Place<kStages> landing;
  int issued = 0;
  TW_ROLLED_LOOP
  for (; issued < total; ++issued, at.next()) {
    if (issued >= args.window) {
      while (!ptx::mbarrier_try_wait(&ring.full[landing.stage], landing.parity)) {
      }
      landing.next();
    }
    if (issued >= kStages && !wait_empty(at.stage, at.parity ^ 1U)) break;
    issue(at.stage);
  }
  // Copies depend on nothing and always land, so no deadline.
  TW_ROLLED_LOOP
  for (int i = issued < args.window ? issued : args.window; i > 0; --i, landing.next()) {
    while (!ptx::mbarrier_try_wait(&ring.full[landing.stage], landing.parity)) {
    }
  }
}

/// Copies x into shared memory: 16-byte loads, all in flight before the first store.
template <int kStages>
__device__ void load_x(Ring<kStages>& ring, const Bf16* x, int k) {
  Bf16* to = shared_x(ring);
  TW_ROLLED_LOOP
  for (int v = static_cast<int>(threadIdx.x); v < k / 8; v += kConsumerWarps * 32) {
    const auto* from = reinterpret_cast<const uint4*>(x) + v;
    asm volatile("cp.async.cg.shared.global [%0], [%1], 16;" ::"r"(
                     ptx::shared_address(reinterpret_cast<uint4*>(to) + v)),
                 "l"(from)
                 : "memory");
  }
  asm volatile("cp.async.commit_group;\n cp.async.wait_group 0;" ::: "memory");
}

/// One chunk: this warp's 64 of 512 columns, 16 rows. Two sums by turns, so that a product does not
/// wait for the one before it.
template <int kStages>
__device__ void multiply(Ring<kStages>& ring, int stage, int column, float (&acc)[2][4]) {
  const int warp = static_cast<int>(threadIdx.x) / 32;
  const int lane = static_cast<int>(threadIdx.x) % 32;
  constexpr int kSteps = kColumnsPerChunk / 16 / kConsumerWarps;
  const std::uint32_t base = ptx::shared_address(ring.chunk[stage]);
#pragma unroll
  for (int s = 0; s < kSteps; ++s) {
    const int k = (warp * kSteps + s) * 16;
    std::uint32_t a[4];
    ptx::load_matrix_x4(
        a, base + static_cast<std::uint32_t>((lane % 16) * kRowBytes + k * 2 + (lane / 16) * 16));
    // Column 0 of the 16x8 operand is x; lanes of the other columns hold zeros.
    std::uint32_t b0 = 0;
    std::uint32_t b1 = 0;
    if (lane < 4) {
      const Bf16* x = shared_x(ring) + column + k + lane * 2;
      b0 = *reinterpret_cast<const std::uint32_t*>(x);
      b1 = *reinterpret_cast<const std::uint32_t*>(x + 8);
    }
    ptx::mma_m16n8k16_bf16(acc[s % 2], a, b0, b1);
  }
}

/// Consumer warps' part of one product. False: aborted.
template <int kStages>
__device__ bool consume(Ring<kStages>& ring, const StreamArgs& args, Place<kStages>& at, Bf16* y,
                        const SyncHeader& header) {
  const int warp = static_cast<int>(threadIdx.x) / 32;
  const int lane = static_cast<int>(threadIdx.x) % 32;
  y += blockIdx.x * args.tiles_per_block * kRowsPerTile;
  TW_ROLLED_LOOP
  for (int tile = 0; tile < args.tiles_per_block; ++tile) {
    float acc[2][4] = {};
    TW_ROLLED_LOOP
    for (int c = 0; c < args.chunks_per_tile; ++c, at.next()) {
      const bool got = wait_mbarrier(&ring.full[at.stage], at.parity,
                                     static_cast<std::uint32_t>(at.stage), header);
      if (!__all_sync(0xffffffffU, got)) return false;
      multiply(ring, at.stage, c * kColumnsPerChunk, acc);
      __syncwarp();
      if (lane == 0) ptx::mbarrier_arrive(&ring.empty[at.stage]);
    }
    // Column 0 of the accumulators sits in lanes 0, 4, 8, ...: rows lane / 4 and lane / 4 + 8.
    if (lane % 4 == 0) {
      ring.partial[warp][lane / 4] = acc[0][0] + acc[1][0];
      ring.partial[warp][lane / 4 + 8] = acc[0][2] + acc[1][2];
    }
    ConsumerGroup::barrier();
    if (threadIdx.x < kRowsPerTile) {
      float sum = 0;
#pragma unroll
      for (int w = 0; w < kConsumerWarps; ++w) sum += ring.partial[w][threadIdx.x];
      y[tile * kRowsPerTile + threadIdx.x] = __float2bfloat16(sum);
    }
    if (tile + 1 < args.tiles_per_block) ConsumerGroup::barrier();
  }
  return true;
}

template <int kStages>
__global__ void __launch_bounds__(kStreamThreads, 1)
    stream_kernel(const StreamArgs args, const __grid_constant__ SyncContext<2> context) {
  Ring<kStages>& ring = shared_ring<kStages>();
  if (threadIdx.x >= kConsumerWarps * 32) {
    load(ring, args, [&](int stage, unsigned parity) {
      return wait_mbarrier(&ring.empty[stage], parity, static_cast<std::uint32_t>(stage),
                           context.header);
    });
    return;
  }
  SyncCta<AtomicsCudaOf<ConsumerGroup>, 2, SingleTileMaps> sync(context);
  if (!sync.begin_cta()) return;
  const Ready ready = sync.wait_input(0, {0});
  if (!ready) return;
  load_x(ring, args.x.get(ready), args.k);
  ring_ready();
  Place<kStages> at;
  if (!consume(ring, args, at, args.y.get(), context.header)) return;
  sync.signal_output(1, {static_cast<std::int64_t>(blockIdx.x)});
}

/// Streams the weights and looks at nothing: a stage is left as soon as it is full.
template <int kStages>
__global__ void __launch_bounds__(kStreamThreads, 1) bare_read_kernel(const StreamArgs args) {
  Ring<kStages>& ring = shared_ring<kStages>();
  if (threadIdx.x < kConsumerWarps * 32) return;
  load(ring, args, [&](int stage, unsigned parity) {
    while (!ptx::mbarrier_try_wait(&ring.full[stage], parity)) {
    }
    return true;
  });
}

/// The same products in one launch: the counter of each product is a grid barrier, and the loader
/// runs ahead of it into the next product's weights.
template <int kStages>
__global__ void __launch_bounds__(kStreamThreads, 1)
    persistent_kernel(const StreamArgs args, const __grid_constant__ SyncContext<1> context) {
  Ring<kStages>& ring = shared_ring<kStages>();
  const SyncHeader& header = context.header;
  if (threadIdx.x >= kConsumerWarps * 32) {
    load(ring, args, [&](int stage, unsigned parity) {
      return wait_mbarrier(&ring.empty[stage], parity, static_cast<std::uint32_t>(stage), header);
    });
    return;
  }
  SyncCta<AtomicsCudaOf<ConsumerGroup>, 1, SingleTileMaps> sync(context);
  if (!sync.begin_cta()) return;
  AtomicsCudaOf<ConsumerGroup> atomics;
  const Ready always(true);
  Place<kStages> at;
  for (int p = 0; p < args.length; ++p) {
    const Bf16* x = args.x.get(always);
    if (p > 0) {
      bool failed = false;
      if (threadIdx.x == 0) {
        const WaitSite site{.tile = static_cast<std::uint32_t>(p - 1),
                            .base = *header.counter.base,
                            .target = gridDim.x};
        failed = !wait_word(atomics, header.counter.words + p - 1, site, header);
      }
      if (ConsumerGroup::barrier_or(failed)) return;
      x = args.y.get() + static_cast<std::int64_t>(p - 1) * args.k;
    }
    load_x(ring, x, args.k);
    if (p == 0) {
      ring_ready();
    } else {
      ConsumerGroup::barrier();
    }
    if (!consume(ring, args, at, args.y.get() + static_cast<std::int64_t>(p) * args.k, header)) {
      return;
    }
    ConsumerGroup::barrier();
    if (threadIdx.x == 0) atomics.add_release(header.counter.words + p, 1, false);
  }
}

std::string kernel_name(const char* what, int stages) {
  return std::string("bench.") + what + ".s" + std::to_string(stages);
}

std::int64_t shared_bytes_of(const StreamShape& shape) {
  switch (shape.stages) {
    case 4:
      return shared_bytes<4>(shape.n);
    case 5:
      return shared_bytes<5>(shape.n);
    case 10:
      return shared_bytes<10>(shape.n);
    case 11:
      return shared_bytes<11>(shape.n);
    default:
      throw Error("weight stream", "4, 5, 10 or 11 stages", std::to_string(shape.stages));
  }
}

NodeSpec stream_node(const StreamShape& shape, const char* what, int length) {
  require(shape.n % (kRowsPerTile * shape.blocks) == 0 && shape.n % kColumnsPerChunk == 0,
          "weight stream", "N a multiple of 16 x blocks and of 512", std::to_string(shape.n));
  NodeSpec node;
  node.name = what;
  node.kernel = kernel_name(what, shape.stages);
  node.num_works = shape.blocks;
  node.resources = {.threads = kStreamThreads, .shared_bytes = shared_bytes_of(shape)};
  node.make_args = [shape, length](const Addresses& at) {
    StreamArgs args{};
    args.w = {static_cast<const unsigned char*>(at.operands[0])};
    if (at.operands.size() > 1) args.x = {static_cast<const Bf16*>(at.operands[1])};
    if (at.operands.size() > 2) args.y = {static_cast<Bf16*>(at.operands[2])};
    args.product_bytes = packed_bytes(shape.n, shape.n);
    args.k = static_cast<int>(shape.n);
    args.tiles_per_block = static_cast<int>(shape.n) / kRowsPerTile / shape.blocks;
    args.chunks_per_tile = static_cast<int>(shape.n) / kColumnsPerChunk;
    args.length = length;
    args.window = shape.window > 0 ? std::min(shape.window, shape.stages) : shape.stages;
    return to_bytes(args);
  };
  return node;
}

template <int kStages>
void add_stages(KernelLibrary& kernels) {
  const auto pointer = [](auto* function) { return reinterpret_cast<const void*>(function); };
  kernels.add({.name = kernel_name("weight_stream", kStages),
               .num_sync_slots = 2,
               .cuda_function = pointer(&stream_kernel<kStages>),
               .tiles = TileSupport::kSingleTile});
  kernels.add({.name = kernel_name("bare_read", kStages),
               .cuda_function = pointer(&bare_read_kernel<kStages>)});
  kernels.add({.name = kernel_name("persistent_chain", kStages),
               .num_sync_slots = 1,
               .cuda_function = pointer(&persistent_kernel<kStages>),
               .tiles = TileSupport::kSingleTile});
}

}  // namespace

NodeSpec weight_stream(const StreamShape& shape, const TensorTable& tensors, TensorId w, TensorId x,
                       TensorId y, const EdgePolicy& edge) {
  NodeSpec node = stream_node(shape, "weight_stream", 1);
  node.edge = edge;
  const TileSet rows = TileSet::plain({tensors[y].spec.shape, Coord{shape.n / shape.blocks}});
  node.operands = {{.tensor = w, .when = ReadTime::kPrologue},
                   {.tensor = x, .sync_slot = 0},
                   {.tensor = y, .access = Access::kWrite, .kernel_tiles = rows, .sync_slot = 1}};
  return node;
}

NodeSpec bare_read(const StreamShape& shape, TensorId w) {
  NodeSpec node = stream_node(shape, "bare_read", 1);
  node.operands = {{.tensor = w, .when = ReadTime::kPrologue}};
  node.edge = EdgePolicy{.kind = EdgeKind::kFull};
  return node;
}

NodeSpec persistent_chain(const StreamShape& shape, int length, const TensorTable& tensors,
                          TensorId w, TensorId x, TensorId y) {
  NodeSpec node = stream_node(shape, "persistent_chain", length);
  const TileSet rows =
      TileSet::plain({tensors[y].spec.shape, Coord{length, 1, shape.n / shape.blocks}});
  node.operands = {{.tensor = w, .when = ReadTime::kPrologue},
                   {.tensor = x, .when = ReadTime::kPrologue},
                   {.tensor = y, .access = Access::kWrite, .kernel_tiles = rows, .sync_slot = 0}};
  node.edge = EdgePolicy{.kind = EdgeKind::kFull};
  node.counter.arrivals.assign(static_cast<std::size_t>(length),
                               static_cast<std::uint32_t>(shape.blocks));
  return node;
}

void add_weight_stream(KernelLibrary& kernels) {
  add_stages<4>(kernels);
  add_stages<5>(kernels);
  add_stages<10>(kernels);
  add_stages<11>(kernels);
}

}  // namespace tileweave::bench
