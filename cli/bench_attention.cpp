#include "cli/bench_attention.h"

#include <fmt/format.h>

#include <algorithm>
#include <functional>
#include <memory>
#include <numeric>
#include <random>
#include <utility>
#include <vector>

#include "cli/bench_nodes.h"
#include "cli/command_line.h"
#include "cli/cuda_machine.h"
#include "cli/hop_report.h"
#include "cli/kernel_report.h"
#include "cli/progress_bar.h"
#include "cli/timed_arms.h"
#include "tileweave/kernels/attention/decode_attention.h"
#include "tileweave/kernels/attention/paged_attention.h"
#include "tileweave/models/random_fill.h"
#include "tileweave/runtime/device_memory.h"
#include "tileweave/runtime/program.h"

namespace tileweave::cli {
namespace {

constexpr std::int64_t kPageSize = 16;
constexpr std::int64_t kChainNodes = 64;
/// Of keys and values in all nodes of an arm: far more than the L2 holds.
constexpr std::int64_t kBytesOfKeys = std::int64_t{3} << 30;

enum class QkNorm : std::uint8_t { kNo, kYes };

struct Case {
  const char* name;
  std::int64_t heads, kv_heads, head_dim;
  QkNorm norm;
  std::int64_t rows = 1, context = 1;  // keys per row, its own among them

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

constexpr Case kModels[] = {{"Llama-3.2-1B", 32, 8, 64, QkNorm::kNo},
                            {"Qwen3-0.6B", 16, 8, 128, QkNorm::kYes},
                            {"Qwen3-8B", 32, 8, 128, QkNorm::kYes}};

constexpr EdgeKind kEdges[] = {EdgeKind::kFull, EdgeKind::kProgrammatic};

const char* arm_of(EdgeKind edge) {
  return edge == EdgeKind::kFull ? "serial" : "pdl";
}

std::string arm_name(EdgeKind edge, const DecodeAttentionOptions& options) {
  return fmt::format("{}, buffers {}, splits {}", arm_of(edge), options.buffers,
                     options.num_splits == 0 ? "auto" : std::to_string(options.num_splits));
}

class Attention {
 public:
  Attention(Device& device, const Case& which, std::int64_t nodes)
      : device_(device),
        case_(which),
        nodes_(nodes),
        pools_(device, static_cast<std::size_t>(2 * which.pool_bytes() * nodes)),
        qkv_(device, static_cast<std::size_t>(which.rows * which.columns() * 4)),
        norm_(device, static_cast<std::size_t>(which.head_dim * 2)),
        inv_freq_(device, static_cast<std::size_t>(which.head_dim * 2)),
        positions_(device, static_cast<std::size_t>(which.rows * 4)),
        slots_(device, static_cast<std::size_t>(which.rows * 4)),
        sequences_(device, static_cast<std::size_t>(which.rows * 4)),
        pages_(device, static_cast<std::size_t>(which.rows * which.max_pages() * 4)) {
    fill(pools_, which.pool_bytes() * nodes, 1.7F, 7);
    fill(norm_, which.head_dim, 1.0F, 11);
    std::mt19937 random(13);
    std::vector<float> x(static_cast<std::size_t>(which.rows * which.columns()));
    for (float& value : x) value = std::uniform_real_distribution<float>(-1.7F, 1.7F)(random);
    write(qkv_, x);
    std::vector<float> frequencies;
    for (std::int64_t i = 0; i < which.head_dim / 2; ++i) {
      frequencies.push_back(1.0F / static_cast<float>(1 + 3 * i));
    }
    write(inv_freq_, frequencies);
    std::vector<std::int32_t> table(static_cast<std::size_t>(which.rows * which.max_pages()));
    std::iota(table.begin(), table.end(), 0);
    std::shuffle(table.begin(), table.end(), random);
    write(pages_, table);
    std::vector<std::int32_t> at, slot, sequence;
    for (std::int64_t t = 0; t < which.rows; ++t) {
      const std::int64_t own = which.context - 1;
      const auto page = static_cast<std::size_t>(t * which.max_pages() + own / kPageSize);
      at.push_back(static_cast<std::int32_t>(own));
      slot.push_back(static_cast<std::int32_t>(table[page] * kPageSize + own % kPageSize));
      sequence.push_back(static_cast<std::int32_t>(t));
    }
    write(positions_, at);
    write(slots_, slot);
    write(sequences_, sequence);
  }

