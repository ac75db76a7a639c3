// Attention between kernels that write its operands, into the pool and tile by tile, and one that
// reads its result, on the emulated device with checking views.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <memory>
#include <string>
#include <vector>

#include "tests/kernels/attention/attention_step.h"
#include "tests/kernels/attention/copy_kernel.h"
#include "tileweave/kernels/attention/paged_attention.h"
#include "tileweave/runtime/program.h"

namespace tileweave {
namespace {

/// Tiles of the tensors around attention, in rows and kv heads; none: no semaphores.
struct ChainCase {
  std::string name;
  std::int64_t q_rows = 0, q_heads = 1;    // data tiles of q and of the result
  std::int64_t kv_rows = 0, kv_heads = 1;  // data tiles of this step's keys and values
  std::int64_t copy_rows = 4;              // rows that one work of a producer writes
  PagedAttentionOptions attention = {};
};

std::vector<ChainCase> chain_cases() {
  return {{.name = "tiles of one kind", .q_rows = 4, .kv_rows = 4, .attention = {.tile_m = 4}},
          {.name = "tiles that divide nothing",
           .q_rows = 5,
           .kv_rows = 7,
           .copy_rows = 3,
           .attention = {.tile_m = 6}},
          {.name = "whole rows", .q_rows = 8, .q_heads = 2, .kv_rows = 8, .kv_heads = 2},
          {.name = "single rows", .q_rows = 1, .kv_rows = 1, .attention = {.tile_m = 1}},
          {.name = "one work per row tile",
           .q_rows = 4,
           .kv_rows = 4,
           .attention = {.tile_m = 2, .kv_heads_per_work = 2}},
          {.name = "keys by tile only", .kv_rows = 4},
          {.name = "persistent blocks, rotated",
           .q_rows = 4,
           .kv_rows = 2,
           .attention = {.tile_m = 3, .num_blocks = 3, .order = TileOrder::rotation(2)}}};
}

AttentionStep mixed_step() {
  return {{4, 2, 8}, 4, {{1, 0, 9}, {2, 66, 1}, {3, 5, 6}, {4, 70, 3}}, 1};
}

/// Device memory with this step's rows still unwritten.
class Pool {
 public:
  Pool(Device& device, const AttentionStep& step, std::vector<float> values)
      : device_(device), values_(std::move(values)) {
    for (const std::int32_t slot : step.slots) {
      if (slot < 0) continue;
      std::fill_n(values_.begin() + slot * step.kv_width(), step.kv_width(),
                  std::numeric_limits<float>::quiet_NaN());
    }
    memory_ = device.allocate(values_.size() * sizeof(float));
    reset();
  }
  ~Pool() { device_.release(memory_); }
  Pool(const Pool&) = delete;
  Pool& operator=(const Pool&) = delete;

  void reset() { device_.upload(memory_, values_.data(), values_.size() * sizeof(float)); }
  void* memory() const { return memory_; }

 private:
  Device& device_;
  std::vector<float> values_;
  void* memory_ = nullptr;
};

class Chain {
 public:
  Chain(Device& device, const AttentionStep& step, const ChainCase& c)
      : step_(step), k_pool_(device, step, step.k_pool), v_pool_(device, step, step.v_pool) {
    const std::int64_t kv_tile = step.kv_width() / step.heads.kv_heads;
    const std::int64_t q_tile = step.q_width() / step.heads.kv_heads;
    const Coord q_tiles = c.q_rows == 0 ? Coord{} : Coord{c.q_rows, c.q_heads * q_tile};
    const Coord kv_tiles = c.kv_rows == 0 ? Coord{} : Coord{c.kv_rows, c.kv_heads * kv_tile};
    const Shape q_shape{step.rows, step.q_width()}, kv_shape{step.rows, step.kv_width()};
    q_from_ = constant("q_from", q_shape);
    k_from_ = constant("k_from", kv_shape);
    v_from_ = constant("v_from", kv_shape);
    at_.q = plan.tensor({.name = "q", .shape = q_shape, .tiles = q_tiles});
    at_.k_step = plan.tensor(
        {.name = "k_step", .shape = kv_shape, .tiles = kv_tiles, .address = k_pool_.memory()});
    at_.v_step = plan.tensor(
        {.name = "v_step", .shape = kv_shape, .tiles = kv_tiles, .address = v_pool_.memory()});
    at_.k_past = state("k_past", k_pool_);
    at_.v_past = state("v_past", v_pool_);
    const auto num_sequences = static_cast<std::int64_t>(step.past.size());
    at_.positions = numbers("positions", {step.rows});
    at_.slots = numbers("slots", {step.rows});
    at_.sequence_of_row = numbers("sequence_of_row", {step.rows});
    at_.first_row = numbers("first_row", {num_sequences});
    at_.past = numbers("past", {num_sequences});
    at_.page_table = numbers("page_table", {num_sequences, step.max_pages});
    at_.out = plan.tensor({.name = "out", .shape = q_shape, .tiles = q_tiles});
    copy_ = plan.tensor({.name = "copy", .shape = q_shape, .output = true});

    PagedAttentionOptions attention = c.attention;
    attention.head_dim = step.heads.head_dim;
    attention.page_size = step.page_size;
    const TensorTable& table = plan.tensors();
    plan.add(copy_node(table, "q", q_from_, at_.q, {c.copy_rows, q_tile}));
    plan.add(copy_node(table, "k", k_from_, at_.k_step, {c.copy_rows, kv_tile}, at_.slots));
    plan.add(copy_node(table, "v", v_from_, at_.v_step, {c.copy_rows, kv_tile}, at_.slots));
    plan.add(paged_attention(table, attention, at_));
    plan.add(copy_node(table, "consume", at_.out, copy_, {c.copy_rows, q_tile}));
  }

