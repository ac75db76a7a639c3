// decode_attention_bench: decode attention in chains of dependent nodes, and alone with many cold
// keys against a bare read of the same bytes, in one run. Arms alternate; medians.
//
// In a chain a small kernel makes the next row of qkv from what attention left; a chain of such
// kernels alone is the arm to subtract.
//
//   decode_attention_bench [--repeat R] [--json FILE]
#include <cuda_runtime_api.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <exception>
#include <memory>
#include <numeric>
#include <random>
#include <string>
#include <vector>

#include "bench/arms.h"
#include "bench/bare_read.cuh"
#include "bench/random_fill.cuh"
#include "tileweave/core/atomic_file.h"
#include "tileweave/core/error.h"
#include "tileweave/kernels/attention/decode_attention.h"
#include "tileweave/kernels/attention/paged_attention.h"
#include "tileweave/models/device_memory.h"
#include "tileweave/runtime/program.h"
#include "tileweave/sync/access.h"
#include "tileweave/sync/atomics_cuda.cuh"
#include "tileweave/sync/sync_cta.h"

namespace {

using namespace tileweave;  // NOLINT: a program of its own
using bench::Arm;
using bench::median;
using bench::time_in_turn;

constexpr int kPageSize = 16;

constexpr int kNextThreads = 512;
constexpr int kNextLoads = 4;  // of four columns each, per thread

struct NextArgs {
  Produced<BFloat16> attended;  // null: `before` instead
  Produced<float> before;
  Stable<float> base;
  Output<float> qkv;
  std::int32_t attended_columns, columns;
};

/// qkv = base + a little of what came before: one block, so that nothing but a dependency is added.
__global__ void __launch_bounds__(kNextThreads)
    next_qkv(const __grid_constant__ NextArgs args,
             const __grid_constant__ SyncContext<2> context) {
  SyncCta<AtomicsCuda, 2> sync(context);
  if (!sync.begin_cta()) return;
  sync.remap(0);
  const auto column = [](int i) { return (i * kNextThreads + static_cast<int>(threadIdx.x)) * 4; };
  float4 x[kNextLoads];
#pragma unroll
  for (int i = 0; i < kNextLoads; ++i) {
    if (column(i) < args.columns) {
      x[i] = *reinterpret_cast<const float4*>(args.base.get() + column(i));
    }
  }
  const Ready ready = sync.wait_input(0, {0, 0});
  if (!ready) return;
  const BFloat16* const attended = args.attended.get(ready);
  const float* const before = args.before.get(ready);
  float little[kNextLoads];
#pragma unroll
  for (int i = 0; i < kNextLoads; ++i) {
    if (column(i) >= args.columns) continue;
    little[i] = attended != nullptr ? to_float(attended[column(i) % args.attended_columns])
                                    : before[column(i)];
  }
#pragma unroll
  for (int i = 0; i < kNextLoads; ++i) {
    if (column(i) >= args.columns) continue;
    const float add = little[i] * 1e-3F;
    *reinterpret_cast<float4*>(args.qkv.get() + column(i)) = {x[i].x + add, x[i].y + add,
                                                              x[i].z + add, x[i].w + add};
  }
  sync.signal_output(1, {0, 0});
}

struct Case {
  std::string name;
  std::int64_t heads, kv_heads, head_dim;
  bool norm;
  std::int64_t rows, context;  // keys per row, its own among them

  std::int64_t q_columns() const { return heads * head_dim; }
  std::int64_t kv_columns() const { return kv_heads * head_dim; }
  std::int64_t columns() const { return q_columns() + 2 * kv_columns(); }
  std::int64_t max_pages() const { return (context + 63) / kPageSize; }
  std::int64_t pool_rows() const { return rows * max_pages() * kPageSize; }
  /// Of keys or values in one pool.
  std::int64_t pool_bytes() const { return pool_rows() * kv_columns() * 2; }
  /// That a node must read.
  std::int64_t bytes() const { return rows * (context - 1) * kv_columns() * 2 * 2; }
};

struct Bench {
  Device& device;
  Case c;
  int length;
  DeviceMemory pools;  // of node i: keys, then values
  DeviceMemory qkv, norm, inv_freq, positions, slots, sequences, pages;