  std::int64_t nodes() const { return nodes_; }

  /// Each node's row of qkv is made from the result of the node before.
  TimedArm chain(EdgeKind edge, const DecodeAttentionOptions& options) const {
    Plan plan = plan_of(edge);
    const TensorId first = base(plan);
    DecodeAttentionTensors at = constants(plan);
    at.qkv = first;
    for (std::int64_t i = 0; i < nodes_; ++i) {
      at.qkv = next(plan, attend(plan, at, options, i), first, i);
    }
    return made(arm_name(edge, options), std::move(plan));
  }
  TimedArm copies(EdgeKind edge) const {
    Plan plan = plan_of(edge);
    const TensorId first = base(plan);
    TensorId row = first;
    for (std::int64_t i = 0; i < nodes_; ++i) row = next(plan, row, first, i);
    return made(std::string(arm_of(edge)) + ", copies", std::move(plan));
  }
  /// Nodes that have nothing in common.
  TimedArm alone(EdgeKind edge, const DecodeAttentionOptions& options) const {
    Plan plan = plan_of(edge);
    DecodeAttentionTensors at = constants(plan);
    at.qkv = base(plan);
    for (std::int64_t i = 0; i < nodes_; ++i) attend(plan, at, options, i);
    return made(arm_name(edge, options), std::move(plan));
  }

  TimedArm bare(std::int64_t blocks) const {
    Plan plan = plan_of(EdgeKind::kFull);
    for (std::int64_t i = 0; i < nodes_; ++i) {
      const TensorId from =
          fixed(plan, "pool" + std::to_string(i), {case_.bytes()}, DType::kU8, keys_of(i));
      plan.add(
          bare_read_node("read " + std::to_string(i), from, case_.bytes(), blocks, norm_.at()));
    }
    return made(fmt::format("bare read, {} blocks", blocks), std::move(plan));
  }

 private:
  void fill(const DeviceMemory& to, std::int64_t count, float spread, std::uint64_t seed) const {
    fill_random_on(device_, reinterpret_cast<BFloat16*>(to.at()),
                   {.seed = seed, .count = count, .spread = spread});
  }
  template <class T>
  void write(const DeviceMemory& to, const std::vector<T>& values) const {
    device_.upload(to.at(), values.data(), values.size() * sizeof(T));
  }
  /// Keys of a node; its values follow.
  std::byte* keys_of(std::int64_t node) const {
    return pools_.at(static_cast<std::size_t>(2 * case_.pool_bytes() * node));
  }

  static TensorId fixed(Plan& plan, const std::string& name, const Shape& shape, DType dtype,
                        void* at, TensorKind kind = TensorKind::kConstant) {
    return plan.tensor({.name = name, .shape = shape, .dtype = dtype, .kind = kind, .address = at});
  }
  TensorId base(Plan& plan) const {
    return fixed(plan, "base", {case_.rows, case_.columns()}, DType::kF32, qkv_.at());
  }
  static Plan plan_of(EdgeKind edge) {
    return Plan({.name = "attention", .num_streams = 1, .edge = {.kind = edge}});
  }
  TimedArm made(const std::string& name, Plan&& plan) const {
    return {.name = name,
            .program = std::make_unique<Program>(
                device_, std::move(plan), RunOptions{.launch_order = LaunchOrder::kTrusted})};
  }

