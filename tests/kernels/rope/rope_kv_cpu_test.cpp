// QKV projection, QK-norm, rope_kv into a KV pool, and consumers of q, k and v, on the emulated
// device with checking views.
#include <gtest/gtest.h>

#include <cstdint>
#include <string>
#include <vector>

#include "tests/kernels/operand_values.h"
#include "tileweave/kernels/gemm/gemm.h"
#include "tileweave/kernels/norm/qk_norm.h"
#include "tileweave/kernels/norm/rms_norm.h"
#include "tileweave/kernels/rope/rope_frequencies.h"
#include "tileweave/kernels/rope/rope_kv.h"
#include "tileweave/runtime/program.h"

namespace tileweave {
namespace {

struct Case {
  std::string name;
  Coord qkv_tiles = {}, q_tiles = {}, kv_tiles = {};
  RopeKvOptions rope = {};
  bool fused_norm = false;
};

std::vector<Case> cases() {
  return {{"rows", {16, 96}, {16, 48}, {16, 24}},
          {"fused norm", {8, 96}, {4, 48}, {4, 24}, {}, true},
          {"columns", {37, 8}, {37, 16}, {37, 8}, {.tile_m = 37, .tile_kv_heads = 1}},
          {"2-D", {6, 20}, {9, 31}, {5, 10}, {.tile_m = 4, .tile_kv_heads = 2}, true},
          {"persistent blocks",
           {8, 32},
           {8, 16},
           {8, 24},
           {.tile_m = 3, .tile_kv_heads = 1, .num_blocks = 3}}};
}

constexpr std::int64_t kRows = 37, kHeads = 6, kKvHeads = 3, kDim = 8;
constexpr std::int64_t kPoolRows = 50;

struct Result {
  std::vector<float> q, zq, zk, zv, k_pool, v_pool;
  bool operator==(const Result&) const = default;
};

/// A KV pool in device memory, filled with bytes that no key or value has.
class Pool {
 public:
  explicit Pool(Device& device) : device_(device), memory_(device.allocate(kBytes)) {
    device.fill(memory_, 0x5a, kBytes);
  }
  Pool(const Pool&) = delete;
  Pool& operator=(const Pool&) = delete;
  ~Pool() { device_.release(memory_); }

  void* address() const { return memory_; }
  std::vector<float> read() const {
    std::vector<float> values(kBytes / sizeof(float));
    device_.download(values.data(), memory_, kBytes);
    return values;
  }