  template <class T>
  void write(const DeviceMemory& to, const std::vector<T>& values) const {
    device.upload(to.at(), values.data(), values.size() * sizeof(T));
  }

  Bench(Device& d, const Case& which, int nodes)
      : device(d),
        c(which),
        length(nodes),
        pools(d, 2 * c.pool_bytes() * nodes),
        qkv(d, c.rows * c.columns() * 4),
        norm(d, c.head_dim * 2),
        inv_freq(d, c.head_dim * 2),
        positions(d, c.rows * 4),
        slots(d, c.rows * 4),
        sequences(d, c.rows * 4),
        pages(d, c.rows * c.max_pages() * 4) {
    bench::fill_random_bf16(pools.at(), c.pool_bytes() * nodes, 1.7F, 7);
    bench::fill_random_bf16(norm.at(), c.head_dim, 1.0F, 11);
    std::mt19937 random(13);
    std::vector<float> x(static_cast<std::size_t>(c.rows * c.columns()));
    for (float& value : x) value = std::uniform_real_distribution<float>(-1.7F, 1.7F)(random);
    write(qkv, x);
    std::vector<float> frequencies;
    for (std::int64_t i = 0; i < c.head_dim / 2; ++i) {
      frequencies.push_back(1.0F / static_cast<float>(1 + 3 * i));
    }
    write(inv_freq, frequencies);
    std::vector<std::int32_t> table(static_cast<std::size_t>(c.rows * c.max_pages()));
    std::iota(table.begin(), table.end(), 0);
    std::shuffle(table.begin(), table.end(), random);
    write(pages, table);
    std::vector<std::int32_t> at, slot, sequence;
    for (std::int64_t t = 0; t < c.rows; ++t) {
      const std::int64_t own = c.context - 1;
      const auto page = static_cast<std::size_t>(t * c.max_pages() + own / kPageSize);
      at.push_back(static_cast<std::int32_t>(own));
      slot.push_back(table[page] * kPageSize + static_cast<std::int32_t>(own % kPageSize));
      sequence.push_back(static_cast<std::int32_t>(t));
    }
    write(positions, at);
    write(slots, slot);
    write(sequences, sequence);
  }

  TensorId fixed(Plan& plan, const std::string& name, const Shape& shape, DType dtype, void* at,
                 TensorKind kind = TensorKind::kConstant) const {
    return plan.tensor({.name = name, .shape = shape, .dtype = dtype, .kind = kind, .address = at});
  }

  TensorId base(Plan& plan) const {
    return fixed(plan, "base", {c.rows, c.columns()}, DType::kF32, qkv.at());
  }

  /// Node i of a plan whose constants are `shared`; its result.
  TensorId attend(Plan& plan, DecodeAttentionTensors at, DecodeAttentionOptions options,
                  int i) const {
    const std::string number = std::to_string(i);
    std::byte* const keys = pools.at() + 2 * c.pool_bytes() * i;
    std::byte* const values = keys + c.pool_bytes();
    const Shape pool{c.pool_rows(), c.kv_columns()};
    at.k_past = fixed(plan, "k" + number, pool, DType::kBF16, keys, TensorKind::kState);
    at.v_past = fixed(plan, "v" + number, pool, DType::kBF16, values, TensorKind::kState);
    const auto result = [&](const char* name, std::int64_t columns, void* address) {
      return plan.tensor({.name = name + number,
                          .shape = {c.rows, columns},
                          .dtype = DType::kBF16,
                          .output = address != nullptr || i + 1 == length,
                          .address = address});
    };
    at.k_step = result("k_step", c.kv_columns(), keys);
    at.v_step = result("v_step", c.kv_columns(), values);
    at.out = result("out", c.q_columns(), nullptr);
    options.name = "attention " + number;
    options.heads = c.heads;
    options.kv_heads = c.kv_heads;
    options.pool_rows = c.pool_rows();
    options.page_size = kPageSize;
    plan.add(decode_attention(plan.tensors(), options, at));
    return at.out;
  }