  DecodeAttentionTensors constants(Plan& plan) const {
    DecodeAttentionTensors at;
    const auto numbers = [&](const char* name, const DeviceMemory& memory) {
      return fixed(plan, name, {case_.rows}, DType::kI32, memory.at());
    };
    at.positions = numbers("positions", positions_);
    at.slots = numbers("slots", slots_);
    at.sequence_of_row = numbers("sequences", sequences_);
    at.page_table = fixed(plan, "pages", {case_.rows, case_.max_pages()}, DType::kI32, pages_.at());
    at.inv_freq = fixed(plan, "inv_freq", {case_.head_dim / 2}, DType::kF32, inv_freq_.at());
    if (case_.norm == QkNorm::kYes) {
      at.q_norm = fixed(plan, "q_norm", {case_.head_dim}, DType::kBF16, norm_.at());
      at.k_norm = fixed(plan, "k_norm", {case_.head_dim}, DType::kBF16, norm_.at());
    }
    return at;
  }

  /// Node i of a plan; its result.
  TensorId attend(Plan& plan, DecodeAttentionTensors at, DecodeAttentionOptions options,
                  std::int64_t i) const {
    const std::string number = std::to_string(i);
    std::byte* const keys = keys_of(i);
    std::byte* const values = keys + case_.pool_bytes();
    const Shape pool{case_.pool_rows(), case_.kv_columns()};
    at.k_past = fixed(plan, "k" + number, pool, DType::kBF16, keys, TensorKind::kState);
    at.v_past = fixed(plan, "v" + number, pool, DType::kBF16, values, TensorKind::kState);
    const auto result = [&](const char* name, std::int64_t columns, void* address) {
      return plan.tensor({.name = name + number,
                          .shape = {case_.rows, columns},
                          .dtype = DType::kBF16,
                          .output = address != nullptr || i + 1 == nodes_,
                          .address = address});
    };
    at.k_step = result("k_step", case_.kv_columns(), keys);
    at.v_step = result("v_step", case_.kv_columns(), values);
    at.out = result("out", case_.q_columns(), nullptr);
    options.name = "attention " + number;
    options.heads = case_.heads;
    options.kv_heads = case_.kv_heads;
    options.pool_rows = case_.pool_rows();
    options.page_size = kPageSize;
    plan.add(decode_attention(plan.tensors(), options, at));
    return at.out;
  }

  /// The next row of qkv from `from`: a result of attention, or a row of qkv.
  TensorId next(Plan& plan, TensorId from, TensorId base, std::int64_t i) const {
    const TensorId to = plan.tensor({.name = "qkv" + std::to_string(i + 1),
                                     .shape = {case_.rows, case_.columns()},
                                     .output = i + 1 == nodes_});
    plan.add(next_row_node(plan.tensors(), "next " + std::to_string(i), from, base, to));
    return to;
  }

  Device& device_;
  const Case& case_;
  std::int64_t nodes_;
  DeviceMemory pools_;  // of node i: keys, then values
  DeviceMemory qkv_, norm_, inv_freq_, positions_, slots_, sequences_, pages_;
};

/// More than the L2 holds: written over before a run, nothing of the run is there.
class ColdL2 {
 public:
  explicit ColdL2(Device& device) : device_(device), memory_(device, kBytes) {}
  void operator()() const {
    device_.fill(memory_.at(), 0, kBytes);
    std::byte last{};
    device_.download(&last, memory_.at(kBytes - 1), 1);  // the fill is over
  }

