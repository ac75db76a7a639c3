// Schedules counted by hand against the model's clock, each with the kernels' arithmetic and with
// costs alone.
#include <gtest/gtest.h>

#include <algorithm>
#include <fstream>
#include <string>
#include <tuple>

#include "tests/runtime/cpu/rig.h"
#include "tileweave/core/error.h"

namespace tileweave::test {
namespace {

/// A chain of nodes over one-dimensional tensors, with specs, so that both kinds of model work can
/// run it. Work w of a node touches the kernel tiles that its operands say.
class ModelPlan {
 public:
  struct Operand {
    TensorId tensor;
    Access access;
    std::int64_t ktile;  // elements per kernel tile; whole tensors: its size
    std::function<std::vector<std::int64_t>(std::int64_t)> tiles_of_work = nullptr;
  };

  ModelPlan(std::int32_t sms, ModelWork work, const std::string& described = {})
      : rig_({.way = CpuWay::kModel,
              .num_sms = sms,
              .model_work = work,
              .described_device = described},
             4),
        records_(256) {}

  /// `size` elements in data tiles of `dtile`, each complete after `target` arrivals.
  TensorId tensor(const std::string& name, std::int64_t size, std::int64_t dtile,
                  std::uint32_t target) {
    const TensorId id = tensors_->add({.name = name, .shape = {size}, .tiles = {dtile}});
    words_.push_back(&rig_.semaphores((size + dtile - 1) / dtile));
    targets_.push_back(target);
    return id;
  }

  void node(std::int32_t stream, const std::string& name, std::int64_t works, Cost cost,
            const std::vector<Operand>& operands, std::int64_t blocks = 0) {
    const auto id = static_cast<NodeId>(num_nodes_++);
    auto spec = std::make_shared<NodeSpec>();
    spec->name = name;
    spec->num_works = works;
    auto context = rig_.context<3>(id, works);
    context.header.records = records_.data();
    context.header.num_records = &num_records_;
    context.header.record_capacity = static_cast<std::uint32_t>(records_.size());
    for (std::size_t i = 0; i < operands.size(); ++i) {
      const Operand& o = operands[i];
      const Tensor& tensor = (*tensors_)[o.tensor];
      const Coord dtile = tensor.spec.tiles;
      spec->operands.push_back({.tensor = o.tensor,
                                .access = o.access,
                                .kernel_tiles = TileSet::plain({tensor.spec.shape, {o.ktile}}),
                                .tiles_of_work = o.tiles_of_work,
                                .sync_slot = static_cast<std::int32_t>(i)});
      const auto t = static_cast<std::size_t>(o.tensor);
      context.set(i, Rig::operand(*words_[t], tensor.spec.shape, {o.ktile}, dtile, targets_[t]));
    }
    const std::int64_t num_blocks = blocks == 0 ? works : blocks;
    Launch launch =
        rig_.launch<3>(id, name, num_blocks, context,
                       [spec, tensors = tensors_, num_blocks](CpuLane& lane, const auto& c) {
                         run_works(*spec, *tensors, num_blocks, lane, c);
                       });
    launch.num_works = works;
    launch.cost = cost;
    launch.spec = spec;
    launch.tensors = tensors_;
    launches_.push_back(on(launch, stream));
  }

  double ticks() {
    for (const Launch& launch : launches_) rig_.queue().launch(launch);
    rig_.queue().synchronize();
    EXPECT_FALSE(rig_.queue().deadlock().found());
    return rig_.queue().model_ticks();
  }
  std::vector<TileRecord> records() const {
    std::vector<TileRecord> sorted(records_.begin(), records_.begin() + num_records_);
    std::sort(sorted.begin(), sorted.end(), [](const TileRecord& a, const TileRecord& b) {
      return std::tuple(a.node, a.work) < std::tuple(b.node, b.work);
    });
    return sorted;
  }

 private:
  static void run_works(const NodeSpec& spec, const TensorTable& tensors, std::int64_t num_blocks,
                        CpuLane& lane, const Context<3>& c) {
    Cta<3> sync(c, AtomicsCpu(lane));
    if (!sync.begin_cta()) return;
    for (std::int64_t p = lane.block_index(); p < spec.num_works; p += num_blocks) {
      const std::int64_t work = sync.remap(p);
      for (const Access access : {Access::kRead, Access::kWrite}) {
        for (const OperandSpec& o : spec.operands) {
          if (o.access != access) continue;
          for (const std::int64_t k : kernel_tiles_of_work(o, tensors[o.tensor], work)) {
            if (access == Access::kWrite) {
              sync.signal_output(o.sync_slot, {k});
            } else if (!sync.wait_input(o.sync_slot, {k})) {
              return;
            }
          }
        }
      }
    }
  }

