// Traces of runs, and hand-counted schedules on the virtual clock.
#include <gtest/gtest.h>

#include <map>
#include <set>

#include "tests/runtime/devices.h"
#include "tests/runtime/property.h"
#include "tileweave/trace/exposed_time.h"

namespace tileweave {
namespace {

/// (node, work) of the writers that each (node, work) reads from, straight from the boxes.
using WorkId = std::pair<std::uint32_t, std::uint32_t>;
std::map<WorkId, std::set<WorkId>> expected_arrows(const MixPlan& mix) {
  std::map<WorkId, std::set<WorkId>> arrows;
  for (std::uint32_t j = 0; j < mix.specs().size(); ++j) {
    for (const OperandSpec& read : mix.specs()[j].operands) {
      const Tensor& tensor = mix.plan.tensors()[read.tensor];
      if (read.access != Access::kRead || read.sync_slot < 0 || !tensor.tiled()) continue;
      const TileSet& waited = read.view.empty() ? tensor.tiles : read.view;
      for (std::uint32_t w = 0; w < mix.specs()[j].num_works; ++w) {
        std::set<std::int64_t> tiles;
        for (const std::int64_t k : kernel_tiles_of_work(read, tensor, w)) {
          waited.for_each_meeting(kernel_tiles_of(read, tensor).box(k), [&](std::int64_t v) {
            tensor.tiles.for_each_meeting(waited.box(v), [&](std::int64_t t) { tiles.insert(t); });
          });
        }
        for (std::uint32_t i = 0; i < mix.specs().size(); ++i) {
          for (const OperandSpec& write : mix.specs()[i].operands) {
            if (write.tensor != read.tensor || write.access != Access::kWrite) continue;
            for (std::uint32_t p = 0; p < mix.specs()[i].num_works; ++p) {
              for (const std::int64_t k : kernel_tiles_of_work(write, tensor, p)) {
                tensor.tiles.for_each_meeting(kernel_tiles_of(write, tensor).box(k),
                                              [&](std::int64_t t) {
                                                if (tiles.count(t) > 0)
                                                  arrows[{j, w}].insert({i, p});
                                              });
              }
            }
          }
        }
      }
    }
  }
  return arrows;
}

TEST(Tracing, HasOneRecordPerWorkAndRunAndAnArrowFromEveryProducer) {
  for (std::uint64_t seed = 1; seed <= 25; ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    const MixPlan mix = random_plan({.seed = seed});
    const auto device = open_mix_device({.way = CpuWay::kExplore, .num_sms = 9, .seed = seed});
    // Serial mode keeps every wait, so every arrow must be there.
    Program program(*device, mix.plan, {.mode = Mode::kSerial, .tracing = Tracing::kOn});
    upload(program, mix);
    program.run();
    program.run();
    program.synchronize();
    const Trace trace = program.take_trace();
    ASSERT_NO_THROW(check_trace(trace));
    EXPECT_EQ(trace.num_dropped(), 0U);
    std::map<WorkId, int> records;
    for (const TileRecord& record : trace.records) ++records[{record.node, record.work}];
    for (std::uint32_t n = 0; n < mix.specs().size(); ++n) {
      for (std::uint32_t w = 0; w < mix.specs()[n].num_works; ++w) {
        EXPECT_EQ((records[{n, w}]), 2) << "node " << n << " work " << w;
      }
    }
    std::map<WorkId, std::set<WorkId>> arrows;
    for (const TraceArrow& arrow : trace.arrows) {
      const TileRecord& from = trace.records[arrow.from_record];
      const TileRecord& to = trace.records[arrow.to_record];
      ASSERT_LE(from.signal_ns, to.ready_ns)
          << "node " << from.node << " work " << from.work << " to node " << to.node << " work "
          << to.work << " tensor " << trace.tensors[arrow.tensor] << " tile " << arrow.tile;
      arrows[{to.node, to.work}].insert({from.node, from.work});
    }
    EXPECT_EQ(arrows, expected_arrows(mix));
    const ExposedTime exposed = exposed_time(trace);
    for (const RankTime& rank : exposed.ranks) {
      std::uint64_t sum = 0;
      for (const NodeTime& node : rank.nodes) sum += node.exposed;
      EXPECT_EQ(sum, rank.makespan);
    }
    EXPECT_TRUE(program.take_trace().records.empty());
  }
}

TEST(Tracing, IsRefusedWhenItWasOff) {
  TwoNodes two;
  const MixPlan& mix = two.done();
  const auto device = open_mix_device({.num_sms = 2});
  Program program(*device, mix.plan);
  EXPECT_THROW(program.take_trace(), Error);
}

/// One block per SM, unit time, nothing else costs anything.
std::unique_ptr<Device> unit_device(std::int32_t num_sms) {
  DeviceLimits limits = emulated(num_sms);
  limits.blocks_per_sm = 1;
  return open_mix_device({.way = CpuWay::kModel, .num_sms = num_sms, .limits = limits});
}

double ticks(Device& device, const MixPlan& mix, Mode mode) {
  Program program(device, mix.plan, {.mode = mode, .launch_order = LaunchOrder::kTrusted});
  upload(program, mix);
  MixOracle oracle(mix);
  oracle.run();
  program.run();
  program.synchronize();
  EXPECT_TRUE(same_bits(program, mix, oracle));
  return program.model_ticks();
}

/// Two products of 2 x 2 tiles; y is waited for by rows, as the paper's Figure 1 has it.
MixPlan figure_one() {
  MixPlan mix;
  mix.plan.options() = {
      .name = "Figure 1", .num_streams = 2, .edge = {.start = StartRule::kLaunchCompletion}};
  const Shape shape{4, 4};
  const TileSet tiles = TileSet::plain({shape, {2, 2}});
  const TileSet rows = TileSet::plain({shape, {2, 4}});
  const TensorId x =
      add_filled(mix, {.name = "X", .shape = shape, .kind = TensorKind::kConstant}, 1);
  const TensorId y = add_value(mix, {.name = "Y", .shape = shape, .tiles = {2, 4}});
  const TensorId z = add_value(mix, {.name = "Z", .shape = shape, .output = true});
  const std::vector<std::vector<std::int64_t>> row_of_work = {{0}, {0}, {1}, {1}};
  add_mix(mix, {.name = "first",
                .inputs = {{.tensor = x, .kernel_tiles = rows, .tiles_of_work = row_of_work}},
                .outputs = {{.tensor = y, .kernel_tiles = tiles}},
                .num_works = 4});
  add_mix(mix, {.name = "second",
                .inputs = {{.tensor = y, .kernel_tiles = rows, .tiles_of_work = row_of_work}},
                .outputs = {{.tensor = z, .kernel_tiles = tiles}},
                .num_works = 4});
  return mix;
}

TEST(ModelledSchedules, FigureOneTakesFourTicksSerialAndThreeOverlapped) {
  const auto device = unit_device(3);
  EXPECT_EQ(ticks(*device, figure_one(), Mode::kSerial), 4);
  EXPECT_EQ(ticks(*device, figure_one(), Mode::kOverlap), 3);
}

/// `num_nodes` nodes of `num_works` works in a row, work w reads what work w wrote.
MixPlan row_chain(int num_nodes, std::int64_t num_works, std::int32_t num_streams) {
  MixPlan mix;
  mix.plan.options() = {
      .name = "chain", .num_streams = num_streams, .edge = {.start = StartRule::kLaunchCompletion}};
  const Shape shape{num_works, 2};
  const TileSet rows = TileSet::plain({shape, {1, 2}});
  TensorId last = add_filled(mix, {.name = "x", .shape = shape, .kind = TensorKind::kConstant}, 1);
  for (int i = 0; i < num_nodes; ++i) {
    const TensorId next = add_value(mix, {.name = "v" + std::to_string(i),
                                          .shape = shape,
                                          .tiles = {1, 2},
                                          .output = i == num_nodes - 1});
    add_mix(mix, {.name = "n" + std::to_string(i),
                  .inputs = {{.tensor = last, .kernel_tiles = rows}},
                  .outputs = {{.tensor = next, .kernel_tiles = rows}},
                  .num_works = num_works});
    last = next;
  }
  return mix;
}

TEST(ModelledSchedules, AChainOfRaggedWavesClosesItsGaps) {
  // 5 works on 4 SMs: serial needs 2 ticks a node; overlapped, 15 works fill 4 SMs in 4 ticks.
  const auto device = unit_device(4);
  EXPECT_EQ(ticks(*device, row_chain(3, 5, 3), Mode::kSerial), 6);
  EXPECT_EQ(ticks(*device, row_chain(3, 5, 3), Mode::kOverlap), 4);
}

TEST(ModelledSchedules, WholeWavesLeaveNothingToOverlap) {
  const auto device = unit_device(4);
  EXPECT_EQ(ticks(*device, row_chain(4, 8, 2), Mode::kSerial), 8);
  EXPECT_EQ(ticks(*device, row_chain(4, 8, 2), Mode::kOverlap), 8);
}

TEST(ModelledSchedules, UnevenWorksStartWhenTheirOwnRowIsDone) {
  // Work 0 of the first node takes 3 ticks, the other 1; each work of the second takes 1.
  // Serial: 3 + 1. Overlapped on 3 SMs: row 1 is done after 2, row 0 after 3 + 1.
  MixPlan mix = row_chain(2, 2, 2);
  mix.plan.nodes()[0].cost.of_work = [](std::int64_t work) { return work == 0 ? 3.0 : 1.0; };
  mix.plan.nodes()[1].cost.of_work = [](std::int64_t work) { return work == 0 ? 1.0 : 3.0; };
  const auto device = unit_device(4);
  EXPECT_EQ(ticks(*device, mix, Mode::kSerial), 6);
  EXPECT_EQ(ticks(*device, mix, Mode::kOverlap), 4);
}

}  // namespace
}  // namespace tileweave
