// Products with a (N, K) B: the documented order of additions to the bit, on every SIMD target of
// this machine, and what must not show in the bits of a row.
#include <gtest/gtest.h>

#include <array>
#include <cmath>
#include <cstring>
#include <string>
#include <vector>

#include "hwy/targets.h"
#include "tests/kernels/gemm/gemm_serial.h"

namespace tileweave {
namespace {

enum class MultiplyAdd : std::uint8_t { kFused, kTwoRoundings };

/// The order that gemm.h promises: 16 interleaved sums, folded by halves.
template <class TA, class TB>
std::vector<float> by_definition(const GemmShape& s, const std::vector<TA>& a,
                                 const std::vector<TB>& b, MultiplyAdd how) {
  std::vector<float> c;
  for (std::int64_t i = 0; i < s.m; ++i) {
    for (std::int64_t j = 0; j < s.n; ++j) {
      std::array<float, 16> sums{};
      for (std::int64_t k = 0; k < s.k; ++k) {
        const float x = to_float(a[static_cast<std::size_t>(i * s.k + k)]);
        const float w = to_float(b[static_cast<std::size_t>(j * s.k + k)]);
        float& sum = sums[static_cast<std::size_t>(k % 16)];
        const volatile float product = x * w;  // volatile: two roundings, whatever the compiler
        sum = how == MultiplyAdd::kFused ? std::fma(x, w, sum) : sum + product;
      }
      for (std::size_t half = 8; half > 0; half /= 2) {
        for (std::size_t l = 0; l < half; ++l) sums[l] += sums[l + half];
      }
      c.push_back(sums[0]);
    }
  }
  return c;
}

/// Runs `act` on every SIMD target that this machine has and the library was compiled for.
template <class Act>
void on_every_target(Act act) {
  for (const std::int64_t target : hwy::SupportedAndGeneratedTargets()) {
    SCOPED_TRACE(hwy::TargetName(target));
    hwy::SetSupportedTargetsForTest(target);
    hwy::GetChosenTarget().Update(target);
    act();
  }
  hwy::SetSupportedTargetsForTest(0);
  hwy::GetChosenTarget().DeInit();
}

template <class TA, class TB>
void follows_the_definition() {
  for (const GemmShape& shape : std::vector<GemmShape>{{1, 1, 1},
                                                       {1, 67, 131},
                                                       {7, 5, 16},
                                                       {6, 4, 15},
                                                       {13, 9, 17},
                                                       {70, 23, 48},
                                                       {3, 131, 257}}) {
    GemmShape s = shape;
    s.b_layout = BLayout::kNxK;
    SCOPED_TRACE(words(s));
    const auto a = random_values<TA>(s.m * s.k, 1);
    const auto b = random_values<TB>(s.k * s.n, 2);
    const auto fused = by_definition(s, a, b, MultiplyAdd::kFused);
    const auto rounded_twice = by_definition(s, a, b, MultiplyAdd::kTwoRoundings);
    on_every_target([&] {
      const auto c = run_gemm_serially<TA, TB, float>(s, {}, a, b);
      EXPECT_TRUE(c == fused || c == rounded_twice);
      const GemmOptions small{.tile_m = 4, .tile_n = 3, .tile_k = 5, .wait_k = 10};
      EXPECT_EQ((run_gemm_serially<TA, TB, float>(s, small, a, b)), c);
    });
  }
}

TEST(GemmDot, F32FollowsTheDefinition) {
  follows_the_definition<float, float>();
}
TEST(GemmDot, F32TimesBf16FollowsTheDefinition) {
  follows_the_definition<float, BFloat16>();
}
TEST(GemmDot, F32TimesF16FollowsTheDefinition) {
  follows_the_definition<float, Float16>();
}
TEST(GemmDot, Bf16FollowsTheDefinition) {
  follows_the_definition<BFloat16, BFloat16>();
}

TEST(GemmDot, EveryF16IsWidenedExactly) {
  // K = 1 and a = 1: the product is b itself.
  std::vector<Float16> b;
  for (std::uint32_t bits = 0; bits < 0x10000U; ++bits) {
    const Float16 value{static_cast<std::uint16_t>(bits)};
    b.push_back(value);
  }
  const GemmShape s{1, static_cast<std::int64_t>(b.size()), 1, BLayout::kNxK};
  const std::vector<float> one = {1.0F};
  on_every_target([&] {
    const auto c = run_gemm_serially<float, Float16, float>(s, {.tile_n = 4096}, one, b);
    for (std::size_t i = 0; i < b.size(); ++i) {
      const float exact = to_float(b[i]);
      ASSERT_TRUE(std::isnan(exact) ? std::isnan(c[i]) : c[i] == exact) << b[i].bits;
    }
  });
}

template <class TB>
void row_alone_is_row_in_a_batch() {
  const std::int64_t most = 70;
  const std::int64_t n = 37;
  const std::int64_t k = 53;
  const auto a = random_values<float>(most * k, 3);
  const auto b = random_values<TB>(n * k, 4);
  std::vector<float> alone;
  for (std::int64_t i = 0; i < most; ++i) {
    const std::vector<float> row(a.begin() + i * k, a.begin() + (i + 1) * k);
    const auto c = run_gemm_serially<float, TB, float>({1, n, k, BLayout::kNxK}, {}, row, b);
    alone.insert(alone.end(), c.begin(), c.end());
  }
  for (std::int64_t m = 1; m <= most; ++m) {
    const std::vector<float> batch(a.begin(), a.begin() + m * k);
    const auto c = run_gemm_serially<float, TB, float>({m, n, k, BLayout::kNxK}, {}, batch, b);
    ASSERT_EQ(std::memcmp(c.data(), alone.data(), c.size() * sizeof(float)), 0) << m << " rows";
  }
}

TEST(GemmDot, ARowAloneHasTheBitsOfTheRowInAnyBatch) {
  row_alone_is_row_in_a_batch<float>();
  row_alone_is_row_in_a_batch<BFloat16>();
  row_alone_is_row_in_a_batch<Float16>();
}

TEST(GemmDot, BitsDoNotDependOnTilesOrdersWaitsOrPersistence) {
  const GemmShape shape{97, 131, 129, BLayout::kNxK};
  const auto a = random_values<float>(shape.m * shape.k, 5);
  const auto b = random_values<BFloat16>(shape.k * shape.n, 6);
  const auto run = [&](const GemmOptions& options, TensorKind kind) {
    return run_gemm_serially<float, BFloat16, float>(shape, options, a, b, {}, kind);
  };
  const std::vector<float> expected = run({}, TensorKind::kConstant);
  for (const GemmOptions& options : std::vector<GemmOptions>{
           {.tile_m = 1, .tile_n = 131, .tile_k = 7},
           {.tile_m = 13, .tile_n = 17, .tile_k = 5, .coarse_m = 3},
           {.tile_m = 97, .tile_n = 131, .tile_k = 43, .wait_k = 43},
           {.tile_m = 1, .tile_n = 1},
           {.tile_m = 33, .tile_n = 65, .tile_k = 8, .wait_k = 24, .prefetch_k = 129},
           {.tile_m = 32, .tile_n = 64, .num_blocks = 2, .order = TileOrder::rotation(5)},
           {.tile_k = 200, .split = GemmSplit::kStreamK, .num_blocks = 5}}) {
    for (const TensorKind kind : {TensorKind::kConstant, TensorKind::kValue}) {
      const std::vector<float> c = run(options, kind);
      ASSERT_EQ(std::memcmp(c.data(), expected.data(), c.size() * sizeof(float)), 0)
          << options.tile_m << " x " << options.tile_n;
    }
  }
}

TEST(GemmDot, ASplitOfKIsTheSumOfItsPartsInAscendingK) {
  // tile_k 20: the second part starts where k mod 16 is not 0, and has its own 16 sums.
  const GemmShape shape{5, 21, 40, BLayout::kNxK};
  const auto a = random_values<float>(shape.m * shape.k, 5);
  const auto b = random_values<float>(shape.k * shape.n, 6);
  std::vector<float> expected(static_cast<std::size_t>(shape.m * shape.n), 0.0F);
  for (std::int64_t first = 0; first < shape.k; first += 20) {
    const auto part_of = [&](const std::vector<float>& all, std::int64_t rows) {
      std::vector<float> part;
      for (std::int64_t i = 0; i < rows; ++i) {
        part.insert(part.end(), all.begin() + i * shape.k + first,
                    all.begin() + i * shape.k + first + 20);
      }
      return part;
    };
    const auto sum = run_gemm_serially<float, float, float>(
        {shape.m, shape.n, 20, BLayout::kNxK}, {}, part_of(a, shape.m), part_of(b, shape.n));
    for (std::size_t i = 0; i < sum.size(); ++i) expected[i] += sum[i];
  }
  for (const GemmOptions& options : std::vector<GemmOptions>{
           {.tile_k = 20, .split = GemmSplit::kSplitK, .splits = 2},
           {.tile_m = 2, .tile_n = 8, .tile_k = 20, .split = GemmSplit::kSplitK, .splits = 2}}) {
    EXPECT_EQ((run_gemm_serially<float, float, float>(shape, options, a, b)), expected);
  }
}

}  // namespace
}  // namespace tileweave