  DecodeAttentionTensors constants(Plan& plan) const {
    DecodeAttentionTensors at;
    const auto numbers = [&](const char* name, const DeviceMemory& memory) {
      return fixed(plan, name, {c.rows}, DType::kI32, memory.at());
    };
    at.positions = numbers("positions", positions);
    at.slots = numbers("slots", slots);
    at.sequence_of_row = numbers("sequences", sequences);
    at.page_table = fixed(plan, "pages", {c.rows, c.max_pages()}, DType::kI32, pages.at());
    at.inv_freq = fixed(plan, "inv_freq", {c.head_dim / 2}, DType::kF32, inv_freq.at());
    if (c.norm) {
      at.q_norm = fixed(plan, "q_norm", {c.head_dim}, DType::kBF16, norm.at());
      at.k_norm = fixed(plan, "k_norm", {c.head_dim}, DType::kBF16, norm.at());
    }
    return at;
  }

  /// The next row of qkv from `from`: a result of attention, or a row of qkv.
  TensorId next(Plan& plan, TensorId from, TensorId base, int i) const {
    const TensorSpec source = plan.tensors()[from].spec;
    const bool attended = source.dtype == DType::kBF16;
    const TensorId to = plan.tensor({.name = "qkv" + std::to_string(i + 1),
                                     .shape = {c.rows, c.columns()},
                                     .output = i + 1 == length});
    const auto whole = [](const Shape& shape) {
      return TileSet::plain({shape, {shape[0], shape[1]}});
    };
    NodeSpec node;
    node.name = "next " + std::to_string(i);
    node.kernel = "bench.next_qkv";
    node.resources = {.threads = kNextThreads, .registers_per_thread = 64};
    node.operands = {{.tensor = from, .kernel_tiles = whole(source.shape), .sync_slot = 0},
                     {.tensor = to,
                      .access = Access::kWrite,
                      .kernel_tiles = whole({c.rows, c.columns()}),
                      .sync_slot = 1},
                     {.tensor = base, .when = ReadTime::kPrologue}};
    node.make_args = [attended, c = c](const Addresses& at) {
      const void* const from = at.operands[0];
      return to_bytes(
          NextArgs{.attended = {attended ? static_cast<const BFloat16*>(from) : nullptr},
                   .before = {attended ? nullptr : static_cast<const float*>(from)},
                   .base = {static_cast<const float*>(at.operands[2])},
                   .qkv = {static_cast<float*>(at.operands[1])},
                   .attended_columns = static_cast<std::int32_t>(c.q_columns()),
                   .columns = static_cast<std::int32_t>(c.columns())});
    };
    plan.add(std::move(node));
    return to;
  }

  Arm made(const std::string& name, Plan&& plan) const {
    return {.name = name,
            .program = std::make_unique<Program>(
                device, std::move(plan), RunOptions{.launch_order = LaunchOrder::kTrusted})};
  }

  static Plan plan_of(const std::string& name, EdgeKind edge) {
    return Plan({.name = name, .num_streams = 1, .edge = {.kind = edge}});
  }

  /// Each node's row of qkv is made from the result of the node before.
  Arm chain(const std::string& name, EdgeKind edge, const DecodeAttentionOptions& options) const {
    Plan plan = plan_of(name, edge);
    const TensorId first = base(plan);
    DecodeAttentionTensors at = constants(plan);
    at.qkv = first;
    for (int i = 0; i < length; ++i) {
      at.qkv = next(plan, attend(plan, at, options, i), first, i);
    }
    return made(name, std::move(plan));
  }
  Arm copies(const std::string& name, EdgeKind edge) const {
    Plan plan = plan_of(name, edge);
    const TensorId first = base(plan);
    TensorId row = first;
    for (int i = 0; i < length; ++i) row = next(plan, row, first, i);
    return made(name, std::move(plan));
  }
  /// Nodes that have nothing in common.
  Arm alone(const std::string& name, EdgeKind edge, const DecodeAttentionOptions& options) const {
    Plan plan = plan_of(name, edge);
    DecodeAttentionTensors at = constants(plan);
    at.qkv = base(plan);
    for (int i = 0; i < length; ++i) attend(plan, at, options, i);
    return made(name, std::move(plan));
  }

