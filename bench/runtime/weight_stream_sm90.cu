#include <cuda_bf16.h>
#include <cuda_runtime.h>

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
  int n;
  int k;
  int length;  // products of a persistent chain; 1 otherwise
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

/// Chunks of one product that this block streams, in the order of use: row tiles, then columns.
struct BlockChunks {
  int first_tile;
  int num_tiles;
  int chunks_per_row;

  __device__ BlockChunks(const StreamArgs& args)
      : num_tiles(args.n / kRowsPerTile / static_cast<int>(gridDim.x)),
        chunks_per_row(args.k / kColumnsPerChunk) {
    first_tile = static_cast<int>(blockIdx.x) * num_tiles;
  }
  __device__ int count() const { return num_tiles * chunks_per_row; }
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

template <int kStages>
__device__ void issue(Ring<kStages>& ring, const unsigned char* w, const BlockChunks& mine,
                      int chunk, int stage) {
  const std::int64_t at = static_cast<std::int64_t>(mine.first_tile) * mine.chunks_per_row + chunk;
  ptx::mbarrier_arrive_expect(&ring.full[stage], kChunkBytes);
  ptx::bulk_load(ring.chunk[stage], w + at * kChunkBytes, kChunkBytes, &ring.full[stage]);
}

/// Chunks are numbered through all products of a launch; chunk i lives in stage i % kStages and is
/// the (i / kStages)-th to do so.
__device__ unsigned full_parity(int chunk, int stages) {
  return (chunk / stages) & 1U;
}
__device__ unsigned empty_parity(int chunk, int stages) {
  return (chunk / stages + 1) & 1U;
}

/// First thing a block does, one lane of the loader warp: barriers, then as much of the first
/// product's weights as the ring holds. Weights are constant, so nothing needs to be waited for,
/// and no other thread touches the barriers before the block barrier that follows.
template <int kStages>
__device__ int fill_ring(Ring<kStages>& ring, const StreamArgs& args, const BlockChunks& mine) {
  for (int s = 0; s < kStages; ++s) {
    ptx::mbarrier_init(&ring.full[s], 1);
    ptx::mbarrier_init(&ring.empty[s], kConsumerWarps);
  }
  ptx::mbarrier_init_fence();
  const int total = mine.count() * args.length;
  const int filled = total < kStages ? total : kStages;
  for (int i = 0; i < filled; ++i) {
    const int product = i / mine.count();
    issue(ring,
          args.w.get() + product * static_cast<std::int64_t>(args.n) / kRowsPerTile *
                             mine.chunks_per_row * kChunkBytes,
          mine, i % mine.count(), i);
  }
  return filled;
}

/// Waits for bulk copies in flight: their barriers and targets live in this block's shared memory,
/// so the block must outlive them. They depend on nothing and always land: no deadline.
template <int kStages>
__device__ void drain(Ring<kStages>& ring, int first, int end) {
  for (int i = first; i < end; ++i) {
    while (!ptx::mbarrier_try_wait(&ring.full[i % kStages], full_parity(i, kStages))) {
    }
  }
}

/// The rest of the loader's work: reuse a stage when all consumer warps have left it.
template <int kStages>
__device__ void load_rest(Ring<kStages>& ring, const StreamArgs& args, const BlockChunks& mine,
                          int filled, const SyncHeader& header) {
  const std::int64_t product_bytes =
      static_cast<std::int64_t>(args.n) / kRowsPerTile * mine.chunks_per_row * kChunkBytes;
  const int total = mine.count() * args.length;
  for (int i = filled; i < total; ++i) {
    const int stage = i % kStages;
    if (!wait_mbarrier(&ring.empty[stage], empty_parity(i, kStages), stage, header)) {
      drain(ring, i - kStages, i);
      return;
    }
    issue(ring, args.w.get() + (i / mine.count()) * product_bytes, mine, i % mine.count(), stage);
  }
}

/// Copies x into shared memory: 16-byte loads, all in flight before the first store.
template <int kStages>
__device__ void load_x(Ring<kStages>& ring, const Bf16* x, int k) {
  Bf16* to = shared_x(ring);
  for (int v = static_cast<int>(threadIdx.x); v < k / 8; v += kConsumerWarps * 32) {
    const auto* from = reinterpret_cast<const uint4*>(x) + v;
    asm volatile("cp.async.cg.shared.global [%0], [%1], 16;" ::"r"(
                     ptx::shared_address(reinterpret_cast<uint4*>(to) + v)),
                 "l"(from)
                 : "memory");
  }
  asm volatile("cp.async.commit_group;\n cp.async.wait_group 0;" ::: "memory");
}

/// One chunk: this warp's 64 of 512 columns, 16 rows.
template <int kStages>
__device__ void multiply(Ring<kStages>& ring, int stage, int column, float (&acc)[4]) {
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
    ptx::mma_m16n8k16_bf16(acc, a, b0, b1);
  }
}

