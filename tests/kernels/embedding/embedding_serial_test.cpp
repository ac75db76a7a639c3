// Embedding without a device: rows, padding, ids out of range, declared boxes, refusals.
#include <gtest/gtest.h>

#include <cstdint>
#include <limits>
#include <string>
#include <vector>

#include "tests/kernels/operand_values.h"
#include "tests/kernels/serial_lane.h"
#include "tileweave/kernels/embedding/embedding.h"
#include "tileweave/kernels/embedding/embedding_args.h"
#include "tileweave/kernels/embedding/embedding_ref.h"

namespace tileweave {
namespace {

template <class T>
std::vector<float> embed(const std::vector<std::int32_t>& ids, const std::vector<T>& table,
                         std::int64_t cols, const EmbeddingOptions& options) {
  const auto rows = static_cast<std::int64_t>(ids.size());
  TensorTable tensors;
  const TensorId ti = tensors.add(
      {.name = "ids", .shape = {rows}, .dtype = DType::kI32, .kind = TensorKind::kConstant});
  const TensorId tt = tensors.add({.name = "table",
                                   .shape = {static_cast<std::int64_t>(table.size()) / cols, cols},
                                   .dtype = kDTypeOf<T>,
                                   .kind = TensorKind::kConstant});
  const TensorId to = tensors.add({.name = "out", .shape = {rows, cols}});
  const NodeSpec node = embedding(tensors, options, ti, tt, to);
  KernelLibrary kernels;
  add_embedding_cpu(kernels);
  std::vector<std::int32_t> id_copy = ids;
  std::vector<T> table_copy = table;
  std::vector<float> out(static_cast<std::size_t>(rows * cols), -7.0F);
  const SerialLane lane = run_serially<EmbeddingOperands::kSlots>(
      node, tensors, kernels, {.operands = {id_copy.data(), table_copy.data(), out.data()}});
  EXPECT_EQ(lane.signals(), node.num_works);
  return out;
}

std::vector<std::int32_t> some_ids(std::int64_t count, std::int32_t vocabulary) {
  std::vector<std::int32_t> ids;
  for (std::int32_t t = 0; t < count; ++t) ids.push_back(t % 5 == 4 ? -1 : t * 7 % vocabulary);
  return ids;
}

template <class T>
void expect_equals_reference() {
  for (const std::int64_t rows : {1, 7, 8, 9, 67}) {
    for (const std::int64_t cols : {1, 15, 16, 131}) {
      const auto ids = some_ids(rows, 23);
      const auto table = random_values<T>(23 * cols, 61);
      EXPECT_EQ(embed<T>(ids, table, cols, {}), embedding_reference<T>(ids, table, cols))
          << rows << " x " << cols << " " << name_of(kDTypeOf<T>);
    }
  }
}

TEST(EmbeddingReference, ByHand) {
  const std::vector<float> table{1, 2, 3, 4, 5, 6};
  EXPECT_EQ(embedding_reference<float>(std::vector<std::int32_t>{2, -1, 0, 3}, table, 2),
            (std::vector<float>{5, 6, 0, 0, 1, 2, 0, 0}));
}

TEST(EmbeddingSerial, EveryTypeOfTableGivesTheRowsOfTheReference) {
  expect_equals_reference<float>();
  expect_equals_reference<BFloat16>();
  expect_equals_reference<Float16>();
}

TEST(EmbeddingSerial, IdsOutsideTheTableGiveZerosAndReadNothing) {
  // The lane refuses every access outside the table's declared box, which is the table.
  constexpr std::int32_t kMost = std::numeric_limits<std::int32_t>::max();
  constexpr std::int32_t kLeast = std::numeric_limits<std::int32_t>::min();
  const auto table = random_values<float>(3 * 2, 62);
  const auto out = embed<float>({3, -1, kMost, kLeast, 2}, table, 2, {});
  EXPECT_EQ(out, (std::vector<float>{0, 0, 0, 0, 0, 0, 0, 0, table[4], table[5]}));
}

TEST(EmbeddingSerial, TilesAndOrderChangeNothing) {
  const auto ids = some_ids(13, 29);
  const auto table = random_values<float>(29 * 67, 63);
  const auto expected = embedding_reference<float>(ids, table, 67);
  for (const std::int64_t tile_m : {1, 4, 13, 20}) {
    for (const std::int64_t tile_n : {1, 16, 66, 67, 100}) {
      for (const std::int64_t num_blocks : {0, 3}) {
        EXPECT_EQ(embed<float>(ids, table, 67,
                               {.tile_m = tile_m,
                                .tile_n = tile_n,
                                .num_blocks = num_blocks,
                                .order = TileOrder::rotation(1)}),
                  expected)
            << tile_m << " x " << tile_n << ", " << num_blocks << " blocks";
      }
    }
  }
}

TEST(EmbeddingNode, RefusesWhatDoesNotFitInOneSentence) {
  TensorTable tensors;
  const auto add = [&](const char* name, const Shape& shape, DType type = DType::kF32) {
    return tensors.add({.name = name, .shape = shape, .dtype = type});
  };
  const TensorId ids = add("ids", {3}, DType::kI32), floats = add("floats", {3});
  const TensorId table = add("table", {9, 4}), out = add("out", {3, 4});
  const TensorId half = add("half", {3, 4}, DType::kBF16), wide = add("wide", {3, 5});
  const TensorId square = add("square", {3, 4});
  const TensorId over =
      tensors.add({.name = "over", .shape = {3, 4}, .shares_buffer_with = square});
  const auto sentence = [&](const EmbeddingOptions& options, TensorId i, TensorId t, TensorId o) {
    try {
      embedding(tensors, options, i, t, o);
    } catch (const Error& error) {
      return std::string(error.what());
    }
    return std::string("no error");
  };
  const std::string who = "make embedding node `embedding`: ";
  EXPECT_EQ(sentence({}, ids, table, out), "no error");
  EXPECT_EQ(sentence({}, table, table, out),
            who + "`table` must be a vector (T), got shape (9, 4)");
  EXPECT_EQ(sentence({}, floats, table, out), who + "`floats` must be i32, got f32");
  EXPECT_EQ(sentence({}, ids, floats, out),
            who + "`floats` must be a matrix (V, H), got shape (3)");
  EXPECT_EQ(sentence({}, ids, table, wide), who + "`wide` must be (3, 4), got (3, 5)");
  EXPECT_EQ(sentence({}, ids, table, half), who + "`half` must be f32, got bf16");
  EXPECT_EQ(sentence({}, ids, square, square),
            who + "the result must be another tensor than the table, got `square` as both");
  EXPECT_EQ(sentence({}, ids, square, over),
            who +
                "the result must not lie in the buffer of the table, whose rows are read in any "
                "order, got one buffer for both");
  EXPECT_EQ(sentence({.tile_m = 0}, ids, table, out), who + "tile_m must be at least 1, got 0");
}

}  // namespace
}  // namespace tileweave