  Arm bare(std::int64_t blocks) const {
    Plan plan = plan_of("bare", EdgeKind::kFull);
    for (int i = 0; i < length; ++i) {
      const TensorId from = fixed(plan, "pool" + std::to_string(i), {c.bytes()}, DType::kU8,
                                  pools.at() + 2 * c.pool_bytes() * i);
      plan.add(
          bench::bare_read_node("read " + std::to_string(i), from, c.bytes(), blocks, norm.at()));
    }
    return {.name = "bare read, " + std::to_string(blocks) + " blocks",
            .program = std::make_unique<Program>(device, std::move(plan))};
  }
};

void check(cudaError_t error, const char* what) {
  if (error != cudaSuccess) throw Error(what, "success", cudaGetErrorString(error));
}

/// More than the L2 holds: written over before a run, nothing of the run is there.
class ColdL2 {
 public:
  ColdL2() { check(cudaMalloc(&memory_, kBytes), "allocate"); }
  ~ColdL2() { cudaFree(memory_); }
  ColdL2(const ColdL2&) = delete;
  ColdL2& operator=(const ColdL2&) = delete;

  void operator()() const {
    check(cudaMemset(memory_, 0, kBytes), "fill L2");
    check(cudaDeviceSynchronize(), "fill L2");
  }

 private:
  static constexpr std::size_t kBytes = std::size_t{256} << 20;
  void* memory_ = nullptr;
};

struct Report {
  std::string json;