  std::vector<float> run(Device& device, const RunOptions& options) {
    Program program(device, plan, options);
    program.write(q_from_, step_.q);
    program.write(k_from_, step_.k_step);
    program.write(v_from_, step_.v_step);
    program.write(at_.positions, step_.positions);
    program.write(at_.slots, step_.slots);
    program.write(at_.sequence_of_row, step_.sequence_of_row);
    program.write(at_.first_row, step_.first_row);
    program.write(at_.past, step_.past);
    program.write(at_.page_table, step_.page_table);
    for (int i = 0; i < 2; ++i) {
      k_pool_.reset();
      v_pool_.reset();
      program.run();
      program.synchronize();
    }
    downgrades = program.verdict().num_downgrades();
    return program.read<float>(copy_);
  }

  Plan plan{{.num_streams = 3, .edge = {.start = StartRule::kWaitAll}}};
  std::int64_t downgrades = 0;

 private:
  TensorId constant(const char* name, const Shape& shape) {
    return plan.tensor({.name = name, .shape = shape, .kind = TensorKind::kConstant});
  }
  TensorId numbers(const char* name, const Shape& shape) {
    return plan.tensor(
        {.name = name, .shape = shape, .dtype = DType::kI32, .kind = TensorKind::kConstant});
  }
  TensorId state(const char* name, const Pool& pool) {
    return plan.tensor({.name = name,
                        .shape = {step_.pool_rows, step_.kv_width()},
                        .kind = TensorKind::kState,
                        .address = pool.memory()});
  }

  const AttentionStep step_;
  Pool k_pool_, v_pool_;
  PagedAttentionTensors at_;
  TensorId q_from_, k_from_, v_from_, copy_;
};

std::unique_ptr<Device> open(const CpuOptions& options) {
  auto device = open_cpu_device(options);
  add_attention_cpu(device->kernels());
  add_copy_cpu(device->kernels());
  return device;
}

std::vector<float> run_case(Device& device, const ChainCase& c, const RunOptions& options) {
  Chain chain(device, mixed_step(), c);
  std::vector<float> result = chain.run(device, options);
  // A downgraded edge would prove nothing about overlap.
  if (options.mode == Mode::kOverlap && c.q_rows > 0) {
    EXPECT_EQ(chain.downgrades, 0);
  }
  return result;
}

TEST(PagedAttentionCpu, GivesTheSameBitsForEveryTilingAndMode) {
  const auto device = open({.num_sms = 3, .check_views = CheckViews::kOn});
  const AttentionStep step = mixed_step();
  const std::vector<float> expected =
      run_case(*device, {.name = "untiled"}, {.mode = Mode::kSerial});
  const PagedAttentionReference exact =
      paged_attention_reference(step.problem(1 / std::sqrt(8.0F)));
  for (std::size_t i = 0; i < expected.size(); ++i) {
    ASSERT_LE(std::fabs(expected[i] - exact.out[i]), exact.bounds[i]) << "element " << i;
  }
  for (const ChainCase& c : chain_cases()) {
    for (const Mode mode : {Mode::kSerial, Mode::kOverlap}) {
      SCOPED_TRACE(c.name + (mode == Mode::kSerial ? ", serial" : ", overlap"));
      EXPECT_EQ(run_case(*device, c, {.mode = mode}), expected);
    }
  }
}

TEST(PagedAttentionCpu, ExploredSchedulesGiveTheBitsOfSerial) {
  const auto serial = open({.num_sms = 1});
  const std::vector<float> expected =
      run_case(*serial, {.name = "untiled"}, {.mode = Mode::kSerial});
  for (const ChainCase& c : chain_cases()) {
    for (std::uint64_t seed = 1; seed <= 12; ++seed) {
      SCOPED_TRACE(c.name + ", seed " + std::to_string(seed));
      const auto device = open({.way = CpuWay::kExplore,
                                .num_sms = seed % 2 == 0 ? 2 : 7,
                                .seed = seed,
                                .delay_probability = 0.2,
                                .check_views = CheckViews::kOn});
      ASSERT_EQ(run_case(*device, c, {}), expected);
    }
  }
}

}  // namespace
}  // namespace tileweave