/// Consumer warps' part of one product. False: aborted.
template <int kStages>
__device__ bool consume(Ring<kStages>& ring, const StreamArgs& args, const BlockChunks& mine,
                        int first_chunk, Bf16* y, const SyncHeader& header) {
  const int warp = static_cast<int>(threadIdx.x) / 32;
  const int lane = static_cast<int>(threadIdx.x) % 32;
  int chunk = first_chunk;
  for (int tile = 0; tile < mine.num_tiles; ++tile) {
    float acc[4] = {};
    for (int c = 0; c < mine.chunks_per_row; ++c, ++chunk) {
      const int stage = chunk % kStages;
      const bool got = wait_mbarrier(&ring.full[stage], full_parity(chunk, kStages), stage, header);
      if (!__all_sync(0xffffffffU, got)) return false;
      multiply(ring, stage, c * kColumnsPerChunk, acc);
      __syncwarp();
      if (lane == 0) ptx::mbarrier_arrive(&ring.empty[stage]);
    }
    // Column 0 of the accumulators sits in lanes 0, 4, 8, ...: rows lane / 4 and lane / 4 + 8.
    if (lane % 4 == 0) {
      ring.partial[warp][lane / 4] = acc[0];
      ring.partial[warp][lane / 4 + 8] = acc[2];
    }
    ConsumerGroup::barrier();
    if (threadIdx.x < kRowsPerTile) {
      float sum = 0;
#pragma unroll
      for (int w = 0; w < kConsumerWarps; ++w) sum += ring.partial[w][threadIdx.x];
      y[(mine.first_tile + tile) * kRowsPerTile + threadIdx.x] = __float2bfloat16(sum);
    }
    if (tile + 1 < mine.num_tiles) ConsumerGroup::barrier();
  }
  return true;
}

template <int kStages>
__global__ void __launch_bounds__(kStreamThreads, 1)
    stream_kernel(const StreamArgs args, const __grid_constant__ SyncContext<2> context) {
  Ring<kStages>& ring = shared_ring<kStages>();
  const BlockChunks mine(args);
  const bool is_loader = threadIdx.x == kConsumerWarps * 32;
  int filled = 0;
  if (is_loader) filled = fill_ring(ring, args, mine);
  SyncCta<AtomicsCuda, 2, SingleTileMaps> block(context);
  if (!block.begin_cta()) {
    if (is_loader) drain(ring, 0, filled);
    return;
  }
  if (threadIdx.x >= kConsumerWarps * 32) {
    if (is_loader) load_rest(ring, args, mine, filled, context.header);
    return;
  }
  SyncCta<AtomicsCudaOf<ConsumerGroup>, 2, SingleTileMaps> consumers(context);
  const Ready ready = consumers.wait_input(0, {0});
  if (!ready) return;
  load_x(ring, args.x.get(ready), args.k);
  ConsumerGroup::barrier();
  if (!consume(ring, args, mine, 0, args.y.get(), context.header)) return;
  consumers.signal_output(1, {static_cast<std::int64_t>(blockIdx.x)});
}

/// Streams the weights and looks at nothing.
template <int kStages>
__global__ void __launch_bounds__(kStreamThreads, 1) bare_read_kernel(const StreamArgs args) {
  Ring<kStages>& ring = shared_ring<kStages>();
  const BlockChunks mine(args);
  if (threadIdx.x == kConsumerWarps * 32) {
    const int filled = fill_ring(ring, args, mine);
    for (int i = filled; i < mine.count(); ++i) {
      const int stage = i % kStages;
      drain(ring, i - kStages, i - kStages + 1);
      issue(ring, args.w.get(), mine, i, stage);
    }
    drain(ring, mine.count() - filled, mine.count());
  }
}

