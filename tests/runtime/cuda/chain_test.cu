// The chain that the other tests of this folder run (chain.cuh), and a test that it can fail.
#include <algorithm>

#include "tests/runtime/cuda/chain.cuh"
#include "tests/runtime/cuda/watchdog.h"
#include "tileweave/sync/atomics_cuda.cuh"
#include "tileweave/sync/sync_cta.h"

namespace tileweave {
namespace {

constexpr int kThreads = 64;
constexpr int kSlotWords = 32;  // distance between words: one line each
constexpr int kWordsPerNode = 4 * kSlotWords;

TW_HOST_DEVICE std::uint32_t mix(std::uint32_t x) {
  x ^= x >> 16;
  x *= 0x7feb352dU;
  x ^= x >> 15;
  x *= 0x846ca68bU;
  return x ^ (x >> 16);
}

__global__ void __launch_bounds__(kThreads)
    chain_node(ChainArgs args, const __grid_constant__ SyncContext<2> context) {
  const std::uint64_t begin_ns = ptx::global_timer_ns();
  SyncCta<AtomicsCuda, 2> sync(context);
  if (!sync.begin_cta()) return;
  const auto block = static_cast<std::int64_t>(blockIdx.x);
  const Ready ready = sync.wait_input(0, {0});
  if (!ready) return;

  if (args.delay_ns != 0) {
    const std::uint32_t hold = mix(args.node * 7919U + blockIdx.x + *args.seed) % args.delay_ns;
    while (ptx::global_timer_ns() - begin_ns < hold) {
    }
  }
  __shared__ std::uint32_t sum;
  if (threadIdx.x == 0) sum = 0;
  __syncthreads();
  std::uint32_t own = 0;
  if (args.input != nullptr) {
    for (unsigned i = threadIdx.x; i < gridDim.x; i += blockDim.x) {
      own += mix(args.input[i] + i + blockIdx.x);
    }
  }
  atomicAdd(&sum, own);
  __syncthreads();
  if (threadIdx.x == 0) args.output[block] = mix(sum + *args.seed + args.node + blockIdx.x);
  if (args.times != nullptr && threadIdx.x == 0) {
    args.times[2 * block] = begin_ns;
    args.times[2 * block + 1] = ptx::global_timer_ns();
  }
  sync.signal_output(1, {block});
}

}  // namespace

const void* chain_kernel() {
  return reinterpret_cast<const void*>(&chain_node);
}

Chain::Chain(Device& device, const ChainShape& shape)
    : device_(device),
      shape_(shape),
      kernel_{.name = "chain", .num_sync_slots = 2, .cuda_function = chain_kernel()} {
  const auto nodes = static_cast<std::size_t>(shape.num_nodes);
  const auto blocks = static_cast<std::size_t>(shape.num_blocks);
  const auto allocate = [&](std::size_t bytes) { return device_.allocate(bytes); };
  words_ = static_cast<std::uint32_t*>(allocate(nodes * kWordsPerNode * sizeof(std::uint32_t)));
  data_ = static_cast<std::uint32_t*>(allocate(nodes * blocks * sizeof(std::uint32_t)));
  seed_ = static_cast<std::uint32_t*>(allocate(sizeof(std::uint32_t)));
  abort_ = static_cast<std::uint32_t*>(allocate(sizeof(std::uint32_t)));
  times_ = static_cast<std::uint64_t*>(allocate(2 * nodes * blocks * sizeof(std::uint64_t)));
  updates_ = static_cast<BaseUpdate*>(allocate(2 * nodes * sizeof(BaseUpdate)));
  report_ = static_cast<HangReport*>(device_.allocate_shared(sizeof(HangReport)));
  device_.fill(data_, 0, nodes * blocks * sizeof(std::uint32_t));
  reset();
  set_seed(0);

  std::vector<BaseUpdate> updates;
  for (std::size_t i = 0; i < nodes; ++i) {
    std::uint32_t* w = words_ + i * kWordsPerNode;
    const auto target = static_cast<std::uint32_t>(shape.num_blocks);
    updates.push_back({.base = w + kSlotWords, .targets = nullptr, .target = target, .count = 1});
    updates.push_back(
        {.base = w + 3 * kSlotWords, .targets = nullptr, .target = target, .count = 1});
    nodes_.push_back(make_node(static_cast<int>(i)));
  }
  device_.upload(updates_, updates.data(), updates.size() * sizeof(BaseUpdate));
  BaseUpdateArgs args{};
  args.entries = updates_;
  args.abort = abort_;
  args.num_entries = static_cast<std::int32_t>(updates.size());
  base_update_ = {.node = shape.num_nodes,
                  .name = "base update",
                  .kernel = &device_.kernels().find(kBaseUpdateKernel),
                  .resources = {.threads = kBaseUpdateThreads},
                  .args = to_bytes(args)};
}

Chain::~Chain() {
  for (void* pointer :
       {static_cast<void*>(words_), static_cast<void*>(data_), static_cast<void*>(seed_),
        static_cast<void*>(abort_), static_cast<void*>(times_), static_cast<void*>(updates_)}) {
    device_.release(pointer);
  }
  device_.release_shared(report_);
}

Launch Chain::make_node(int node) const {
  const auto at = static_cast<std::size_t>(node);
  const auto blocks = static_cast<std::size_t>(shape_.num_blocks);
  std::uint32_t* own = words_ + at * kWordsPerNode;
  SyncContext<2> context{};
  context.header.abort = abort_;
  context.header.report = report_;
  context.header.begun = own + 2 * kSlotWords;
  context.header.deadline_ns = shape_.deadline_ns;
  context.header.num_works = shape_.num_blocks;
  context.header.node = static_cast<std::uint32_t>(node);
  context.header.flags = SyncHeader::kCountBegun;
  if (shape_.release == Release::kProgrammatic) {
    context.header.flags |= SyncHeader::kProgrammaticProducer;
    if (node > 0) context.header.flags |= SyncHeader::kProgrammaticConsumer;
  }
  const auto operand = [&](std::uint32_t* w) {
    OperandSlot slot{};
    OperandSync& sync = slot.sync;
    OperandTiles& tiles = slot.tiles;
    sync.words = w;
    sync.base = w + kSlotWords;
    tiles.num_axes = 1;
    tiles.shape[0] = tiles.dtile[0] = shape_.num_blocks;
    tiles.ktile[0] = 1;
    sync.target = static_cast<std::uint32_t>(shape_.num_blocks);
    tiles.word_stride = kSlotWords;
    sync.flags = OperandSync::kSingleTile | OperandSync::kOneAxis;
    return slot;
  };
  if (node > 0) {
    context.set(0, operand(own - kWordsPerNode));
    if (node == shape_.hang_at) ++context.operands[0].target;
  }
  context.set(1, operand(own));
  const ChainArgs args{.input = node > 0 ? data_ + (at - 1) * blocks : nullptr,
                       .output = data_ + at * blocks,
                       .seed = seed_,
                       .times = shape_.measure ? times_ + 2 * at * blocks : nullptr,
                       .delay_ns = shape_.delay_ns,
                       .node = static_cast<std::uint32_t>(node)};
  Launch launch{.node = node,
                .name = "node " + std::to_string(node),
                .kernel = &kernel_,
                .num_blocks = shape_.num_blocks,
                .num_works = shape_.num_blocks,
                .resources = {.threads = kThreads, .shared_bytes = 0},
                .args = to_bytes(args),
                .context = to_bytes(context),
                .stream = node % shape_.num_streams,
                .begun = own + 2 * kSlotWords,
                .begun_base = own + 3 * kSlotWords,
                .abort = abort_};
  if (node > 0) launch.after = {{.on = node - 1, .release = shape_.release}};
  if (shape_.release == Release::kLaunchCompleted) {
    launch.completion_event = CompletionEvent::kLaunchCompletion;
  }
  launch.wait_kernel = {.report = report_,
                        .deadline_ns = shape_.deadline_ns,
                        .node = static_cast<std::uint32_t>(node)};
  return launch;
}

void Chain::launch(LaunchQueue& queue) const {
  for (const Launch& node : nodes_) queue.launch(node);
  queue.barrier();
  queue.launch(base_update_);
  queue.barrier();
}

void Chain::set_seed(std::uint32_t seed) {
  device_.upload(seed_, &seed, sizeof(seed));
}

std::vector<std::uint32_t> Chain::expected(std::uint32_t seed) const {
  const auto blocks = static_cast<std::uint32_t>(shape_.num_blocks);
  std::vector<std::uint32_t> before;
  for (int node = 0; node < shape_.num_nodes; ++node) {
    std::vector<std::uint32_t> now(blocks);
    for (std::uint32_t b = 0; b < blocks; ++b) {
      std::uint32_t sum = 0;
      for (std::uint32_t i = 0; i < before.size(); ++i) sum += mix(before[i] + i + b);
      now[b] = mix(sum + seed + static_cast<std::uint32_t>(node) + b);
    }
    before = std::move(now);
  }
  return before;
}

const std::uint32_t* Chain::output_of(int node) const {
  return data_ + static_cast<std::size_t>(node) * static_cast<std::size_t>(shape_.num_blocks);
}

std::vector<std::uint32_t> Chain::result() const {
  std::vector<std::uint32_t> values(static_cast<std::size_t>(shape_.num_blocks));
  device_.download(values.data(), output_of(shape_.num_nodes - 1),
                   values.size() * sizeof(std::uint32_t));
  return values;
}

std::uint32_t Chain::abort_word() const {
  std::uint32_t word = 0;
  device_.download(&word, abort_, sizeof(word));
  return word;
}

void Chain::reset() {
  std::vector<std::uint32_t> words(static_cast<std::size_t>(shape_.num_nodes) * kWordsPerNode,
                                   shape_.start_count);
  device_.upload(words_, words.data(), words.size() * sizeof(std::uint32_t));
  device_.fill(abort_, 0, sizeof(std::uint32_t));
  *report_ = {};
}

std::vector<std::uint64_t> Chain::times(int node) const {
  const auto count = 2 * static_cast<std::size_t>(shape_.num_blocks);
  std::vector<std::uint64_t> values(count);
  device_.download(values.data(), times_ + static_cast<std::size_t>(node) * count,
                   count * sizeof(std::uint64_t));
  return values;
}

namespace {

class ChainItself : public GpuTest {};

TEST_F(ChainItself, GivesAnotherResultForAnotherSeed) {
  const auto device = open_cuda_device();
  const auto queue = device->open_queue(1);
  Chain chain(*device, {.num_nodes = 3, .num_streams = 1});
  chain.launch(*queue);
  queue->synchronize();
  EXPECT_EQ(chain.result(), chain.expected(0));
  EXPECT_NE(chain.result(), chain.expected(1));
}

TEST_F(ChainItself, IsWrongWhenABlockDoesNotWait) {
  const auto device = open_cuda_device();
  const auto queue = device->open_queue(2);
  Chain chain(*device, {.num_nodes = 40, .delay_ns = 20'000});
  for (const Launch& node : chain.nodes()) {
    Launch blind = node;
    blind.after.clear();
    SyncContext<2> context{};
    std::copy(blind.context.begin(), blind.context.end(), reinterpret_cast<std::byte*>(&context));
    context.operands[0].words = nullptr;  // nothing to wait for
    blind.context = to_bytes(context);
    queue->launch(blind);
  }
  queue->synchronize();
  EXPECT_NE(chain.result(), chain.expected(0));
}

}  // namespace
}  // namespace tileweave
