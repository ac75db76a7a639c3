#include "tileweave/plan/tensor.h"

#include <gtest/gtest.h>

#include "tileweave/core/error.h"

namespace tileweave {
namespace {

std::string refusal(TensorTable& table, const TensorSpec& spec) {
  try {
    table.add(spec);
  } catch (const Error& error) {
    return error.what();
  }
  return "accepted";
}

TEST(TensorTable, GivesIdsInOrderAndKeepsSpecs) {
  TensorTable table;
  EXPECT_EQ(table.add({.name = "X", .shape = {4, 6}}), 0);
  EXPECT_EQ(table.add({.name = "Y", .shape = {5}, .dtype = DType::kBF16, .tiles = {2}}), 1);
  EXPECT_EQ(table.size(), 2);
  EXPECT_FALSE(table[0].tiled());
  EXPECT_EQ(table[0].bytes(), 96U);
  EXPECT_TRUE(table[1].tiled());
  EXPECT_EQ(table[1].tiles.count(), 3);
  EXPECT_EQ(table[1].bytes(), 10U);
}

TEST(TensorTable, TilesATensorInOneLineAndTakesItBack) {
  TensorTable table;
  const TensorId y = table.add({.name = "Y", .shape = {5, 4}});
  table.tile(y, {2, 4});
  EXPECT_EQ(table[y].tiles.count(), 3);
  EXPECT_EQ(table[y].spec.tiles, (Coord{2, 4}));
  table.tile(y, {});
  EXPECT_FALSE(table[y].tiled());
  EXPECT_THROW(table.tile(y, {0, 4}), Error);
  EXPECT_THROW(table.tile(y, {2}), Error);
  EXPECT_THROW(table.tile(7, {2}), Error);
}

TEST(TensorTable, TakesATableOfBoxesOnlyWhenItPartitionsTheShape) {
  TensorTable table;
  const std::vector<Box> halves = {{{0}, {3}}, {{3}, {2}}};
  const TensorId y =
      table.add({.name = "Y", .shape = {5}, .tile_table = TileSet::table({5}, halves)});
  EXPECT_EQ(table[y].tiles.count(), 2);
  EXPECT_EQ(refusal(table, {.name = "Y", .shape = {6}, .tile_table = TileSet::table({5}, halves)}),
            "tensor `Y`: a tile table over its shape (6), got (5)");
  EXPECT_EQ(
      refusal(table,
              {.name = "Y", .shape = {5}, .tiles = {2}, .tile_table = TileSet::table({5}, halves)}),
      "tensor `Y`: tile sizes or a tile table, not both");
  EXPECT_EQ(refusal(table, {.name = "Y",
                            .shape = {5},
                            .tile_table = TileSet::loose_table({5}, {{{0}, {3}}, {{2}, {3}}})}),
            "tensor `Y`: boxes of a data tiling must not overlap, got boxes 0 and 1 sharing [2:3]");
  EXPECT_EQ(
      refusal(table,
              {.name = "Y", .shape = {5}, .tile_table = TileSet::loose_table({5}, {{{0}, {3}}})}),
      "tensor `Y`: the boxes must cover all 5 elements of 5, got 3");
}

TEST(TensorTable, RefusesInvalidShapesAndTilings) {
  TensorTable table;
  EXPECT_EQ(refusal(table, {.name = "", .shape = {1}}), "tensor: a name that is not empty");
  EXPECT_EQ(refusal(table, {.name = "Y", .shape = {}}),
            "tensor `Y`: a tensor needs at least one axis, got ()");
  EXPECT_EQ(refusal(table, {.name = "Y", .shape = {3, 0}}),
            "tensor `Y`: every axis of the shape must be at least 1, got (3, 0)");
  EXPECT_EQ(refusal(table, {.name = "Y", .shape = {3, 4}, .tiles = {0, 4}}),
            "tensor `Y`: every axis of the tile must be at least 1, got (3, 4) by (0, 4)");
  EXPECT_EQ(refusal(table, {.name = "Y", .shape = {3, 4}, .tiles = {3}}),
            "tensor `Y`: shape and tile must have the same number of axes, got (3, 4) by (3)");
  EXPECT_EQ(refusal(table, {.name = "Y", .shape = {3}, .word_stride = -1}),
            "tensor `Y`: a word stride that is not negative, got -1");
  EXPECT_EQ(table.size(), 0);
}

TEST(TensorTable, FollowsSharedBuffersToTheirOwner) {
  TensorTable table;
  const TensorId a = table.add({.name = "A", .shape = {4}});
  const TensorId b = table.add({.name = "B", .shape = {4}, .shares_buffer_with = a});
  const TensorId c = table.add({.name = "C", .shape = {4}, .shares_buffer_with = b});
  EXPECT_EQ(table.buffer_owner(c), a);
  EXPECT_EQ(table.buffer_owner(a), a);
  EXPECT_EQ(refusal(table, {.name = "D", .shape = {5}, .shares_buffer_with = a}),
            "tensor `D`: shape and type of `A`, whose buffer it shares: (4) f32, got (5) f32");
  EXPECT_EQ(
      refusal(table, {.name = "D", .shape = {4}, .dtype = DType::kBF16, .shares_buffer_with = a}),
      "tensor `D`: shape and type of `A`, whose buffer it shares: (4) f32, got (4) bf16");
  EXPECT_EQ(refusal(table, {.name = "D", .shape = {4}, .shares_buffer_with = 3}),
            "tensor `D`: an earlier tensor to share the buffer of, got tensor id 3 of 3");
  const TensorId s = table.add({.name = "S", .shape = {4}, .kind = TensorKind::kState});
  EXPECT_EQ(refusal(table, {.name = "D", .shape = {4}, .shares_buffer_with = s}),
            "tensor `D`: a value may share a buffer only with a value, got value with state `S`");
}

}  // namespace
}  // namespace tileweave
