// Embedding on a GPU: rows of constant tables, and of hidden states that the run produces.
#include <gtest/gtest.h>

#include <cstdint>
#include <limits>
#include <string>
#include <vector>

#include "tests/kernels/operand_values.h"
#include "tileweave/kernels/embedding/embedding.h"
#include "tileweave/kernels/embedding/embedding_ref.h"
#include "tileweave/kernels/gemm/gemm.h"
#include "tileweave/kernels/norm/rms_norm.h"
#include "tileweave/runtime/program.h"

namespace tileweave {
namespace {

template <class Y>
std::vector<float> as_floats(const std::vector<Y>& values) {
  std::vector<float> floats;
  floats.reserve(values.size());
  for (const Y value : values) floats.push_back(to_float(value));
  return floats;
}

template <class T, class Y>
std::vector<float> embed(Device& device, const std::vector<std::int32_t>& ids,
                         const std::vector<T>& table, std::int64_t cols,
                         const EmbeddingOptions& options = {}) {
  const auto rows = static_cast<std::int64_t>(ids.size());
  Plan plan;
  const TensorId ti = plan.tensor(
      {.name = "ids", .shape = {rows}, .dtype = DType::kI32, .kind = TensorKind::kConstant});
  const TensorId tt = plan.tensor({.name = "table",
                                   .shape = {static_cast<std::int64_t>(table.size()) / cols, cols},
                                   .dtype = kDTypeOf<T>,
                                   .kind = TensorKind::kConstant});
  const TensorId to =
      plan.tensor({.name = "out", .shape = {rows, cols}, .dtype = kDTypeOf<Y>, .output = true});
  plan.add(embedding(plan.tensors(), options, ti, tt, to));
  Program program(device, plan);
  program.write(ti, ids);
  program.write(tt, table);
  program.run();
  program.synchronize();
  return as_floats(program.read<Y>(to));
}

std::vector<std::int32_t> some_ids(std::int64_t count, std::int32_t vocabulary) {
  std::vector<std::int32_t> ids;
  for (std::int32_t t = 0; t < count; ++t) ids.push_back(t % 5 == 4 ? -1 : t * 7 % vocabulary);
  return ids;
}

template <class T, class Y>
void expect_equals_reference(Device& device) {
  for (const std::int64_t rows : {1, 7, 8, 16, 67}) {
    for (const std::int64_t cols : {1, 15, 16, 131, 2048, 2056}) {
      const auto ids = some_ids(rows, 23);
      const auto table = random_values<T>(23 * cols, 61);
      // Nothing is rounded: what is right is equal.
      EXPECT_EQ((embed<T, Y>(device, ids, table, cols)), embedding_reference<T>(ids, table, cols))
          << rows << " x " << cols << " " << name_of(kDTypeOf<T>) << " to " << name_of(kDTypeOf<Y>);
    }
  }
}

TEST(EmbeddingCuda, EveryTypeOfTableGivesTheRowsOfTheReference) {
  const auto device = open_cuda_device();
  add_embedding(*device);
  expect_equals_reference<float, float>(*device);
  expect_equals_reference<BFloat16, float>(*device);
  expect_equals_reference<BFloat16, BFloat16>(*device);
  expect_equals_reference<Float16, float>(*device);
}

TEST(EmbeddingCuda, Float16ComesThroughOverItsWholeRange) {
  const auto device = open_cuda_device();
  add_embedding(*device);
  std::vector<Float16> table;  // every finite value, subnormal ones too
  for (std::uint32_t bits = 0; bits < 0x10000; ++bits) {
    if ((bits & 0x7c00U) != 0x7c00U) table.push_back({static_cast<std::uint16_t>(bits)});
  }
  const std::int64_t cols = static_cast<std::int64_t>(table.size()) / 2;
  EXPECT_EQ((embed<Float16, float>(*device, {1, 0}, table, cols)),
            embedding_reference<Float16>(std::vector<std::int32_t>{1, 0}, table, cols));
}

TEST(EmbeddingCuda, IdsOutsideTheTableGiveZeros) {
  const auto device = open_cuda_device();
  add_embedding(*device);
  constexpr std::int32_t kMost = std::numeric_limits<std::int32_t>::max();
  constexpr std::int32_t kLeast = std::numeric_limits<std::int32_t>::min();
  const std::vector<std::int32_t> ids = {3, -1, kMost, kLeast, 2};
  for (const std::int64_t cols : {2, 64}) {
    const auto table = random_values<BFloat16>(3 * cols, 62);
    EXPECT_EQ((embed<BFloat16, float>(*device, ids, table, cols)),
              embedding_reference<BFloat16>(ids, table, cols));
  }
}

TEST(EmbeddingCuda, TilesAndOrderChangeNothing) {
  const auto device = open_cuda_device();
  add_embedding(*device);
  for (const std::int64_t cols : {67, 2048}) {
    const auto ids = some_ids(16, 29);
    const auto table = random_values<BFloat16>(29 * cols, 63);
    const auto expected = embedding_reference<BFloat16>(ids, table, cols);
    for (const std::int64_t tile_m : {1, 4, 16, 20}) {
      for (const std::int64_t tile_n : {16, 66, 512, 3000}) {
        EXPECT_EQ((embed<BFloat16, BFloat16>(*device, ids, table, cols,
                                             {.tile_m = tile_m,
                                              .tile_n = tile_n,
                                              .num_blocks = tile_n == 66 ? 3 : 0,
                                              .order = TileOrder::rotation(1)})),
                  expected)
            << "tiles of " << tile_m << " x " << tile_n << ", " << cols << " columns";
      }
    }
  }
}

/// N = rms_norm(X) in bf16, G = N[ids], Z = G V: the rows that an LM head sees.
struct ChainCase {
  std::string name;
  Coord table_tiles = {}, out_tiles = {};
  EmbeddingOptions options = {};
};

std::vector<ChainCase> chain_cases() {
  return {{"rows", {16, 40}, {8, 40}},
          {"rows of their own", {1, 40}, {1, 40}, {.tile_m = 1}},
          {"columns", {45, 8}, {21, 16}, {.tile_m = 21, .tile_n = 8}},
          {"2-D", {7, 9}, {4, 13}, {.tile_m = 5, .tile_n = 16}},
          {"persistent blocks", {8, 16}, {8, 8}, {.tile_m = 2, .tile_n = 9, .num_blocks = 3}}};
}

struct ChainResult {
  std::vector<float> table, gathered, z;
};

std::vector<std::int32_t> chain_ids() {
  std::vector<std::int32_t> ids;
  for (std::int32_t t = 0; t < 21; ++t) ids.push_back(t % 6 == 5 ? -1 : 2 * t + 1);
  return ids;
}

ChainResult run_chain(Device& device, const ChainCase& c, const RunOptions& options,
                      const EdgePolicy& edge = {.start = StartRule::kWaitAll}) {
  const std::int64_t hidden_rows = 45, rows = 21, cols = 40, p = 24;
  Plan plan({.num_streams = 3, .edge = edge});
  const auto constant = [&](const char* name, const Shape& shape, DType type) {
    return plan.tensor(
        {.name = name, .shape = shape, .dtype = type, .kind = TensorKind::kConstant});
  };
  const auto value = [&](const char* name, const Shape& shape, const Coord& tiles) {
    return plan.tensor(
        {.name = name, .shape = shape, .dtype = DType::kBF16, .tiles = tiles, .output = true});
  };
  const TensorId x = constant("X", {hidden_rows, cols}, DType::kF32);
  const TensorId weight = constant("weight", {cols}, DType::kF32);
  const TensorId v = constant("V", {cols, p}, DType::kBF16);
  const TensorId ids = constant("ids", {rows}, DType::kI32);
  const TensorId n = value("N", {hidden_rows, cols}, c.table_tiles);
  const TensorId g = value("G", {rows, cols}, c.out_tiles);
  const TensorId z = plan.tensor({.name = "Z", .shape = {rows, p}, .output = true});
  plan.add(rms_norm(plan.tensors(), {.tile_m = 4}, x, weight, n));
  plan.add(embedding(plan.tensors(), c.options, ids, n, g));
  plan.add(gemm(plan.tensors(), {.name = "z", .tile_m = 12, .tile_n = 20}, g, v, z));
  Program program(device, plan, options);
  program.write(x, random_values<float>(hidden_rows * cols, 1));
  program.write(weight, random_values<float>(cols, 2));
  program.write(v, random_values<BFloat16>(cols * p, 3));
  program.write(ids, chain_ids());
  for (int i = 0; i < 2; ++i) program.run();
  program.synchronize();
  return {as_floats(program.read<BFloat16>(n)), as_floats(program.read<BFloat16>(g)),
          program.read<float>(z)};
}

TEST(EmbeddingCuda, RowsThatTheRunProducedForEveryTilingModeAndEdge) {
  const auto device = open_cuda_device();
  add_gemm(*device);
  add_norm(*device);
  add_embedding(*device);
  const ChainResult expected = run_chain(*device, {.name = "untiled"}, {.mode = Mode::kSerial});
  EXPECT_EQ(expected.gathered, embedding_reference<float>(chain_ids(), expected.table, 40));
  for (const ChainCase& c : chain_cases()) {
    for (const Mode mode : {Mode::kSerial, Mode::kOverlap}) {
      for (const Submit submit : {Submit::kEager, Submit::kGraph}) {
        SCOPED_TRACE(c.name + (mode == Mode::kSerial ? ", serial" : ", overlap") +
                     (submit == Submit::kEager ? ", eager" : ", graph"));
        const ChainResult result = run_chain(*device, c, {.mode = mode, .submit = submit});
        EXPECT_EQ(result.gathered, expected.gathered);
        EXPECT_EQ(result.z, expected.z);
      }
    }
    SCOPED_TRACE(c.name + ", programmatic");
    const ChainResult early = run_chain(*device, c, {}, {.kind = EdgeKind::kProgrammatic});
    EXPECT_EQ(early.z, expected.z);
  }
}

}  // namespace
}  // namespace tileweave