 private:
  static constexpr std::size_t kBytes = kPoolRows * kKvHeads * kDim * sizeof(float);
  Device& device_;
  void* memory_;
};

/// With a pool, K and V go to scattered rows of it; without one, consumers read them as matrices.
Result run(Device& device, const Case& c, bool with_pool, const RunOptions& options) {
  const std::int64_t k = 33, n = (kHeads + 2 * kKvHeads) * kDim, p = 24;
  const Pool k_pool(device), v_pool(device);
  Plan plan({.num_streams = 3, .edge = {.start = StartRule::kWaitAll}});
  const auto constant = [&](const char* name, const Shape& shape, DType type = DType::kF32) {
    return plan.tensor(
        {.name = name, .shape = shape, .dtype = type, .kind = TensorKind::kConstant});
  };
  const auto kv = [&](const char* name, const Pool& pool) {
    return plan.tensor({.name = name,
                        .shape = {kRows, kKvHeads * kDim},
                        .tiles = c.kv_tiles,
                        .address = with_pool ? pool.address() : nullptr});
  };
  const TensorId x = constant("X", {kRows, k}), w = constant("W", {k, n});
  const TensorId wq = constant("wq", {kDim}), wk = constant("wk", {kDim});
  const TensorId v = constant("V", {kHeads * kDim, p}), u = constant("U", {kKvHeads * kDim, p});
  const TensorId qkv = plan.tensor({.name = "QKV", .shape = {kRows, n}, .tiles = c.qkv_tiles});
  RopeKvTensors operands{
      .qkv = qkv,
      .positions = constant("positions", {kRows}, DType::kI32),
      .slots = constant("slots", {kRows}, DType::kI32),
      .inv_freq = constant("inv_freq", {kDim / 2}),
      .q = plan.tensor(
          {.name = "Q", .shape = {kRows, kHeads * kDim}, .tiles = c.q_tiles, .output = true}),
      .k_step = kv("K", k_pool),
      .v_step = kv("V_step", v_pool)};
  RopeKvOptions rope = c.rope;
  rope.heads = kHeads;
  rope.kv_heads = kKvHeads;
  rope.pool_rows = with_pool ? kPoolRows : 0;
  plan.add(gemm(plan.tensors(), {.name = "qkv", .tile_m = 16, .tile_n = 24}, x, w, qkv));
  if (c.fused_norm) {
    operands.q_norm = wq;
    operands.k_norm = wk;
  } else {
    operands.qkv = plan.tensor(
        {.name = "N", .shape = {kRows, n}, .tiles = c.qkv_tiles, .shares_buffer_with = qkv});
    plan.add(qk_norm(plan.tensors(),
                     {.heads = kHeads, .kv_heads = kKvHeads, .tile_m = 5, .tile_heads = 3}, qkv, wq,
                     wk, operands.qkv));
  }
  plan.add(rope_kv(plan.tensors(), rope, operands));
  const auto consumer = [&](const char* name, TensorId a, TensorId b) {
    const TensorId z = plan.tensor({.name = name, .shape = {kRows, p}, .output = true});
    plan.add(gemm(plan.tensors(), {.name = name, .tile_m = 12, .tile_n = 20}, a, b, z));
    return z;
  };
  std::vector<TensorId> results = {consumer("ZQ", operands.q, v)};
  if (!with_pool) {
    results.push_back(consumer("ZK", operands.k_step, u));
    results.push_back(consumer("ZV", operands.v_step, u));
  }
  Program program(device, plan, options);
  program.write(x, random_values<float>(kRows * k, 1));
  program.write(w, random_values<float>(k * n, 2));
  program.write(v, random_values<float>(kHeads * kDim * p, 3));
  program.write(u, random_values<float>(kKvHeads * kDim * p, 4));
  program.write(wq, random_values<float>(kDim, 5));
  program.write(wk, random_values<float>(kDim, 6));
  program.write(operands.inv_freq, rope_inv_freq({.head_dim = kDim, .theta = 500000}));
  std::vector<std::int32_t> positions, slots;
  for (std::int32_t t = 0; t < kRows; ++t) {
    positions.push_back(100 * t);
    slots.push_back(!with_pool ? t : t % 9 == 8 ? -1 : (t * 7 + 3) % static_cast<int>(kPoolRows));
  }
  program.write(operands.positions, positions);
  program.write(operands.slots, slots);
  for (int i = 0; i < 2; ++i) program.run();
  program.synchronize();
  Result result{program.read<float>(operands.q), program.read<float>(results[0]), {}, {}, {}, {}};
  if (with_pool) {
    result.k_pool = k_pool.read();
    result.v_pool = v_pool.read();
  } else {
    result.zk = program.read<float>(results[1]);
    result.zv = program.read<float>(results[2]);
  }
  return result;
}

void add_all(Device& device) {
  add_gemm_cpu(device.kernels());
  add_norm_cpu(device.kernels());
  add_rope_cpu(device.kernels());
}

TEST(RopeKvCpu, AfterAProjectionEveryTilingAndModeGivesTheSameBits) {
  const auto device = open_cpu_device({.num_sms = 3, .check_views = CheckViews::kOn});
  add_all(*device);
  for (const bool with_pool : {false, true}) {
    const Result expected = run(*device, {.name = "untiled"}, with_pool, {.mode = Mode::kSerial});
    for (const Case& c : cases()) {
      for (const Mode mode : {Mode::kSerial, Mode::kOverlap}) {
        SCOPED_TRACE(c.name + (mode == Mode::kSerial ? ", serial" : ", overlap"));
        EXPECT_TRUE(run(*device, c, with_pool, {.mode = mode}) == expected);
      }
    }
  }
}

TEST(RopeKvCpu, ExploredSchedulesGiveTheBitsOfSerial) {
  for (const Case& c : cases()) {
    for (const bool with_pool : {false, true}) {
      Result expected;
      for (std::uint64_t seed = 1; seed <= 4; ++seed) {
        SCOPED_TRACE(c.name + ", seed " + std::to_string(seed));
        const auto device = open_cpu_device({.way = CpuWay::kExplore,
                                             .num_sms = seed % 2 == 0 ? 2 : 7,
                                             .seed = seed,
                                             .delay_probability = 0.2,
                                             .check_views = CheckViews::kOn});
        add_all(*device);
        if (seed == 1) expected = run(*device, c, with_pool, {.mode = Mode::kSerial});
        ASSERT_TRUE(run(*device, c, with_pool, {}) == expected);
      }
    }
  }
}

}  // namespace
}  // namespace tileweave
