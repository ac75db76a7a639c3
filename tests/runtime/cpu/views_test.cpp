#include <gtest/gtest.h>

#include <string>

#include "tests/runtime/cpu/rig.h"
#include "tileweave/core/error.h"
#include "tileweave/runtime/cpu/access_judge.h"
#include "tileweave/runtime/cpu/tile_view.h"

namespace tileweave::test {
namespace {

/// Y (8, 6) in row tiles of 4, W constant, Z (8, 6): work w reads rows 4w .. 4w + 4 of Y and all of
/// W and writes 4 x 6 of Z. Z is tiled, too.
constexpr std::int64_t kRows = 8;
constexpr std::int64_t kColumns = 6;
constexpr int kY = 0;
constexpr int kW = 1;
constexpr int kZ = 2;
constexpr int kSlotY = 0;
constexpr int kSlotZ = 1;

struct Views {
  MatrixView<const float> y;
  MatrixView<const float> w;
  MatrixView<float> z;
  MatrixView<float> input_as_output;  // what a kernel must not make of Y
};
using Body = std::function<void(Cta<2>& sync, const Views& views, std::int64_t work)>;

/// Runs two works of the node with `body`; returns what the device said, or empty.
std::string run(const Body& body, std::uint32_t flags = 0, std::uint32_t arrived = 1,
                ReadTime y_when = ReadTime::kAfterWait, CheckViews check = CheckViews::kOn) {
  Rig rig({.way = CpuWay::kExplore, .num_sms = 2, .check_views = check});
  auto tensors = std::make_shared<TensorTable>();
  const TensorId y =
      tensors->add({.name = "Y", .shape = {kRows, kColumns}, .tiles = {4, kColumns}});
  const TensorId w =
      tensors->add({.name = "W", .shape = {kRows, kColumns}, .kind = TensorKind::kConstant});
  const TensorId z =
      tensors->add({.name = "Z", .shape = {kRows, kColumns}, .tiles = {4, kColumns}});
  const TileSet rows = TileSet::plain({{kRows, kColumns}, {4, kColumns}});
  auto spec = std::make_shared<NodeSpec>();
  spec->name = "scale";
  spec->num_works = 2;
  spec->operands = {
      {.tensor = y, .when = y_when, .kernel_tiles = rows, .sync_slot = kSlotY},
      {.tensor = w, .when = ReadTime::kPrologue},
      {.tensor = z, .access = Access::kWrite, .kernel_tiles = rows, .sync_slot = kSlotZ}};
  std::vector<float> values(3 * kRows * kColumns, 1.0F);

  auto context = rig.context<2>(4, 2);
  Semaphores& sy = rig.semaphores(2);
  for (auto& word : sy.words) word = arrived;
  context.set(kSlotY, Rig::operand(sy, {kRows, kColumns}, {4, kColumns}, {4, kColumns}, arrived));
  context.set(kSlotZ,
              Rig::operand(rig.semaphores(2), {kRows, kColumns}, {4, kColumns}, {4, kColumns}, 1));
  context.header.flags = flags;
  Launch launch = rig.launch<2>(4, "scale", 2, context, [&](CpuLane& lane, const auto& c) {
    Cta<2> sync(c, AtomicsCpu(lane));
    if (!sync.begin_cta()) return;
    float* data = values.data();
    const Views views{{data, kColumns, kY, lane.checker()},
                      {data + kRows * kColumns, kColumns, kW, lane.checker()},
                      {data + 2 * kRows * kColumns, kColumns, kZ, lane.checker()},
                      {data, kColumns, kY, lane.checker()}};
    body(sync, views, sync.remap(lane.block_index()));
  });
  launch.spec = spec;
  launch.tensors = tensors;
  rig.queue().launch(launch);
  try {
    rig.queue().synchronize();
  } catch (const Error& error) {
    return error.what();
  }
  return {};
}

void right(Cta<2>& sync, const Views& views, std::int64_t work) {
  const float* w = views.w.row(0, 0, kColumns);  // prologue
  if (!sync.wait_input(kSlotY, {work})) return;
  for (std::int64_t i = 4 * work; i < 4 * work + 4; ++i) {
    const float* y = views.y.row(i, 0, kColumns);
    float* z = views.z.row(i, 0, kColumns);
    for (std::int64_t j = 0; j < kColumns; ++j) z[j] = y[j] * w[j];
  }
  sync.signal_output(kSlotZ, {work});
}

void expect_words(const std::string& message, const std::vector<std::string>& words) {
  for (const std::string& word : words) {
    EXPECT_NE(message.find(word), std::string::npos) << "no '" << word << "' in: " << message;
  }
}

TEST(CheckingViews, LetARightKernelPass) {
  EXPECT_EQ(run(right), "");
  EXPECT_EQ(run(right, SyncHeader::kProgrammaticConsumer), "");
}

TEST(CheckingViews, FindAReadOutsideTheDeclaredBox) {
  const std::string message = run([](Cta<2>& sync, const Views& views, std::int64_t work) {
    if (!sync.wait_input(kSlotY, {work})) return;
    views.y.row(4 * work + 3, 0, kColumns);
    views.y.row((4 * work + 4) % kRows, 2, 3);  // the other work's row
    sync.signal_output(kSlotZ, {work});
  });
  expect_words(message, {"node 4 `scale`", "operand 0 `Y`", "reads [", "2:5]", "work ",
                         "inside the declared kernel tiles"});
}

TEST(CheckingViews, FindAReadBeforeTheWait) {
  const std::string message = run([](Cta<2>& sync, const Views& views, std::int64_t work) {
    views.y.row(4 * work, 0, 1);
    if (!sync.wait_input(kSlotY, {work})) return;
    sync.signal_output(kSlotZ, {work});
  });
  expect_words(message, {"node 4 `scale`", "operand 0 `Y`", "before its wait"});
}

TEST(CheckingViews, FindAWaitForAnotherWorksTile) {
  const std::string message = run([](Cta<2>& sync, const Views&, std::int64_t work) {
    if (!sync.wait_input(kSlotY, {1 - work})) return;
    sync.signal_output(kSlotZ, {work});
  });
  expect_words(message, {"waits for kernel tile", "operand 0 `Y`", "that the work declares"});
}

TEST(CheckingViews, FindAPrologueReadOfSomethingProduced) {
  const std::string message = run(
      [](Cta<2>& sync, const Views& views, std::int64_t work) {
        views.y.row(4 * work, 0, 1);
        if (!sync.wait_input(kSlotY, {work})) return;
        sync.signal_output(kSlotZ, {work});
      },
      0, 1, ReadTime::kPrologue);
  expect_words(message, {"operand 0 `Y`", "in the prologue"});
}

TEST(CheckingViews, FindAWriteOutsideTheDeclaredBox) {
  const std::string message = run([](Cta<2>& sync, const Views& views, std::int64_t work) {
    if (!sync.wait_input(kSlotY, {work})) return;
    views.z.row(4 * work, 1, kColumns);  // one element beyond the row
    sync.signal_output(kSlotZ, {work});
  });
  expect_words(message, {"operand 2 `Z`", "writes [", "1:7]"});
}

TEST(CheckingViews, FindAWriteAfterTheSignal) {
  const std::string message = run([](Cta<2>& sync, const Views& views, std::int64_t work) {
    if (!sync.wait_input(kSlotY, {work})) return;
    sync.signal_output(kSlotZ, {work});
    views.z.row(4 * work, 0, 1);
  });
  expect_words(message, {"operand 2 `Z`", "after its signal"});
}

TEST(CheckingViews, FindAMissingAndASecondSignal) {
  expect_words(run([](Cta<2>& sync, const Views&, std::int64_t work) {
                 if (!sync.wait_input(kSlotY, {work})) return;
               }),
               {"operand 2 `Z`", "ended without signalling"});
  expect_words(run([](Cta<2>& sync, const Views&, std::int64_t work) {
                 if (!sync.wait_input(kSlotY, {work})) return;
                 sync.signal_output(kSlotZ, {work});
                 sync.signal_output(kSlotZ, {work});
               }),
               {"operand 2 `Z`", "again"});
}

TEST(CheckingViews, FindAWriteOfAnInput) {
  expect_words(run([](Cta<2>& sync, const Views& views, std::int64_t work) {
                 if (!sync.wait_input(kSlotY, {work})) return;
                 views.input_as_output.row(4 * work, 0, 1);
               }),
               {"operand 0 `Y`", "writes to outputs only"});
}

TEST(CheckingViews, FindATouchBeforeTheGridDependencyWait) {
  const std::string message =
      run([](Cta<2>&, const Views& views, std::int64_t work) { views.z.row(4 * work, 0, 1); },
          SyncHeader::kProgrammaticConsumer);
  expect_words(message, {"operand 2 `Z`", "before the grid dependency wait"});
}

TEST(CheckingViews, CostNothingToUseWhereTheyAreOff) {
  EXPECT_EQ(run(
                [](Cta<2>& sync, const Views& views, std::int64_t work) {
                  views.y.row(4 * work, 0, 1);  // wrong, and nobody looks
                  if (!sync.wait_input(kSlotY, {work})) return;
                  sync.signal_output(kSlotZ, {work});
                },
                0, 1, ReadTime::kAfterWait, CheckViews::kOff),
            "");
}

TEST(CheckingViews, BlocksAndRunsAreBoxes) {
  struct Recorder final : AccessChecker {
    void on_read(int operand, const Box& box) override { read = {operand, box}; }
    void on_write(int operand, const Box& box) override { written = {operand, box}; }
    std::pair<int, Box> read;
    std::pair<int, Box> written;
  } recorder;
  std::vector<float> data(60);
  const TensorView<const float> tensor(data.data(), {3, 4, 5}, 7, &recorder);
  EXPECT_EQ(tensor.run({1, 2, 3}, 2), data.data() + 33);
  EXPECT_EQ(recorder.read.first, 7);
  EXPECT_EQ(recorder.read.second, (Box{{1, 2, 3}, {1, 1, 2}}));
  const MatrixView<float> matrix(data.data(), 10, 8, &recorder);
  EXPECT_EQ(matrix.block(2, 3, 2, 4), data.data() + 23);
  EXPECT_EQ(recorder.written.second, (Box{{2, 3}, {2, 4}}));
}

TEST(CheckingViews, CoverageMayTakeSeveralTiles) {
  const Box left{{0, 0}, {4, 3}};
  const Box right_half{{0, 3}, {4, 3}};
  EXPECT_TRUE(cpu::covered_by({{1, 1}, {2, 4}}, {left, right_half}));
  EXPECT_FALSE(cpu::covered_by({{1, 1}, {2, 4}}, {left}));
  EXPECT_FALSE(cpu::covered_by({{1, 1}, {4, 4}}, {left, right_half}));
  EXPECT_FALSE(cpu::covered_by({{0, 0}, {1, 1}}, {}));
}

}  // namespace
}  // namespace tileweave::test
