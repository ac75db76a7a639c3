// rope_kv on a GPU: against the reference, head by head, and between a projection and a GEMM.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>
#include <string>
#include <vector>

#include "tests/kernels/operand_values.h"
#include "tests/kernels/rounded_bound.h"
#include "tileweave/kernels/gemm/gemm.h"
#include "tileweave/kernels/norm/qk_norm.h"
#include "tileweave/kernels/norm/rms_norm.h"
#include "tileweave/kernels/rope/rope_frequencies.h"
#include "tileweave/kernels/rope/rope_kv.h"
#include "tileweave/kernels/rope/rope_kv_ref.h"
#include "tileweave/runtime/program.h"

namespace tileweave {
namespace {

constexpr std::uint16_t kUntouched = 0x5a5a;

struct Problem {
  std::int64_t heads = 0, kv_heads = 0, head_dim = 0, pool_rows = 0;
  std::vector<float> qkv;
  std::vector<std::int32_t> positions, slots;
  std::vector<float> inv_freq;
  float attention_factor = 1;
  std::vector<float> q_norm = {}, k_norm = {};

  std::int64_t rows() const { return static_cast<std::int64_t>(positions.size()); }
  std::int64_t cols() const { return (heads + 2 * kv_heads) * head_dim; }
  RopeKvReference reference() const {
    return rope_kv_reference({.heads = heads,
                              .kv_heads = kv_heads,
                              .head_dim = head_dim,
                              .qkv = qkv,
                              .positions = positions,
                              .slots = slots,
                              .inv_freq = inv_freq,
                              .attention_factor = attention_factor,
                              .q_norm = q_norm,
                              .k_norm = k_norm});
  }
};

/// Random qkv; positions from small to 131071; slots scattered over a pool of 2 T + 3 rows, every
/// fifth row padding. Norm weights are values that bf16 has.
Problem random_problem(std::int64_t rows, std::int64_t heads, std::int64_t kv_heads,
                       std::int64_t head_dim, bool normalise) {
  Problem p{.heads = heads,
            .kv_heads = kv_heads,
            .head_dim = head_dim,
            .pool_rows = 2 * rows + 3,
            .qkv = random_values<float>(rows * (heads + 2 * kv_heads) * head_dim, 41),
            .positions = {},
            .slots = {},
            .inv_freq = rope_inv_freq({.head_dim = head_dim, .theta = 500000})};
  for (std::int64_t t = 0; t < rows; ++t) {
    p.positions.push_back(static_cast<std::int32_t>(t < 3 ? t : 131071 - t * 997));
    p.slots.push_back(t % 5 == 4 ? -1 : static_cast<std::int32_t>(2 * (rows - t)));
  }
  if (normalise) {
    for (const BFloat16 w : random_values<BFloat16>(head_dim, 42)) {
      p.q_norm.push_back(to_float(w));
    }
    for (const BFloat16 w : random_values<BFloat16>(head_dim, 43)) {
      p.k_norm.push_back(to_float(w));
    }
    p.attention_factor = 1.25F;
  }
  return p;
}

/// A KV pool in device memory, filled with bytes that no key or value has.
class Pool {
 public:
  Pool(Device& device, std::int64_t elements)
      : device_(device),
        elements_(static_cast<std::size_t>(elements)),
        memory_(device.allocate(elements_ * sizeof(BFloat16))) {
    device.fill(memory_, 0x5a, elements_ * sizeof(BFloat16));
  }
  Pool(const Pool&) = delete;
  Pool& operator=(const Pool&) = delete;
  ~Pool() { device_.release(memory_); }

  void* address() const { return memory_; }
  std::vector<std::uint16_t> read() const {
    std::vector<std::uint16_t> bits(elements_);
    device_.download(bits.data(), memory_, elements_ * sizeof(BFloat16));
    return bits;
  }