  Rig rig_;
  std::shared_ptr<TensorTable> tensors_ = std::make_shared<TensorTable>();
  std::vector<Launch> launches_;
  std::vector<Semaphores*> words_;
  std::vector<std::uint32_t> targets_;
  std::vector<TileRecord> records_;
  std::uint32_t num_records_ = 0;
  int num_nodes_ = 0;
};

using Operand = ModelPlan::Operand;

class Model : public testing::TestWithParam<ModelWork> {};
INSTANTIATE_TEST_SUITE_P(Work, Model, testing::Values(ModelWork::kMath, ModelWork::kCostOnly),
                         [](const auto& work) {
                           return work.param == ModelWork::kMath ? "Math" : "CostOnly";
                         });

/// Figure 1: two GEMMs of 2 x 2 tiles. Y is linearised: tiles 0, 1 are its first row of tiles. Y
/// has one data tile per row (two arrivals); a tile of the second GEMM reads one row.
void figure_1(ModelPlan& plan, std::int32_t second_stream) {
  const TensorId y = plan.tensor("Y", 4, 2, 2);
  const TensorId z = plan.tensor("Z", 4, 1, 1);
  plan.node(0, "first", 4, {}, {{y, Access::kWrite, 1}});
  plan.node(second_stream, "second", 4, {},
            {{y, Access::kRead, 2, [](std::int64_t w) { return std::vector{w / 2}; }},
             {z, Access::kWrite, 1}});
}

// tick:   0      1      2      3      4
// SM 0    Y00    Y11    Z00    Z11
// SM 1    Y01    -      Z01    -
// SM 2    Y10    -      Z10    -
TEST_P(Model, Figure1SerialTakesFourTicks) {
  ModelPlan plan(3, GetParam());
  figure_1(plan, 0);
  EXPECT_EQ(plan.ticks(), 4.0);
}

// tick:   0      1      2      3
// SM 0    Y00    Y11    Z10
// SM 1    Y01    Z00    Z11
// SM 2    Y10    Z01    -          row 0 of Y is complete at tick 1, row 1 at tick 2
TEST_P(Model, Figure1OverlappedTakesThreeTicks) {
  ModelPlan plan(3, GetParam());
  figure_1(plan, 1);
  EXPECT_EQ(plan.ticks(), 3.0);
  const std::vector<TileRecord> records = plan.records();
  ASSERT_EQ(records.size(), 8U);
  // Stamps are ticks + 1. The works of the second GEMM, in order.
  const std::uint64_t begins[] = {2, 2, 3, 3};
  const std::uint32_t sms[] = {1, 2, 0, 1};
  for (std::size_t w = 0; w < 4; ++w) {
    EXPECT_EQ(records[4 + w].begin_ns, begins[w]);
    EXPECT_EQ(records[4 + w].ready_ns, begins[w]);
    EXPECT_EQ(records[4 + w].signal_ns, begins[w] + 1);
    EXPECT_EQ(records[4 + w].sm, sms[w]);
  }
}

// One block a node, three SMs. Prologue 2 (weights into shared memory), cost 1.
// overlap, a stream each: all prologues at 0..2; then 2..3, 3..4, 4..5.
// serial: (2 + 1) three times.
TEST_P(Model, ChainHidesItsPrologues) {
  for (const bool overlap : {false, true}) {
    ModelPlan plan(3, GetParam());
    TensorId before = kNoTensor;
    for (std::int32_t n = 0; n < 3; ++n) {
      const TensorId t = plan.tensor("t" + std::to_string(n), 1, 1, 1);
      std::vector<Operand> operands = {{t, Access::kWrite, 1}};
      if (n > 0) operands.insert(operands.begin(), {before, Access::kRead, 1});
      plan.node(overlap ? n : 0, "n" + std::to_string(n), 1, {.prologue = 2, .per_work = 1},
                operands);
      before = t;
    }
    EXPECT_EQ(plan.ticks(), overlap ? 5.0 : 9.0);
  }
}

// A (2) -> B (3), C (1) -> D (1), a stream each, four SMs: A 0..2, B 2..5, C 2..3, D 5..6.
// Two SMs, streams {A, C} and {B, D}: A 0..2 on SM 0 with B waiting on SM 1; C 2..3; B 2..5;
// D 5..6. serial: 2 + 3 + 1 + 1 = 7.
TEST_P(Model, DiamondRunsItsSidesTogether) {
  struct Case {
    std::int32_t sms;
    std::int32_t streams[4];
    double ticks;
  };
  for (const Case& c :
       {Case{4, {0, 1, 2, 3}, 6}, Case{2, {0, 1, 0, 1}, 6}, Case{2, {0, 0, 0, 0}, 7}}) {
    ModelPlan plan(c.sms, GetParam());
    const TensorId a = plan.tensor("a", 1, 1, 1);
    const TensorId b = plan.tensor("b", 1, 1, 1);
    const TensorId d = plan.tensor("c", 1, 1, 1);
    plan.node(c.streams[0], "A", 1, {.per_work = 2}, {{a, Access::kWrite, 1}});
    plan.node(c.streams[1], "B", 1, {.per_work = 3},
              {{a, Access::kRead, 1}, {b, Access::kWrite, 1}});
    plan.node(c.streams[2], "C", 1, {.per_work = 1},
              {{a, Access::kRead, 1}, {d, Access::kWrite, 1}});
    plan.node(c.streams[3], "D", 1, {.per_work = 1},
              {{b, Access::kRead, 1}, {d, Access::kRead, 1}});
    EXPECT_EQ(plan.ticks(), c.ticks);
  }
}

// Producer of 5 works (2 ticks) on 2 SMs, consumer of 5 works (1 tick), each on one tile.
// tick:  0     1     2     3     4     5     6     7     8
// SM 0   P0 P0       P2 P2       P4 P4       C2    C4
// SM 1   P1 P1       P3 P3       C0    C1    C3    -
// serial: three waves of 2 and three of 1 make 9.
TEST_P(Model, ConsumerFillsTheRaggedLastWave) {
  for (const bool overlap : {false, true}) {
    ModelPlan plan(2, GetParam());
    const TensorId t = plan.tensor("t", 5, 1, 1);
    plan.node(0, "producer", 5, {.per_work = 2}, {{t, Access::kWrite, 1}});
    plan.node(overlap ? 1 : 0, "consumer", 5, {.per_work = 1}, {{t, Access::kRead, 1}});
    EXPECT_EQ(plan.ticks(), overlap ? 8.0 : 9.0);
  }
}

// Two persistent producer blocks, works 0 2 4 and 1 3 5, each 0.5 + 1; one persistent consumer
// block, 0.25 a work. Tiles 0, 1 at 1.5; 2, 3 at 3; 4, 5 at 4.5. Consumer: 1.5 .. 2, 3 .. 3.5,
// 4.5 .. 5. serial: 4.5 + 6 * 0.25 = 6.
TEST_P(Model, PersistentBlocksOverlapWorkByWork) {
  for (const bool overlap : {false, true}) {
    ModelPlan plan(3, GetParam());
    const TensorId t = plan.tensor("t", 6, 1, 1);
    plan.node(0, "producer", 6, {.prologue = 0.5, .per_work = 1}, {{t, Access::kWrite, 1}}, 2);
    plan.node(overlap ? 1 : 0, "consumer", 6, {.per_work = 0.25}, {{t, Access::kRead, 1}}, 1);
    EXPECT_EQ(plan.ticks(), overlap ? 5.0 : 6.0);
  }
}

// Works of unequal cost on 2 SMs: 3, 1, 1, 1 end at 3 | 1, 2, 3; the consumer's only work waits for
// all four and takes 1: 4.
TEST_P(Model, CostsMayDifferFromWorkToWork) {
  ModelPlan plan(2, GetParam());
  const TensorId t = plan.tensor("t", 4, 4, 4);
  plan.node(0, "producer", 4, {.of_work = [](std::int64_t w) { return w == 0 ? 3.0 : 1.0; }},
            {{t, Access::kWrite, 1}});
  plan.node(1, "consumer", 1, {}, {{t, Access::kRead, 4}});
  EXPECT_EQ(plan.ticks(), 4.0);
}

std::string described_h200() {
  return std::string(TW_SOURCE_DIR) + "/data/described/h200.txt";
}

// h200: the first node computes 0..1000 and makes its arrival at 1250 (signal 250).
// overlap: the waiter goes on at 1850 (wait 600), ends at 2850.
// serial: it begins at 1250 + 2200, waits 600, ends at 3450 + 600 + 1000.
TEST_P(Model, DescribedDeviceAddsItsOverheads) {
  for (const bool overlap : {false, true}) {
    ModelPlan plan(0, GetParam(), described_h200());
    const TensorId t = plan.tensor("t", 1, 1, 1);
    plan.node(0, "first", 1, {.per_work = 1000}, {{t, Access::kWrite, 1}});
    plan.node(overlap ? 1 : 0, "second", 1, {.per_work = 1000}, {{t, Access::kRead, 1}});
    EXPECT_EQ(plan.ticks(), overlap ? 2850.0 : 5050.0);
  }
}

// Two blocks on one SM that share it, 1000 and 3000 alone: both at half speed until 2000, then the
// second alone with 2000 left: 4000. (Two works of one node; its tile is never waited for, so the
// arrivals add 250.)
TEST_P(Model, BlocksOnOneSmShareIt) {
  ModelPlan plan(1, GetParam(), described_h200());
  const TensorId t = plan.tensor("t", 2, 1, 1);
  plan.node(0, "pair", 2, {.of_work = [](std::int64_t w) { return w == 0 ? 1000.0 : 3000.0; }},
            {{t, Access::kWrite, 1}});
  EXPECT_NEAR(plan.ticks(), 4250.0, 1e-6);
  const std::vector<TileRecord> records = plan.records();
  EXPECT_EQ(records[0].end_ns, 2251U);
}

TEST(ModelWorks, MathAndCostsAloneGiveTheSameTimeline) {
  for (const std::int32_t second : {0, 1}) {
    for (const std::string& described : {std::string(), described_h200()}) {
      std::vector<std::vector<TileRecord>> timelines;
      for (const ModelWork work : {ModelWork::kMath, ModelWork::kCostOnly}) {
        ModelPlan plan(3, work, described);
        figure_1(plan, second);
        plan.ticks();
        timelines.push_back(plan.records());
      }
      ASSERT_EQ(timelines[0].size(), timelines[1].size());
      for (std::size_t i = 0; i < timelines[0].size(); ++i) {
        EXPECT_EQ(std::memcmp(&timelines[0][i], &timelines[1][i], sizeof(TileRecord)), 0) << i;
      }
    }
  }
}

TEST(ModelWorks, CostsAloneRunNoKernel) {
  Rig rig({.way = CpuWay::kModel, .num_sms = 2, .model_work = ModelWork::kCostOnly});
  Launch launch = rig.plain(0, "never", 5, [](CpuLane&) { FAIL() << "the kernel ran"; });
  auto spec = std::make_shared<NodeSpec>();
  spec->num_works = 5;
  launch.spec = spec;
  launch.tensors = std::make_shared<TensorTable>();
  rig.queue().launch(launch);
  rig.queue().synchronize();
  EXPECT_EQ(rig.queue().model_ticks(), 3.0);  // 5 blocks of one tick on 2 SMs
}

TEST(ModelWorks, NamesADeadlock) {
  Rig rig({.way = CpuWay::kModel, .num_sms = 2});
  Semaphores& s = rig.semaphores(1);
  auto context = rig.context<1>(3, 1);
  context.set(0, Rig::operand(s, {1}, {1}, {1}, 2));
  rig.queue().launch(rig.launch<1>(3, "waits", 1, context, [](CpuLane& lane, const auto& c) {
    Cta<1> sync(c, AtomicsCpu(lane));
    if (!sync.begin_cta()) return;
    EXPECT_FALSE(sync.wait_input(0, {0}));
  }));
  rig.queue().synchronize();
  ASSERT_EQ(rig.queue().deadlock().waits.size(), 1U);
  EXPECT_EQ(rig.queue().deadlock().waits[0].name, "waits");
}

TEST(DescribedDeviceFile, ErrorsNameFileAndLine) {
  const std::string path = testing::TempDir() + "/described_device.txt";
  const auto message = [&](const std::string& text) {
    std::ofstream(path) << text;
    try {
      open_cpu_device({.way = CpuWay::kModel, .described_device = path});
    } catch (const Error& error) {
      return std::string(error.what());
    }
    return std::string("opened");
  };
  EXPECT_NE(message("name = x\nspeed = 3\n").find("line 2: 'speed = 3'"), std::string::npos);
  EXPECT_NE(message("name = x\nwait = fast\n").find("line 2"), std::string::npos);
  EXPECT_NE(message("name = x\nwait = -1\n").find("line 2"), std::string::npos);
  EXPECT_NE(message("name = x\nname = y\n").find("each key once"), std::string::npos);
  EXPECT_NE(message("nonsense\n").find("key = value"), std::string::npos);
  EXPECT_NE(message("name = x\n").find("no `"), std::string::npos);
  EXPECT_THROW(open_cpu_device({.way = CpuWay::kModel, .described_device = path + ".missing"}),
               Error);
}

}  // namespace
}  // namespace tileweave::test
