// Embedding of constant ids, and of ids and tables that the run produces, on the emulated device
// with checking views.
#include <gtest/gtest.h>

#include <cstdint>
#include <string>
#include <vector>

#include "tests/kernels/operand_values.h"
#include "tileweave/kernels/embedding/embedding.h"
#include "tileweave/kernels/embedding/embedding_ref.h"
#include "tileweave/kernels/gemm/gemm.h"
#include "tileweave/runtime/cpu/tile_view.h"
#include "tileweave/runtime/program.h"
#include "tileweave/sync/atomics_cpu.h"
#include "tileweave/sync/sync_cta.h"

namespace tileweave {
namespace {

constexpr std::int64_t kRows = 21, kHidden = 45, kCols = 40;

/// A stand-in for sampling: id t = 2 t + 1, or -1 for every sixth, one work per three ids.
struct CountArgs {
  std::int32_t* ids;
  std::int64_t count;
};

void count_ids(CpuLane& lane, const std::byte* arg_bytes, const std::byte* context_bytes) {
  const auto& args = *reinterpret_cast<const CountArgs*>(arg_bytes);
  const auto& context = *reinterpret_cast<const SyncContext<1>*>(context_bytes);
  SyncCta<AtomicsCpu, 1> sync(context, AtomicsCpu(lane));
  if (!sync.begin_cta()) return;
  const std::int64_t work = sync.remap(lane.block_index());
  const TensorView<std::int32_t> ids(args.ids, {args.count}, 0, lane.checker());
  for (std::int64_t t = work * 3; t < min64(args.count, work * 3 + 3); ++t) {
    *ids.run({t}, 1) = t % 6 == 5 ? -1 : static_cast<std::int32_t>(2 * t + 1);
  }
  sync.signal_output(0, {work});
}

NodeSpec count_ids_node(TensorId ids) {
  NodeSpec node{.name = "count",
                .kernel = "count_ids",
                .num_works = ceil_div(kRows, 3),
                .operands = {{.tensor = ids,
                              .access = Access::kWrite,
                              .kernel_tiles = TileSet::plain({{kRows}, {3}}),
                              .sync_slot = 0}},
                .resources = {},
                .cost = {}};
  node.make_args = [](const Addresses& at) {
    return to_bytes(CountArgs{static_cast<std::int32_t*>(at.operands[0]), kRows});
  };
  return node;
}

struct Case {
  std::string name;
  Coord ids_tiles = {}, table_tiles = {}, out_tiles = {};
  EmbeddingOptions options = {};
};

std::vector<Case> cases() {
  return {{"rows", {4}, {16, kCols}, {8, kCols}},
          {"columns", {21}, {45, 10}, {21, 16}, {.tile_m = 21, .tile_n = 8}},
          {"2-D", {2}, {7, 9}, {4, 13}, {.tile_m = 5, .tile_n = 16}},
          {"persistent blocks", {8}, {8, 16}, {8, 8}, {.tile_m = 2, .tile_n = 9, .num_blocks = 3}}};
}

struct Result {
  std::vector<float> table, gathered, z;
  bool operator==(const Result&) const = default;
};

/// H = X W, G = H[ids] with ids counted in the run, Z = G V.
Result run(Device& device, const Case& c, const RunOptions& options) {
  const std::int64_t k = 33, p = 24;
  Plan plan({.num_streams = 3, .edge = {.start = StartRule::kWaitAll}});
  const auto constant = [&](const char* name, const Shape& shape) {
    return plan.tensor({.name = name, .shape = shape, .kind = TensorKind::kConstant});
  };
  const TensorId x = constant("X", {kHidden, k}), w = constant("W", {k, kCols});
  const TensorId v = constant("V", {kCols, p});
  const TensorId ids =
      plan.tensor({.name = "ids", .shape = {kRows}, .dtype = DType::kI32, .tiles = c.ids_tiles});
  const TensorId h =
      plan.tensor({.name = "H", .shape = {kHidden, kCols}, .tiles = c.table_tiles, .output = true});
  const TensorId g =
      plan.tensor({.name = "G", .shape = {kRows, kCols}, .tiles = c.out_tiles, .output = true});
  const TensorId z = plan.tensor({.name = "Z", .shape = {kRows, p}, .output = true});
  plan.add(count_ids_node(ids));
  plan.add(gemm(plan.tensors(), {.name = "h", .tile_m = 16, .tile_n = 24}, x, w, h));
  plan.add(embedding(plan.tensors(), c.options, ids, h, g));
  plan.add(gemm(plan.tensors(), {.name = "z", .tile_m = 12, .tile_n = 20}, g, v, z));
  Program program(device, plan, options);
  program.write(x, random_values<float>(kHidden * k, 1));
  program.write(w, random_values<float>(k * kCols, 2));
  program.write(v, random_values<float>(kCols * p, 3));
  for (int i = 0; i < 2; ++i) program.run();
  program.synchronize();
  return {program.read<float>(h), program.read<float>(g), program.read<float>(z)};
}

void add_all(Device& device) {
  device.kernels().add({.name = "count_ids", .num_sync_slots = 1, .cpu = count_ids});
  add_gemm_cpu(device.kernels());
  add_embedding_cpu(device.kernels());
}

TEST(EmbeddingCpu, GathersRowsThatTheRunProducedByIdsThatItProduced) {
  const auto device = open_cpu_device({.num_sms = 3, .check_views = CheckViews::kOn});
  add_all(*device);
  const Result expected = run(*device, {.name = "untiled"}, {.mode = Mode::kSerial});
  std::vector<std::int32_t> ids;
  for (std::int32_t t = 0; t < kRows; ++t) ids.push_back(t % 6 == 5 ? -1 : 2 * t + 1);
  EXPECT_EQ(expected.gathered, embedding_reference<float>(ids, expected.table, kCols));
  for (const Case& c : cases()) {
    for (const Mode mode : {Mode::kSerial, Mode::kOverlap}) {
      SCOPED_TRACE(c.name + (mode == Mode::kSerial ? ", serial" : ", overlap"));
      EXPECT_TRUE(run(*device, c, {.mode = mode}) == expected);
    }
  }
}

TEST(EmbeddingCpu, ExploredSchedulesGiveTheBitsOfSerial) {
  for (const Case& c : cases()) {
    Result expected;
    for (std::uint64_t seed = 1; seed <= 8; ++seed) {
      SCOPED_TRACE(c.name + ", seed " + std::to_string(seed));
      const auto device = open_cpu_device({.way = CpuWay::kExplore,
                                           .num_sms = seed % 2 == 0 ? 2 : 7,
                                           .seed = seed,
                                           .delay_probability = 0.2,
                                           .check_views = CheckViews::kOn});
      add_all(*device);
      if (seed == 1) expected = run(*device, c, {.mode = Mode::kSerial});
      ASSERT_TRUE(run(*device, c, {}) == expected);
    }
  }
}

}  // namespace
}  // namespace tileweave
