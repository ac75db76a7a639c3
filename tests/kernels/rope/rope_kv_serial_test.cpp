// rope_kv: its arithmetic, its pool rows and its declared boxes, without a device.
#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <cstdint>
#include <string>
#include <vector>

#include "tests/kernels/operand_values.h"
#include "tests/kernels/rope/hugging_face_rope.h"
#include "tests/kernels/serial_lane.h"
#include "tileweave/kernels/norm/qk_norm.h"
#include "tileweave/kernels/norm/qk_norm_args.h"
#include "tileweave/kernels/norm/rms_norm.h"
#include "tileweave/kernels/rope/rope_frequencies.h"
#include "tileweave/kernels/rope/rope_kv.h"
#include "tileweave/kernels/rope/rope_kv_args.h"
#include "tileweave/kernels/rope/rope_kv_ref.h"

namespace tileweave {
namespace {

constexpr float kUntouched = 77;

struct Problem {
  std::int64_t heads = 0, kv_heads = 0, head_dim = 0, pool_rows = 0;
  std::vector<float> qkv;
  std::vector<std::int32_t> positions, slots;
  std::vector<float> inv_freq;
  float attention_factor = 1;
  std::vector<float> q_norm = {}, k_norm = {};

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
/// fifth row padding.
Problem random_problem(std::int64_t rows, std::int64_t heads, std::int64_t kv_heads,
                       std::int64_t head_dim) {
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
  return p;
}

struct Result {
  std::vector<float> q, k_pool, v_pool;
  bool operator==(const Result&) const = default;
};

template <class W = float>
Result turn(const Problem& p, RopeKvOptions options = {}) {
  const auto rows = static_cast<std::int64_t>(p.positions.size());
  const std::int64_t kv_cols = p.kv_heads * p.head_dim;
  Result result{std::vector<float>(static_cast<std::size_t>(rows * p.heads * p.head_dim)),
                std::vector<float>(static_cast<std::size_t>(p.pool_rows * kv_cols), kUntouched),
                {}};
  result.v_pool = result.k_pool;
  TensorTable tensors;
  const auto constant = [&](const char* name, std::int64_t size, DType type) {
    return tensors.add(
        {.name = name, .shape = {size}, .dtype = type, .kind = TensorKind::kConstant});
  };
  RopeKvTensors operands{
      .qkv = tensors.add({.name = "qkv", .shape = {rows, (p.heads + 2 * p.kv_heads) * p.head_dim}}),
      .positions = constant("positions", rows, DType::kI32),
      .slots = constant("slots", rows, DType::kI32),
      .inv_freq = constant("inv_freq", p.head_dim / 2, DType::kF32),
      .q = tensors.add({.name = "q", .shape = {rows, p.heads * p.head_dim}}),
      .k_step =
          tensors.add({.name = "k", .shape = {rows, kv_cols}, .address = result.k_pool.data()}),
      .v_step =
          tensors.add({.name = "v", .shape = {rows, kv_cols}, .address = result.v_pool.data()})};
  Problem copy = p;  // kernels take addresses of memory that may be written
  std::vector<W> q_norm, k_norm;
  for (const float w : p.q_norm) q_norm.push_back(from_float<W>(w));
  for (const float w : p.k_norm) k_norm.push_back(from_float<W>(w));
  Addresses at{.operands = {copy.qkv.data(), copy.positions.data(), copy.slots.data(),
                            copy.inv_freq.data(), result.q.data(), result.k_pool.data(),
                            result.v_pool.data()}};
  if (!q_norm.empty()) {
    operands.q_norm = constant("q_norm", p.head_dim, kDTypeOf<W>);
    operands.k_norm = constant("k_norm", p.head_dim, kDTypeOf<W>);
    at.operands.push_back(q_norm.data());
    at.operands.push_back(k_norm.data());
  }
  options.heads = p.heads;
  options.kv_heads = p.kv_heads;
  options.pool_rows = p.pool_rows;
  options.attention_factor = p.attention_factor;
  const NodeSpec node = rope_kv(tensors, options, operands);
  KernelLibrary kernels;
  add_rope_cpu(kernels);
  const SerialLane lane = run_serially<RopeKvOperands::kSyncSlots>(node, tensors, kernels, at);
  EXPECT_EQ(lane.signals(), 3 * node.num_works);
  return result;
}

/// Compares with the reference: q and written pool rows within the bound, the rest untouched.
void expect_near_reference(const Problem& p, const Result& result) {
  const RopeKvReference exact = p.reference();
  const std::int64_t normalised = p.q_norm.empty() ? 0 : p.head_dim;
  for (std::size_t i = 0; i < exact.q.size(); ++i) {
    ASSERT_LE(std::fabs(result.q[i] - exact.q[i]),
              rope_kv_error_bound(exact.q_magnitudes[i], normalised))
        << "q, element " << i;
  }
  std::vector<double> k(result.k_pool.size(), kUntouched), bound(k.size()), v = k;
  const auto cols = static_cast<std::size_t>(p.kv_heads * p.head_dim);
  for (std::size_t t = 0; t < p.slots.size(); ++t) {
    if (p.slots[t] < 0) continue;
    for (std::size_t j = 0; j < cols; ++j) {
      const std::size_t to = static_cast<std::size_t>(p.slots[t]) * cols + j;
      k[to] = exact.k[t * cols + j];
      bound[to] = rope_kv_error_bound(exact.k_magnitudes[t * cols + j], normalised);
      v[to] = exact.v[t * cols + j];
    }
  }
  for (std::size_t i = 0; i < k.size(); ++i) {
    ASSERT_LE(std::fabs(result.k_pool[i] - k[i]), bound[i]) << "k pool, element " << i;
    ASSERT_EQ(result.v_pool[i], v[i]) << "v pool, element " << i;
  }
}

TEST(RopeKvReference, TurnsByHand) {
  // Angles 0 and 1: the pair (3, 4) stays, and turns; v is copied; the last row is padding.
  const std::vector<float> qkv{3, 4, 1, 0, 8, 9, 3, 4, 1, 0, 8, 9, 3, 4, 1, 0, 8, 9};
  const RopeKvReference exact = rope_kv_reference({.heads = 1,
                                                   .kv_heads = 1,
                                                   .head_dim = 2,
                                                   .qkv = qkv,
                                                   .positions = std::vector<std::int32_t>{0, 1, 1},
                                                   .slots = std::vector<std::int32_t>{0, 1, -1},
                                                   .inv_freq = std::vector<float>{1},
                                                   .attention_factor = 2});
  EXPECT_EQ(exact.q, (std::vector<double>{6, 8, 2 * (3 * std::cos(1.0) - 4 * std::sin(1.0)),
                                          2 * (4 * std::cos(1.0) + 3 * std::sin(1.0)), 0, 0}));
  EXPECT_EQ(exact.k, (std::vector<double>{2, 0, 2 * std::cos(1.0), 2 * std::sin(1.0), 0, 0}));
  EXPECT_EQ(exact.v, (std::vector<double>{8, 9, 8, 9, 0, 0}));
  EXPECT_EQ(exact.q_magnitudes[0], 14);
}

TEST(RopeKvSerial, TurnsAsTransformersDoesUpToTheLongestPosition) {
  for (const HuggingFaceRope& golden : hugging_face_rope()) {
    if (golden.turned.empty()) continue;
    SCOPED_TRACE(golden.name);
    const std::int64_t dim = golden.options.head_dim;
    Problem p{.heads = 1,
              .kv_heads = 1,
              .head_dim = dim,
              .pool_rows = 5,
              .qkv = {},
              .positions = kHuggingFacePositions,
              .slots = {0, 1, 2, 3, 4},
              .inv_freq = {}};
    for (const std::uint32_t bits : golden.inv_freq) {
      p.inv_freq.push_back(std::bit_cast<float>(bits));
    }
    for (int head = 0; head < 3 * 5; ++head) {
      for (std::int64_t j = 0; j < dim; ++j) {
        p.qkv.push_back(static_cast<float>(j % 7 - 3) / 4);
      }
    }
    const Result result = turn(p);
    const RopeKvReference exact = p.reference();
    ASSERT_EQ(result.q.size(), golden.turned.size());
    for (std::size_t i = 0; i < golden.turned.size(); ++i) {
      // Both are that near to the exact value.
      const double bound = 2 * rope_kv_error_bound(exact.q_magnitudes[i]);
      EXPECT_NEAR(result.q[i], std::bit_cast<float>(golden.turned[i]), bound) << "element " << i;
      EXPECT_NEAR(result.k_pool[i], std::bit_cast<float>(golden.turned[i]), bound);
    }
  }
}

TEST(RopeKvSerial, AgreesWithTheReferenceForEveryShape) {
  struct Size {
    std::int64_t rows, heads, kv_heads, head_dim;
  };
  for (const Size& s : {Size{1, 1, 1, 2}, Size{7, 3, 1, 6}, Size{8, 4, 2, 16}, Size{9, 6, 3, 34},
                        Size{17, 9, 3, 64}, Size{3, 4, 4, 128}}) {
    for (const bool normalise : {false, true}) {
      SCOPED_TRACE(std::to_string(s.rows) + " rows, " + std::to_string(s.heads) + " + 2 x " +
                   std::to_string(s.kv_heads) + " heads of " + std::to_string(s.head_dim));
      Problem p = random_problem(s.rows, s.heads, s.kv_heads, s.head_dim);
      if (normalise) {
        p.q_norm = random_values<float>(s.head_dim, 42);
        p.k_norm = random_values<float>(s.head_dim, 43);
      }
      p.attention_factor = normalise ? 1.25F : 1.0F;
      expect_near_reference(p, turn(p));
    }
  }
}

TEST(RopeKvSerial, BitsDependOnTheHeadAndItsPositionAlone) {
  const Problem p = random_problem(13, 14, 7, 22);
  const Result expected = turn(p);
  for (const std::int64_t tile_m : {1, 4, 13, 20}) {
    for (const std::int64_t tile_kv_heads : {1, 2, 3, 6, 7}) {
      for (const std::int64_t num_blocks : {0, 2}) {
        EXPECT_TRUE(turn(p, {.tile_m = tile_m,
                             .tile_kv_heads = tile_kv_heads,
                             .num_blocks = num_blocks,
                             .order = TileOrder::rotation(1)}) == expected)
            << tile_m << " rows, " << tile_kv_heads << " heads, " << num_blocks << " blocks";
      }
    }
  }
  for (const std::size_t row : {0, 7, 12}) {
    Problem alone = p;
    const std::size_t cols = p.qkv.size() / 13;
    alone.qkv = {p.qkv.begin() + static_cast<std::ptrdiff_t>(row * cols),
                 p.qkv.begin() + static_cast<std::ptrdiff_t>((row + 1) * cols)};
    alone.positions = {p.positions[row]};
    alone.slots = {0};
    alone.pool_rows = 2;
    const Result result = turn(alone);
    const std::size_t q_cols = 14 * 22, kv_cols = 7 * 22;
    EXPECT_TRUE(std::equal(result.q.begin(), result.q.end(),
                           expected.q.begin() + static_cast<std::ptrdiff_t>(row * q_cols)));
    const auto slot = static_cast<std::size_t>(p.slots[row]);
    const auto in_pool = static_cast<std::ptrdiff_t>(slot * kv_cols);
    EXPECT_TRUE(std::equal(result.k_pool.begin(), result.k_pool.begin() + kv_cols,
                           expected.k_pool.begin() + in_pool));
  }
}

TEST(RopeKvSerial, SlotsOutsideThePoolWriteNothingAndGiveZeroQueries) {
  Problem p = random_problem(4, 2, 1, 8);
  p.slots = {-1, static_cast<std::int32_t>(p.pool_rows), -7, 2147483647};
  p.positions = {-1, 2147483647, 0, 5};
  for (float& value : p.qkv) value = std::nanf("");
  const Result result = turn(p);
  EXPECT_EQ(result.q, std::vector<float>(result.q.size(), 0.0F));
  EXPECT_EQ(result.k_pool, std::vector<float>(result.k_pool.size(), kUntouched));
  EXPECT_EQ(result.v_pool, result.k_pool);
}

template <class W>
std::vector<float> normalised_heads(const Problem& p) {
  TensorTable tensors;
  const auto rows = static_cast<std::int64_t>(p.positions.size());
  const Shape shape{rows, (p.heads + 2 * p.kv_heads) * p.head_dim};
  const auto weight = [&](const char* name) {
    return tensors.add(
        {.name = name, .shape = {p.head_dim}, .dtype = kDTypeOf<W>, .kind = TensorKind::kConstant});
  };
  const TensorId qkv = tensors.add({.name = "qkv", .shape = shape});
  const TensorId wq = weight("wq"), wk = weight("wk");
  const TensorId out = tensors.add({.name = "out", .shape = shape});
  const NodeSpec node =
      qk_norm(tensors, {.heads = p.heads, .kv_heads = p.kv_heads}, qkv, wq, wk, out);
  KernelLibrary kernels;
  add_norm_cpu(kernels);
  std::vector<float> x = p.qkv, result(p.qkv.size());
  std::vector<W> q_norm, k_norm;
  for (const float w : p.q_norm) q_norm.push_back(from_float<W>(w));
  for (const float w : p.k_norm) k_norm.push_back(from_float<W>(w));
  run_serially<QkNormOperands::kSlots>(
      node, tensors, kernels,
      {.operands = {x.data(), q_norm.data(), k_norm.data(), result.data()}});
  return result;
}

template <class W>
void expect_fused_equals_separate(std::int64_t head_dim) {
  Problem fused = random_problem(9, 4, 2, head_dim);
  fused.q_norm = random_values<float>(head_dim, 44);
  fused.k_norm = random_values<float>(head_dim, 45);
  Problem separate = fused;
  separate.qkv = normalised_heads<W>(fused);
  separate.q_norm.clear();
  separate.k_norm.clear();
  EXPECT_TRUE(turn<W>(fused) == turn(separate)) << name_of(kDTypeOf<W>) << ", " << head_dim;
}

TEST(RopeKvSerial, TheFusedQkNormHasTheBitsOfTheSeparateOne) {
  for (const std::int64_t head_dim : {2, 14, 64}) {
    expect_fused_equals_separate<float>(head_dim);
    expect_fused_equals_separate<BFloat16>(head_dim);
    expect_fused_equals_separate<Float16>(head_dim);
  }
}

}  // namespace
}  // namespace tileweave