 private:
  Device& device_;
  std::size_t elements_;
  void* memory_;
};

std::vector<std::uint16_t> bits_of(const std::vector<BFloat16>& values) {
  std::vector<std::uint16_t> bits;
  bits.reserve(values.size());
  for (const BFloat16 value : values) bits.push_back(value.bits);
  return bits;
}

struct Result {
  std::vector<std::uint16_t> q, k_pool, v_pool;  // bits of bf16
};

enum class Norm { kFused, kSeparate };

template <class W = float>
Result turn(Device& device, const Problem& p, RopeKvOptions options = {},
            Norm norm = Norm::kFused) {
  const std::int64_t kv_cols = p.kv_heads * p.head_dim;
  const Pool k_pool(device, p.pool_rows * kv_cols), v_pool(device, p.pool_rows * kv_cols);
  Plan plan;
  const auto constant = [&](const char* name, const Shape& shape, DType type) {
    return plan.tensor(
        {.name = name, .shape = shape, .dtype = type, .kind = TensorKind::kConstant});
  };
  const auto step = [&](const char* name, const Pool& pool) {
    return plan.tensor({.name = name,
                        .shape = {p.rows(), kv_cols},
                        .dtype = DType::kBF16,
                        .address = pool.address()});
  };
  const TensorId qkv = constant("qkv", {p.rows(), p.cols()}, DType::kF32);
  RopeKvTensors t{.qkv = qkv,
                  .positions = constant("positions", {p.rows()}, DType::kI32),
                  .slots = constant("slots", {p.rows()}, DType::kI32),
                  .inv_freq = constant("inv_freq", {p.head_dim / 2}, DType::kF32),
                  .q = plan.tensor({.name = "q",
                                    .shape = {p.rows(), p.heads * p.head_dim},
                                    .dtype = DType::kBF16,
                                    .output = true}),
                  .k_step = step("k", k_pool),
                  .v_step = step("v", v_pool)};
  options.heads = p.heads;
  options.kv_heads = p.kv_heads;
  options.pool_rows = p.pool_rows;
  options.attention_factor = p.attention_factor;
  TensorId wq = kNoTensor, wk = kNoTensor;
  if (!p.q_norm.empty()) {
    wq = constant("q_norm", {p.head_dim}, kDTypeOf<W>);
    wk = constant("k_norm", {p.head_dim}, kDTypeOf<W>);
    if (norm == Norm::kFused) {
      t.q_norm = wq;
      t.k_norm = wk;
    } else {
      t.qkv = plan.tensor({.name = "normal", .shape = {p.rows(), p.cols()}});
      plan.add(qk_norm(plan.tensors(),
                       {.heads = p.heads, .kv_heads = p.kv_heads, .eps = options.eps}, qkv, wq, wk,
                       t.qkv));
    }
  }
  plan.add(rope_kv(plan.tensors(), options, t));
  Program program(device, plan);
  program.write(qkv, p.qkv);
  program.write(t.positions, p.positions);
  program.write(t.slots, p.slots);
  program.write(t.inv_freq, p.inv_freq);
  if (wq != kNoTensor) {
    std::vector<W> q_norm, k_norm;
    for (const float w : p.q_norm) q_norm.push_back(from_float<W>(w));
    for (const float w : p.k_norm) k_norm.push_back(from_float<W>(w));
    program.write(wq, q_norm);
    program.write(wk, k_norm);
  }
  program.run();
  program.synchronize();
  return {bits_of(program.read<BFloat16>(t.q)), k_pool.read(), v_pool.read()};
}

/// What rope_kv_error_bound derives for cosines and sines that are right to one unit in the last
/// place; CUDA's are right to two. Then the rounding to bf16.
double bound(double exact, double magnitude, std::int64_t normalised_head_dim) {
  const double fp32 =
      rope_kv_error_bound(magnitude, normalised_head_dim) + std::ldexp(magnitude, -24);
  return rounded_bound(exact, fp32, DType::kBF16);
}

double value_of(std::uint16_t bits) {
  return to_float(BFloat16{bits});
}

/// q and written pool rows within the bound, v the rounded copy, the rest untouched.
void expect_near_reference(const Problem& p, const Result& result) {
  const RopeKvReference exact = p.reference();
  const std::int64_t normalised = p.q_norm.empty() ? 0 : p.head_dim;
  for (std::size_t i = 0; i < exact.q.size(); ++i) {
    ASSERT_LE(std::fabs(value_of(result.q[i]) - exact.q[i]),
              bound(exact.q[i], exact.q_magnitudes[i], normalised))
        << "q, element " << i;
  }
  const auto cols = static_cast<std::size_t>(p.kv_heads * p.head_dim);
  std::vector<std::int64_t> row_of_slot(static_cast<std::size_t>(p.pool_rows), -1);
  for (std::size_t t = 0; t < p.slots.size(); ++t) {
    if (p.slots[t] >= 0)
      row_of_slot[static_cast<std::size_t>(p.slots[t])] = static_cast<std::int64_t>(t);
  }
  for (std::size_t i = 0; i < result.k_pool.size(); ++i) {
    const std::int64_t t = row_of_slot[i / cols];
    if (t < 0) {
      ASSERT_EQ(result.k_pool[i], kUntouched) << "k pool, element " << i;
      ASSERT_EQ(result.v_pool[i], kUntouched) << "v pool, element " << i;
      continue;
    }
    const std::size_t from = static_cast<std::size_t>(t) * cols + i % cols;
    ASSERT_LE(std::fabs(value_of(result.k_pool[i]) - exact.k[from]),
              bound(exact.k[from], exact.k_magnitudes[from], normalised))
        << "k pool, element " << i << ", row " << t;
    ASSERT_EQ(result.v_pool[i], to_bfloat16(static_cast<float>(exact.v[from])).bits)
        << "v pool, element " << i << ", row " << t;
  }
}

TEST(RopeKvCuda, AgreesWithTheReferenceForEveryShape) {
  const auto device = open_cuda_device();
  add_rope(*device);
  struct Size {
    std::int64_t rows, heads, kv_heads, head_dim;
  };
  for (const Size& s :
       {Size{1, 1, 1, 2}, Size{7, 3, 1, 6}, Size{8, 4, 2, 16}, Size{9, 6, 3, 34},
        Size{1, 32, 8, 64}, Size{17, 9, 3, 64}, Size{5, 8, 2, 80}, Size{3, 6, 2, 96},
        Size{16, 16, 8, 128}, Size{3, 4, 4, 128}, Size{2, 4, 2, 136}, Size{19, 2, 1, 256}}) {
    SCOPED_TRACE(std::to_string(s.rows) + " rows, " + std::to_string(s.heads) + " + 2 x " +
                 std::to_string(s.kv_heads) + " heads of " + std::to_string(s.head_dim));
    const Problem plain = random_problem(s.rows, s.heads, s.kv_heads, s.head_dim, false);
    expect_near_reference(plain, turn(*device, plain));
    const Problem normal = random_problem(s.rows, s.heads, s.kv_heads, s.head_dim, true);
    SCOPED_TRACE("normalised");
    expect_near_reference(normal, turn<float>(*device, normal));
    expect_near_reference(normal, turn<BFloat16>(*device, normal));
  }
}

TEST(RopeKvCuda, BitsDependOnTheHeadAndItsPositionAlone) {
  const auto device = open_cuda_device();
  add_rope(*device);
  for (const std::int64_t head_dim : {22, 80, 128}) {
    const Problem p = random_problem(16, 14, 7, head_dim, true);
    const Result expected = turn<BFloat16>(*device, p);
    const auto q_cols = static_cast<std::ptrdiff_t>(p.heads * p.head_dim);
    const auto kv_cols = static_cast<std::ptrdiff_t>(p.kv_heads * p.head_dim);
    for (const std::int64_t tile_m : {1, 3, 16, 20}) {
      for (const std::int64_t tile_kv_heads : {1, 2, 6, 7}) {
        const Result tiled = turn<BFloat16>(*device, p,
                                            {.tile_m = tile_m,
                                             .tile_kv_heads = tile_kv_heads,
                                             .num_blocks = tile_kv_heads == 2 ? 2 : 0,
                                             .order = TileOrder::rotation(1)});
        SCOPED_TRACE(std::to_string(tile_m) + " rows, " + std::to_string(tile_kv_heads) +
                     " key heads of " + std::to_string(head_dim));
        EXPECT_EQ(tiled.q, expected.q);
        EXPECT_EQ(tiled.k_pool, expected.k_pool);
        EXPECT_EQ(tiled.v_pool, expected.v_pool);
      }
    }
    for (const std::size_t row : {0, 7, 15}) {
      SCOPED_TRACE("row " + std::to_string(row) + " of heads of " + std::to_string(head_dim));
      Problem alone = p;
      const auto cols = static_cast<std::ptrdiff_t>(p.cols());
      const auto at = static_cast<std::ptrdiff_t>(row);
      alone.qkv = {p.qkv.begin() + at * cols, p.qkv.begin() + (at + 1) * cols};
      alone.positions = {p.positions[row]};
      alone.slots = {0};
      alone.pool_rows = 2;
      const Result result = turn<BFloat16>(*device, alone);
      EXPECT_TRUE(std::equal(result.q.begin(), result.q.end(), expected.q.begin() + at * q_cols));
      const std::ptrdiff_t in_pool = p.slots[row] * kv_cols;
      EXPECT_TRUE(std::equal(result.k_pool.begin(), result.k_pool.begin() + kv_cols,
                             expected.k_pool.begin() + in_pool));
      EXPECT_TRUE(std::equal(result.v_pool.begin(), result.v_pool.begin() + kv_cols,
                             expected.v_pool.begin() + in_pool));
    }
  }
}

TEST(RopeKvCuda, SlotsOutsideThePoolWriteNothingAndGiveZeroQueries) {
  const auto device = open_cuda_device();
  add_rope(*device);
  for (const std::int64_t head_dim : {6, 64}) {
    for (const bool normalise : {false, true}) {
      Problem p = random_problem(4, 2, 1, head_dim, normalise);
      p.slots = {-1, static_cast<std::int32_t>(p.pool_rows), -7, 2147483647};
      p.positions = {-1, 2147483647, 0, 5};
      for (float& value : p.qkv) value = std::numeric_limits<float>::quiet_NaN();
      const Result result = turn<float>(*device, p);
      EXPECT_EQ(result.q, std::vector<std::uint16_t>(result.q.size(), 0));
      EXPECT_EQ(result.k_pool, std::vector<std::uint16_t>(result.k_pool.size(), kUntouched));
      EXPECT_EQ(result.v_pool, result.k_pool);
    }
  }
}

TEST(RopeKvCuda, TheFusedQkNormHasTheBitsOfTheSeparateOne) {
  const auto device = open_cuda_device();
  add_norm(*device);
  add_rope(*device);
  for (const std::int64_t head_dim : {2, 14, 64, 80, 128, 136}) {
    SCOPED_TRACE(std::to_string(head_dim) + " elements");
    const Problem p = random_problem(9, 4, 2, head_dim, true);
    const Result fused = turn<BFloat16>(*device, p);
    const Result separate = turn<BFloat16>(*device, p, {}, Norm::kSeparate);
    EXPECT_EQ(fused.q, separate.q);
    EXPECT_EQ(fused.k_pool, separate.k_pool);
    EXPECT_EQ(fused.v_pool, separate.v_pool);
  }
}

/// X W = QKV, Q, K and V of it, Q U = Z.
struct ChainCase {
  std::string name;
  Coord qkv_tiles = {}, q_tiles = {}, kv_tiles = {};
  RopeKvOptions rope = {};
  bool fused_norm = false;
};

std::vector<ChainCase> chain_cases() {
  return {{"rows", {16, 96}, {16, 48}, {16, 24}},
          {"rows of their own", {1, 96}, {1, 48}, {1, 24}, {.tile_m = 1}, true},
          {"fused norm", {8, 96}, {4, 48}, {4, 24}, {}, true},
          {"one word", {37, 96}, {37, 48}, {37, 24}, {.tile_m = 5, .tile_kv_heads = 1}},
          {"columns", {37, 8}, {37, 16}, {37, 8}, {.tile_m = 37, .tile_kv_heads = 1}},
          {"2-D", {6, 20}, {9, 31}, {5, 10}, {.tile_m = 4, .tile_kv_heads = 2}, true},
          {"persistent blocks",
           {8, 32},
           {8, 16},
           {8, 24},
           {.tile_m = 3, .tile_kv_heads = 1, .num_blocks = 3}}};
}

struct ChainResult {
  std::vector<std::uint16_t> q, k_pool, v_pool;
  std::vector<float> z;
};

ChainResult run_chain(Device& device, const ChainCase& c, const RunOptions& options,
                      const EdgePolicy& edge = {.start = StartRule::kWaitAll}) {
  const std::int64_t rows = 37, heads = 6, kv_heads = 3, dim = 8, pool_rows = 50;
  const std::int64_t k = 33, n = (heads + 2 * kv_heads) * dim, p = 24;
  const Pool k_pool(device, pool_rows * kv_heads * dim), v_pool(device, pool_rows * kv_heads * dim);
  Plan plan({.num_streams = 3, .edge = edge});
  const auto constant = [&](const char* name, const Shape& shape, DType type = DType::kF32) {
    return plan.tensor(
        {.name = name, .shape = shape, .dtype = type, .kind = TensorKind::kConstant});
  };
  const auto kv = [&](const char* name, const Pool& pool) {
    return plan.tensor({.name = name,
                        .shape = {rows, kv_heads * dim},
                        .dtype = DType::kBF16,
                        .tiles = c.kv_tiles,
                        .address = pool.address()});
  };
  const TensorId x = constant("X", {rows, k}), w = constant("W", {k, n});
  const TensorId wq = constant("wq", {dim}), wk = constant("wk", {dim});
  const TensorId u = constant("U", {heads * dim, p}, DType::kBF16);
  const TensorId qkv = plan.tensor({.name = "QKV", .shape = {rows, n}, .tiles = c.qkv_tiles});
  RopeKvTensors t{.qkv = qkv,
                  .positions = constant("positions", {rows}, DType::kI32),
                  .slots = constant("slots", {rows}, DType::kI32),
                  .inv_freq = constant("inv_freq", {dim / 2}),
                  .q = plan.tensor({.name = "Q",
                                    .shape = {rows, heads * dim},
                                    .dtype = DType::kBF16,
                                    .tiles = c.q_tiles,
                                    .output = true}),
                  .k_step = kv("K", k_pool),
                  .v_step = kv("V", v_pool)};
  const TensorId z = plan.tensor({.name = "Z", .shape = {rows, p}, .output = true});
  RopeKvOptions rope = c.rope;
  rope.heads = heads;
  rope.kv_heads = kv_heads;
  rope.pool_rows = pool_rows;
  plan.add(gemm(plan.tensors(), {.name = "qkv", .tile_m = 16, .tile_n = 24}, x, w, qkv));
  if (c.fused_norm) {
    t.q_norm = wq;
    t.k_norm = wk;
  } else {
    t.qkv = plan.tensor(
        {.name = "N", .shape = {rows, n}, .tiles = c.qkv_tiles, .shares_buffer_with = qkv});
    plan.add(qk_norm(plan.tensors(),
                     {.heads = heads, .kv_heads = kv_heads, .tile_m = 5, .tile_heads = 3}, qkv, wq,
                     wk, t.qkv));
  }
  plan.add(rope_kv(plan.tensors(), rope, t));
  plan.add(gemm(plan.tensors(), {.name = "z", .tile_m = 12, .tile_n = 20}, t.q, u, z));
  Program program(device, plan, options);
  program.write(x, random_values<float>(rows * k, 1));
  program.write(w, random_values<float>(k * n, 2));
  program.write(u, random_values<BFloat16>(heads * dim * p, 3));
  program.write(wq, random_values<float>(dim, 5));
  program.write(wk, random_values<float>(dim, 6));
  program.write(t.inv_freq, rope_inv_freq({.head_dim = dim, .theta = 500000}));
  std::vector<std::int32_t> positions, slots;
  for (std::int32_t row = 0; row < rows; ++row) {
    positions.push_back(100 * row);
    slots.push_back(row % 9 == 8 ? -1 : (row * 7 + 3) % static_cast<std::int32_t>(pool_rows));
  }
  program.write(t.positions, positions);
  program.write(t.slots, slots);
  for (int i = 0; i < 2; ++i) program.run();
  program.synchronize();
  return {bits_of(program.read<BFloat16>(t.q)), k_pool.read(), v_pool.read(),
          program.read<float>(z)};
}

TEST(RopeKvCuda, AfterAProjectionGivesTheSameBitsForEveryTilingModeAndEdge) {
  const auto device = open_cuda_device();
  add_gemm(*device);
  add_norm(*device);
  add_rope(*device);
  const ChainResult expected = run_chain(*device, {.name = "untiled"}, {.mode = Mode::kSerial});
  for (const ChainCase& c : chain_cases()) {
    for (const Mode mode : {Mode::kSerial, Mode::kOverlap}) {
      for (const Submit submit : {Submit::kEager, Submit::kGraph}) {
        SCOPED_TRACE(c.name + (mode == Mode::kSerial ? ", serial" : ", overlap") +
                     (submit == Submit::kEager ? ", eager" : ", graph"));
        const ChainResult result = run_chain(*device, c, {.mode = mode, .submit = submit});
        EXPECT_EQ(result.q, expected.q);
        EXPECT_EQ(result.k_pool, expected.k_pool);
        EXPECT_EQ(result.v_pool, expected.v_pool);
        EXPECT_EQ(result.z, expected.z);
      }
    }
    SCOPED_TRACE(c.name + ", programmatic");
    const ChainResult early = run_chain(*device, c, {}, {.kind = EdgeKind::kProgrammatic});
    EXPECT_EQ(early.z, expected.z);
    EXPECT_EQ(early.k_pool, expected.k_pool);
    EXPECT_EQ(early.v_pool, expected.v_pool);
  }
}

}  // namespace
}  // namespace tileweave