  /// `beside`: of the copies alone, or of the bare read.
  void add(const Case& c, const char* kind, const Arm& arm, double us, double beside, int repeat) {
    json += (json.empty() ? "" : ",\n  ") + std::string("{\"case\": \"") + c.name +
            "\", \"kind\": \"" + kind + "\", \"rows\": " + std::to_string(c.rows) +
            ", \"context\": " + std::to_string(c.context) +
            ", \"mb\": " + std::to_string(static_cast<double>(c.bytes()) * 1e-6) + ", \"arm\": \"" +
            arm.name + "\", \"us\": " + std::to_string(us) +
            ", \"beside_us\": " + std::to_string(beside) +
            ", \"repeat\": " + std::to_string(repeat) + "}";
  }
};

std::string arm_name(EdgeKind edge, const DecodeAttentionOptions& o) {
  return std::string(edge == EdgeKind::kFull ? "serial" : "pdl") + ", buffers " +
         std::to_string(o.buffers) + ", splits " +
         (o.num_splits == 0 ? "auto" : std::to_string(o.num_splits));
}

constexpr EdgeKind kEdges[] = {EdgeKind::kFull, EdgeKind::kProgrammatic};

void run_chain(Device& device, const ColdL2& cold, const Case& c, int repeat, Report& report) {
  const Bench bench(device, c, 64);
  std::vector<Arm> arms;
  std::vector<std::size_t> beside;  // per arm, the one to subtract
  std::vector<std::int64_t> splits = {0};
  if (c.context > 256) splits.insert(splits.end(), {1, 2, 4});
  for (const EdgeKind edge : kEdges) {
    const std::size_t copies = arms.size();
    arms.push_back(
        bench.copies(std::string(edge == EdgeKind::kFull ? "serial" : "pdl") + ", copies", edge));
    beside.push_back(copies);
    for (const std::int64_t buffers : {1, 2}) {
      for (const std::int64_t n : splits) {
        const DecodeAttentionOptions options{.num_splits = n, .buffers = buffers};
        arms.push_back(bench.chain(arm_name(edge, options), edge, options));
        beside.push_back(copies);
      }
    }
  }
  time_in_turn(arms, bench.length, repeat, cold);
  std::printf("%s, chain of %d, %lld rows, %lld keys\n", c.name.c_str(), bench.length,
              static_cast<long long>(c.rows), static_cast<long long>(c.context));
  for (std::size_t i = 0; i < arms.size(); ++i) {
    const double us = median(arms[i].us), copy = median(arms[beside[i]].us);
    std::printf("  %-40s %8.2f us", arms[i].name.c_str(), us);
    if (beside[i] != i) std::printf("   attention %6.2f us", us - copy);
    std::printf("\n");
    report.add(c, "chain", arms[i], us, copy, repeat);
  }
}

void run_alone(Device& device, const ColdL2& cold, const Case& c, int repeat, Report& report) {
  const auto fit = (std::int64_t{3} << 30) / c.bytes();
  const Bench bench(device, c, static_cast<int>(std::clamp<std::int64_t>(fit, 8, 32)));
  std::vector<Arm> arms;
  for (const std::int64_t blocks : {132, 264, 528}) arms.push_back(bench.bare(blocks));
  const std::size_t num_bare = arms.size();
  for (const EdgeKind edge : kEdges) {
    for (const std::int64_t buffers : {0, 1, 2}) {
      for (const std::int64_t n : {0, 1, 2, 4, 8, 16, 32}) {
        if (n != 0 && (edge != EdgeKind::kFull || c.rows * c.kv_heads * n < 64)) continue;
        const DecodeAttentionOptions options{.num_splits = n, .buffers = buffers};
        arms.push_back(bench.alone(arm_name(edge, options), edge, options));
      }
    }
  }
  time_in_turn(arms, bench.length, repeat, cold);
  double bare = 1e30;
  for (std::size_t i = 0; i < num_bare; ++i) bare = std::min(bare, median(arms[i].us));
  const double mb = static_cast<double>(c.bytes()) * 1e-6;
  std::printf("%s, %d nodes, %lld rows, %lld keys, %.1f MB; bare read %.2f us, %.2f TB/s\n",
              c.name.c_str(), bench.length, static_cast<long long>(c.rows),
              static_cast<long long>(c.context), mb, bare, mb / bare);
  for (std::size_t i = 0; i < arms.size(); ++i) {
    const double us = median(arms[i].us);
    std::printf("  %-40s %8.2f us  %5.1f %% of the bare read  %5.2f TB/s\n", arms[i].name.c_str(),
                us, 100 * bare / us, mb / us);
    report.add(c, "alone", arms[i], us, bare, repeat);
  }
}

int run(int argc, char** argv) {
  int repeat = 11;
  std::string json_file;
  for (int i = 1; i + 1 < argc; i += 2) {
    if (std::strcmp(argv[i], "--repeat") == 0) repeat = std::atoi(argv[i + 1]);
    if (std::strcmp(argv[i], "--json") == 0) json_file = argv[i + 1];
  }
  const std::unique_ptr<Device> device = open_cuda_device();
  add_attention(*device);
  bench::add_bare_read(device->kernels());
  device->kernels().add({.name = "bench.next_qkv",
                         .num_sync_slots = 2,
                         .cuda_function = reinterpret_cast<const void*>(&next_qkv)});
  std::printf("%s\n", device->limits().name.c_str());
  const std::vector<Case> models = {{.name = "Llama-3.2-1B",
                                     .heads = 32,
                                     .kv_heads = 8,
                                     .head_dim = 64,
                                     .norm = false,
                                     .rows = 1,
                                     .context = 1},
                                    {.name = "Qwen3-0.6B",
                                     .heads = 16,
                                     .kv_heads = 8,
                                     .head_dim = 128,
                                     .norm = true,
                                     .rows = 1,
                                     .context = 1},
                                    {.name = "Qwen3-8B",
                                     .heads = 32,
                                     .kv_heads = 8,
                                     .head_dim = 128,
                                     .norm = true,
                                     .rows = 1,
                                     .context = 1}};
  const ColdL2 cold;
  Report report;
  for (Case c : models) {
    for (const std::int64_t context : {128, 192, 1024}) {
      c.context = context;
      run_chain(*device, cold, c, repeat, report);
    }
  }
  Case many = models.back();
  for (const auto& [rows, context] :
       {std::pair<std::int64_t, std::int64_t>{16, 1024}, {1, 32768}}) {
    many.rows = rows;
    many.context = context;
    run_alone(*device, cold, many, repeat, report);
  }
  if (!json_file.empty()) write_file_atomically(json_file, "[\n  " + report.json + "\n]\n");
  return 0;
}

}  // namespace

int main(int argc, char** argv) {
  try {
    return run(argc, argv);
  } catch (const std::exception& error) {
    std::fprintf(stderr, "%s\n", error.what());
    return 1;
  }
}
