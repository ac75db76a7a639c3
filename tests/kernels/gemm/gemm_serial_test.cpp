// The CPU form's arithmetic and declared boxes, block after block without a device.
#include <gtest/gtest.h>

#include <cstdint>
#include <string>
#include <vector>

#include "tests/kernels/gemm/gemm_serial.h"

namespace tileweave {
namespace {

template <class T, class C>
std::vector<C> multiply(const GemmShape& shape, const GemmOptions& options, const std::vector<T>& a,
                        const std::vector<T>& b, TensorKind b_kind = TensorKind::kConstant) {
  return run_gemm_serially<T, T, C>(shape, options, a, b, {}, b_kind);
}

const std::vector<GemmShape> kShapes = {
    {1, 1, 1}, {1, 67, 131}, {64, 64, 32}, {65, 63, 33}, {17, 1, 97}, {97, 131, 64}, {70, 200, 129},
};

template <class T, class C>
void all_shapes_agree() {
  for (GemmShape shape : kShapes) {
    for (const BLayout layout : {BLayout::kKxN, BLayout::kNxK}) {
      shape.b_layout = layout;
      SCOPED_TRACE(words(shape));
      const auto a = random_values<T>(shape.m * shape.k, 1);
      const auto b = random_values<T>(shape.k * shape.n, 2);
      expect_near_reference<T, T, C>(shape, a, b, multiply<T, C>(shape, {}, a, b), 1);
    }
  }
}

TEST(GemmSerial, F32AgreesWithTheReference) {
  all_shapes_agree<float, float>();
}
TEST(GemmSerial, F32WithBf16ResultAgreesWithTheReference) {
  all_shapes_agree<float, BFloat16>();
}
TEST(GemmSerial, Bf16AgreesWithTheReference) {
  all_shapes_agree<BFloat16, float>();
}
TEST(GemmSerial, Bf16WithBf16ResultAgreesWithTheReference) {
  all_shapes_agree<BFloat16, BFloat16>();
}

TEST(GemmSerial, BitsDoNotDependOnTilesOrdersWaitsOrPersistence) {
  const GemmShape shape{97, 131, 129};
  const auto a = random_values<float>(shape.m * shape.k, 5);
  const auto b = random_values<float>(shape.k * shape.n, 6);
  const std::vector<float> expected = multiply<float, float>(shape, {}, a, b);
  const std::vector<GemmOptions> variants = {
      {.tile_m = 1, .tile_n = 131, .tile_k = 7},
      {.tile_m = 13, .tile_n = 17, .tile_k = 5, .coarse_m = 3},
      {.tile_m = 97, .tile_n = 131, .tile_k = 43, .wait_k = 43},
      {.tile_m = 33, .tile_n = 65, .tile_k = 8, .wait_k = 24, .prefetch_k = 16},
      {.tile_m = 32, .tile_n = 64, .num_blocks = 2},
      {.tile_m = 32, .tile_n = 64, .order = TileOrder::rotation(5)},
      {.split = GemmSplit::kSplitK, .splits = 1},
      {.tile_k = 200, .split = GemmSplit::kStreamK, .num_blocks = 5},
  };
  for (std::size_t i = 0; i < variants.size(); ++i) {
    SCOPED_TRACE("variant " + std::to_string(i));
    EXPECT_EQ((multiply<float, float>(shape, variants[i], a, b)), expected);
  }
  EXPECT_EQ((multiply<float, float>(shape, {.wait_k = 64}, a, b, TensorKind::kValue)), expected);
}

TEST(GemmSerial, SplitsAgreeWithTheReferenceAndWithEachOtherForOnePartitionOfK) {
  const GemmShape shape{50, 70, 96};
  const auto a = random_values<float>(shape.m * shape.k, 8);
  const auto b = random_values<float>(shape.k * shape.n, 9);
  const GemmOptions split{
      .tile_m = 25, .tile_n = 35, .tile_k = 8, .split = GemmSplit::kSplitK, .splits = 3};
  const std::vector<float> by_split = multiply<float, float>(shape, split, a, b);
  expect_near_reference<float, float, float>(shape, a, b, by_split, 3);

  // 4 tiles x 12 k steps over 12 blocks: each takes a third of a tile, as split-K by 3 does.
  GemmOptions stream = split;
  stream.split = GemmSplit::kStreamK;
  stream.splits = 1;
  stream.num_blocks = 12;
  EXPECT_EQ((multiply<float, float>(shape, stream, a, b)), by_split);

  stream.num_blocks = 5;  // shares that cross tiles
  expect_near_reference<float, float, float>(shape, a, b,
                                             multiply<float, float>(shape, stream, a, b), 3);
}

TEST(GemmSerial, PartialSumsAreAddedInAscendingK) {
  const std::int64_t part = 32;
  const GemmShape shape{20, 30, 3 * part};
  const auto a = random_values<float>(shape.m * shape.k, 8);
  const auto b = random_values<float>(shape.k * shape.n, 9);
  std::vector<float> expected;
  for (std::int64_t first = 0; first < shape.k; first += part) {
    std::vector<float> a_part;
    for (std::int64_t i = 0; i < shape.m; ++i) {
      a_part.insert(a_part.end(), a.begin() + i * shape.k + first,
                    a.begin() + i * shape.k + first + part);
    }
    const std::vector<float> b_part(b.begin() + first * shape.n,
                                    b.begin() + (first + part) * shape.n);
    const auto sum = multiply<float, float>({shape.m, shape.n, part}, {}, a_part, b_part);
    if (first == 0) {
      expected = sum;
    } else {
      for (std::size_t i = 0; i < sum.size(); ++i) expected[i] += sum[i];
    }
  }
  EXPECT_EQ((multiply<float, float>(shape, {.tile_k = 8, .split = GemmSplit::kSplitK, .splits = 3},
                                    a, b)),
            expected);
}

TEST(GemmSerial, BitsDoNotDependOnWhoArrivesLast) {
  const GemmShape shape{50, 70, 96};
  const auto a = random_values<float>(shape.m * shape.k, 8);
  const auto b = random_values<float>(shape.k * shape.n, 9);
  for (const GemmSplit kind : {GemmSplit::kSplitK, GemmSplit::kStreamK}) {
    GemmOptions options{.tile_m = 25, .tile_n = 35, .tile_k = 8, .split = kind};
    (kind == GemmSplit::kSplitK ? options.splits : options.num_blocks) = 7;
    const std::vector<float> expected = multiply<float, float>(shape, options, a, b);
    const std::int64_t works = gemm_schedule(options, shape.m, shape.n, shape.k).num_works;
    std::vector<std::int32_t> backwards;
    for (std::int64_t w = works; w-- > 0;) backwards.push_back(static_cast<std::int32_t>(w));
    for (const TileOrder& order :
         {TileOrder::rotation(2), TileOrder::rotation(5), TileOrder::table(backwards)}) {
      options.order = order;
      EXPECT_EQ((multiply<float, float>(shape, options, a, b)), expected);
    }
  }
}

}  // namespace
}  // namespace tileweave