/// The same products in one launch: the counter of each product is a grid barrier, and the loader
/// runs ahead of it into the next product's weights.
template <int kStages>
__global__ void __launch_bounds__(kStreamThreads, 1)
    persistent_kernel(const StreamArgs args, const __grid_constant__ SyncContext<1> context) {
  Ring<kStages>& ring = shared_ring<kStages>();
  const SyncHeader& header = context.header;
  const BlockChunks mine(args);
  const bool is_loader = threadIdx.x == kConsumerWarps * 32;
  int filled = 0;
  if (is_loader) filled = fill_ring(ring, args, mine);
  SyncCta<AtomicsCuda, 1, SingleTileMaps> block(context);
  if (!block.begin_cta()) {
    if (is_loader) drain(ring, 0, filled);
    return;
  }
  if (threadIdx.x >= kConsumerWarps * 32) {
    if (is_loader) load_rest(ring, args, mine, filled, header);
    return;
  }
  AtomicsCudaOf<ConsumerGroup> atomics;
  const Ready always(true);
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
      x = args.y.get() + static_cast<std::int64_t>(p - 1) * args.n;
    }
    load_x(ring, x, args.k);
    ConsumerGroup::barrier();
    Bf16* y = args.y.get() + static_cast<std::int64_t>(p) * args.n;
    if (!consume(ring, args, mine, p * mine.count(), y, header)) return;
    ConsumerGroup::barrier();
    if (threadIdx.x == 0) atomics.add_release(header.counter.words + p, 1, false);
  }
}

std::string kernel_name(const char* what, int stages) {
  return std::string("bench.") + what + ".s" + std::to_string(stages);
}

std::int64_t shared_bytes_of(const StreamShape& shape) {
  switch (shape.stages) {
    case 5:
      return shared_bytes<5>(shape.n);
    case 10:
      return shared_bytes<10>(shape.n);
    case 11:
      return shared_bytes<11>(shape.n);
    default:
      throw Error("weight stream", "5, 10 or 11 stages", std::to_string(shape.stages));
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
  node.make_args = [n = static_cast<int>(shape.n), length](const Addresses& at) {
    StreamArgs args{};
    args.w = {static_cast<const unsigned char*>(at.operands[0])};
    if (at.operands.size() > 1) args.x = {static_cast<const Bf16*>(at.operands[1])};
    if (at.operands.size() > 2) args.y = {static_cast<Bf16*>(at.operands[2])};
    args.n = args.k = n;
    args.length = length;
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

__global__ void fill_kernel(Bf16* to, std::int64_t count, float amplitude, std::uint64_t seed) {
  const std::int64_t step = static_cast<std::int64_t>(gridDim.x) * blockDim.x;
  for (std::int64_t i = blockIdx.x * static_cast<std::int64_t>(blockDim.x) + threadIdx.x; i < count;
       i += step) {
    std::uint64_t h = static_cast<std::uint64_t>(i) * 0x9e3779b97f4a7c15ULL + seed;
    h = (h ^ (h >> 30)) * 0xbf58476d1ce4e5b9ULL;
    h = (h ^ (h >> 27)) * 0x94d049bb133111ebULL;
    h ^= h >> 31;
    const float unit = static_cast<float>(h >> 40) * (1.0F / 8388608.0F) - 1.0F;
    to[i] = __float2bfloat16(unit * amplitude);
  }
}

void check_launch(const char* what) {
  const cudaError_t error = cudaGetLastError();
  if (error != cudaSuccess) throw Error(what, "a launch that works", cudaGetErrorString(error));
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
  add_stages<5>(kernels);
  add_stages<10>(kernels);
  add_stages<11>(kernels);
}

void fill_random_bf16(void* device, std::int64_t count, float amplitude, std::uint64_t seed) {
  fill_kernel<<<1056, 256>>>(static_cast<Bf16*>(device), count, amplitude, seed);
  check_launch("fill with random values");
}

}  // namespace tileweave::bench