 private:
  static constexpr std::size_t kBytes = std::size_t{256} << 20;
  Device& device_;
  DeviceMemory memory_;
};

void measure_chain(Device& device, const ColdL2& cold, const Case& which, KernelReport& report) {
  const Attention bench(device, which, kChainNodes);
  std::vector<TimedArm> arms;
  std::vector<std::size_t> beside;  // per arm, the one to subtract
  std::vector<std::int64_t> splits = {0};
  if (which.context > 256) splits.insert(splits.end(), {1, 2, 4});
  for (const EdgeKind edge : kEdges) {
    const std::size_t copies = arms.size();
    arms.push_back(bench.copies(edge));
    beside.push_back(copies);
    for (const std::int64_t buffers : {1, 2}) {
      for (const std::int64_t n : splits) {
        arms.push_back(bench.chain(edge, {.num_splits = n, .buffers = buffers}));
        beside.push_back(copies);
      }
    }
  }
  time_in_turn(arms, bench.nodes(), report.repeat, std::cref(cold));
  for (std::size_t i = 0; i < arms.size(); ++i) {
    if (beside[i] == i) continue;
    report.rows.push_back({.name = which.name,
                           .kind = "chain",
                           .rows = which.rows,
                           .context = which.context,
                           .mb = static_cast<double>(which.bytes()) * 1e-6,
                           .arm = arms[i].name,
                           .us = median(arms[i].us),
                           .beside = median(arms[beside[i]].us)});
  }
}

void measure_alone(Device& device, const ColdL2& cold, const Case& which, KernelReport& report) {
  const Attention bench(device, which,
                        std::clamp<std::int64_t>(kBytesOfKeys / which.bytes(), 8, 32));
  std::vector<TimedArm> arms;
  for (const std::int64_t blocks : {1, 2, 4}) {
    arms.push_back(bench.bare(blocks * device.limits().num_sms));
  }
  const std::size_t num_bare = arms.size();
  for (const EdgeKind edge : kEdges) {
    for (const std::int64_t buffers : {0, 1, 2}) {
      for (const std::int64_t n : {0, 1, 2, 4, 8, 16, 32}) {
        if (n != 0 && (edge != EdgeKind::kFull || which.rows * which.kv_heads * n < 64)) continue;
        arms.push_back(bench.alone(edge, {.num_splits = n, .buffers = buffers}));
      }
    }
  }
  time_in_turn(arms, bench.nodes(), report.repeat, std::cref(cold));
  double bare = median(arms[0].us);
  for (std::size_t i = 1; i < num_bare; ++i) bare = std::min(bare, median(arms[i].us));
  for (std::size_t i = num_bare; i < arms.size(); ++i) {
    report.rows.push_back({.name = which.name,
                           .kind = "alone",
                           .rows = which.rows,
                           .context = which.context,
                           .mb = static_cast<double>(which.bytes()) * 1e-6,
                           .arm = arms[i].name,
                           .us = median(arms[i].us),
                           .beside = bare});
  }
}

}  // namespace

int bench_attention(const BenchAttentionOptions& options, std::ostream& out, std::ostream& err) {
  const std::unique_ptr<Device> device = open_cuda_device();  // or says why there is none
  add_attention(*device);
  add_bench_kernels(*device);
  KernelReport report{.verb = "bench attention",
                      .beside = "copies, or a bare read,",
                      .machine = device->limits().name,
                      .sms = device->limits().num_sms,
                      .streaming_rate = measure_cuda_read_rate().best,
                      .repeat = options.repeat};
  const ColdL2 cold(*device);
  {
    ProgressBar bar(err, "measuring");
    constexpr std::int64_t kContexts[] = {128, 192, 1024};
    constexpr std::pair<std::int64_t, std::int64_t> kMany[] = {{16, 1024}, {1, 32768}};
    std::size_t done = 0;
    const std::size_t all = std::size(kModels) * std::size(kContexts) + std::size(kMany);
    for (Case which : kModels) {
      for (const std::int64_t context : kContexts) {
        which.context = context;
        measure_chain(*device, cold, which, report);
        bar.update(++done, all);
      }
    }
    Case many = kModels[std::size(kModels) - 1];
    for (const auto& [rows, context] : kMany) {
      many.rows = rows;
      many.context = context;
      measure_alone(*device, cold, many, report);
      bar.update(++done, all);
    }
  }
  write_report(report, options.form, options.json_file, out);
  return kSuccess;
}

}  // namespace tileweave::cli
