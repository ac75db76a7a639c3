// The CPU form's arithmetic and declared boxes, block after block without a device.
#include <gtest/gtest.h>

#include <cmath>
#include <cstdint>
#include <string>
#include <vector>

#include "tests/kernels/operand_values.h"
#include "tests/kernels/serial_lane.h"
#include "tileweave/kernels/gemm/gemm.h"
#include "tileweave/kernels/gemm/gemm_args.h"
#include "tileweave/kernels/gemm/gemm_ref.h"
#include "tileweave/plan/plan.h"

namespace tileweave {
namespace {

template <class T, class C>
std::vector<C> multiply(const GemmShape& shape, const GemmOptions& options, const std::vector<T>& a,
                        const std::vector<T>& b, TensorKind b_kind = TensorKind::kConstant) {
  const bool k_first = shape.b_layout == BLayout::kKxN;
  TensorTable tensors;
  const TensorId ta = tensors.add({.name = "a", .shape = {shape.m, shape.k}, .dtype = kDTypeOf<T>});
  const TensorId tb =
      tensors.add({.name = "b",
                   .shape = k_first ? Shape{shape.k, shape.n} : Shape{shape.n, shape.k},
                   .dtype = kDTypeOf<T>,
                   .kind = b_kind});
  const TensorId tc = tensors.add({.name = "c", .shape = {shape.m, shape.n}, .dtype = kDTypeOf<C>});
  GemmOptions with_layout = options;
  with_layout.b_layout = shape.b_layout;
  const NodeSpec node = gemm(tensors, with_layout, ta, tb, tc);
  KernelLibrary kernels;
  add_gemm_cpu(kernels);
  std::vector<T> a_copy = a;
  std::vector<T> b_copy = b;
  std::vector<C> c(static_cast<std::size_t>(shape.m * shape.n));
  const SerialLane lane = run_serially<GemmOperands::kCount>(
      node, tensors, kernels, {.operands = {a_copy.data(), b_copy.data(), c.data()}});
  EXPECT_EQ(lane.works_run(), node.num_works);
  const GemmSchedule s = gemm_schedule(with_layout, shape.m, shape.n, shape.k);
  EXPECT_EQ(lane.signals(), s.num_tiles()) << "one signal per C tile";
  return c;
}

template <class T, class C>
void expect_near_reference(const GemmShape& shape, const std::vector<T>& a, const std::vector<T>& b,
                           const std::vector<C>& c, std::int64_t parts) {
  const GemmReference exact = gemm_reference<T>(shape, a, b);
  double worst = 0;
  for (std::size_t i = 0; i < c.size(); ++i) {
    const double bound =
        gemm_error_bound(exact.c[i], exact.magnitudes[i], shape.k, parts, kDTypeOf<C>);
    const double error = std::fabs(to_float(c[i]) - exact.c[i]);
    ASSERT_LE(error, bound) << "element " << i;
    if (bound > 0) worst = std::max(worst, error / bound);
  }
  ::testing::Test::RecordProperty("worst_share_of_bound", std::to_string(worst));
}

const std::vector<GemmShape> kShapes = {
    {1, 1, 1}, {1, 67, 131}, {64, 64, 32}, {65, 63, 33}, {17, 1, 97}, {97, 131, 64}, {70, 200, 129},
};

std::string words(const GemmShape& s) {
  return std::to_string(s.m) + " x " + std::to_string(s.n) + " x " + std::to_string(s.k);
}

template <class T, class C>
void all_shapes_agree() {
  for (GemmShape shape : kShapes) {
    for (const BLayout layout : {BLayout::kKxN, BLayout::kNxK}) {
      shape.b_layout = layout;
      SCOPED_TRACE(words(shape));
      const auto a = random_values<T>(shape.m * shape.k, 1);
      const auto b = random_values<T>(shape.k * shape.n, 2);
      expect_near_reference<T, C>(shape, a, b, multiply<T, C>(shape, {}, a, b), 1);
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
  expect_near_reference<float, float>(shape, a, b, by_split, 3);

  // 4 tiles x 12 k steps over 12 blocks: each takes a third of a tile, as split-K by 3 does.
  GemmOptions stream = split;
  stream.split = GemmSplit::kStreamK;
  stream.splits = 1;
  stream.num_blocks = 12;
  EXPECT_EQ((multiply<float, float>(shape, stream, a, b)), by_split);

  stream.num_blocks = 5;  // shares that cross tiles
  expect_near_reference<float, float>(shape, a, b, multiply<float, float>(shape, stream, a, b), 3);
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
