// Every fault of a read planted, with its numbers, and a right neighbour of each.
#include <gtest/gtest.h>

#include "tests/plan/small_plans.h"

namespace tileweave {
namespace {

using testing::grid;
using testing::node;
using testing::read;
using testing::sentences;
using testing::write;

using Kinds = std::vector<FaultKind>;

/// `make` writes Y (8x4) in rows of two; `use` reads it in rows of two and writes Z. Data tiles of
/// two rows unless a test says otherwise.
class ContractReads : public ::testing::Test {
 protected:
  Shape shape_ = {8, 4};
  TileSet pairs_ = grid({8, 4}, {2, 4});
  Plan plan_;
  TensorId y_ = plan_.tensor({.name = "Y", .shape = shape_, .tiles = {2, 4}});
  TensorId z_ = plan_.tensor({.name = "Z", .shape = shape_});
  TensorId s_ = plan_.tensor({.name = "S", .shape = shape_, .kind = TensorKind::kState});

  NodeSpec make() { return node("make", 4, {write(y_, pairs_, 0)}); }
  NodeSpec use() { return node("use", 4, {read(y_, pairs_, 0), write(z_, pairs_)}); }

  std::string check() {
    const ContractReport report = check_contract(plan_);
    kinds_.clear();
    for (const Fault& fault : report.faults) kinds_.push_back(fault.kind);
    edges_ = report.edges;
    overwrites_ = report.overwrites;
    return sentences(report.faults);
  }
  Kinds kinds_;
  std::vector<DataEdge> edges_;
  std::vector<Overwrite> overwrites_;
};

TEST_F(ContractReads, NamesTheTileThatAReadDoesNotWaitFor) {
  plan_.add(make());
  NodeSpec spec = use();
  spec.operands[0].map = TileMap::table({4, 1}, {0, 1, 2, 3, 4}, {0, 1, 3, 3});
  plan_.add(spec);
  EXPECT_EQ(check(),
            "node 1 `use` reads [4:6, 0:4] of `Y`, which node 0 `make` writes, without waiting on "
            "tile (2, 0) of `Y`\n");
  EXPECT_EQ(kinds_, Kinds{FaultKind::kUncoveredRead});
  plan_.nodes()[1].operands[0].map = TileMap::table({4, 1}, {0, 1, 2, 3, 4}, {0, 1, 2, 3});
  EXPECT_EQ(check(), "");
  plan_.nodes()[1].operands[0].map = TileMap::table({4, 1}, {0, 1, 3, 5, 6}, {0, 0, 1, 3, 2, 3});
  EXPECT_EQ(check(), "");
}

TEST_F(ContractReads, NamesTheWriterThatDoesNotArriveOnATileItWrites) {
  const TensorId q = plan_.tensor({.name = "Q", .shape = shape_, .tiles = {4, 4}});
  NodeSpec maker = node("make", 4, {write(q, pairs_, 0)});
  maker.operands[0].map = TileMap::table({4}, {0, 1, 2, 3, 4}, {0, 0, 0, 1});  // third: 0, not 1
  plan_.add(maker);
  plan_.add(node("use", 2, {read(q, grid(shape_, {4, 4}), 0), write(z_)}));
  EXPECT_EQ(check(),
            "node 1 `use` has works 0 and 1 write kernel tile 0 of `Z` without a declared "
            "reduction\n"
            "node 1 `use` reads [4:6, 0:4] of `Q`, which node 0 `make` writes without arriving on "
            "tile (1, 0) of `Q`\n");
  plan_.nodes()[0].operands[0].map = TileMap::table({4}, {0, 1, 2, 3, 4}, {0, 0, 1, 1});
  plan_.nodes()[1].operands.pop_back();
  EXPECT_EQ(check(), "");
}

TEST_F(ContractReads, NamesElementsThatNobodyWrites) {
  plan_.add(make());
  plan_.nodes()[0].operands[0].sync_slot = -1;
  plan_.nodes()[0].operands[0].kernel_tiles = grid(shape_, {2, 3});  // 4 x 2 kernel tiles, 4 works
  plan_.add(node("use", 1, {read(y_), write(z_)}));
  EXPECT_EQ(check(), "node 1 `use` reads [4:8, 0:4] of `Y`, which no node before it writes\n");
  EXPECT_EQ(kinds_, Kinds{FaultKind::kUncoveredRead});
  plan_.nodes()[0].num_works = 7;
  EXPECT_EQ(check(), "node 1 `use` reads [6:8, 3:4] of `Y`, which no node before it writes\n");
  plan_.nodes()[0].num_works = 8;
  EXPECT_EQ(check(), "");
}

TEST_F(ContractReads, NamesTheLaterNodeThatWritesWhatIsRead) {
  NodeSpec untiled = use();
  untiled.operands[0].sync_slot = -1;
  plan_.add(untiled);
  plan_.add(make());
  EXPECT_EQ(check(),
            "node 0 `use` at position 0 reads [0:2, 0:4] of `Y`, which is written only by node 1 "
            "`make` at position 1 (and so for 3 more kernel tiles)\n");
  EXPECT_EQ(kinds_, Kinds{FaultKind::kUncoveredRead});
}

TEST_F(ContractReads, NamesANodeThatReadsItsOwnValue) {
  NodeSpec spec = make();
  spec.operands.push_back(read(y_, pairs_));
  plan_.add(spec);
  EXPECT_EQ(check(),
            "node 0 `make` at position 0 reads [0:2, 0:4] of `Y`, which it writes itself (and so "
            "for 3 more kernel tiles)\n");
}

TEST_F(ContractReads, AnInPlaceValueIsAValueOfItsOwn) {
  const TensorId in_place =
      plan_.tensor({.name = "Y2", .shape = shape_, .tiles = {2, 4}, .shares_buffer_with = y_});
  plan_.add(make());
  plan_.add(node("update", 4, {read(y_, pairs_, 0), write(in_place, pairs_, 1)}));
  plan_.add(node("use", 4, {read(in_place, pairs_, 0), write(z_, pairs_)}));
  EXPECT_EQ(check(), "");
  plan_.nodes()[1].operands[1].tensor = y_;
  EXPECT_NE(check(), "");
}

TEST_F(ContractReads, OperandsWithoutSemaphoresAreOrderedByCompletion) {
  plan_.add(make());
  plan_.add(use());
  plan_.nodes()[0].operands[0].sync_slot = -1;
  EXPECT_EQ(check(), "");
  ASSERT_EQ(edges_.size(), 1U);
  EXPECT_EQ(edges_[0].via, Via::kCompletion);
  plan_.nodes()[0].operands[0].sync_slot = 0;
  plan_.nodes()[1].operands[0].sync_slot = -1;
  EXPECT_EQ(check(), "");
  EXPECT_EQ(edges_[0].via, Via::kCompletion);
  plan_.nodes()[1].operands[0].sync_slot = 0;
  EXPECT_EQ(check(), "");
  EXPECT_EQ(edges_[0].via, Via::kTiles);
  // A second operand on the same tensor without a slot takes the edge with it.
  plan_.nodes()[1].operands.push_back(read(y_));
  EXPECT_EQ(check(), "");
  ASSERT_EQ(edges_.size(), 1U);
  EXPECT_EQ(edges_[0].via, Via::kCompletion);
}

TEST_F(ContractReads, NamesAPrologueReadOfWhatTheRunWritesEarlierOrLater) {
  NodeSpec stable = node("use", 1, {read(s_, grid(shape_, {3, 4})), write(z_)});
  stable.operands[0].when = ReadTime::kPrologue;  // rows 0 to 2
  NodeSpec append = node("append", 1, {write(s_, grid(shape_, {1, 4}))});
  append.operands[0].tiles_of_work = [](std::int64_t) { return std::vector<std::int64_t>{2}; };
  plan_.add(append);
  plan_.add(stable);
  EXPECT_EQ(check(),
            "node 1 `use` reads [2:3, 0:4] of `S` in its prologue, but node 0 `append` writes that "
            "in the same run\n");
  EXPECT_EQ(kinds_, Kinds{FaultKind::kStableReadOfWrittenBox});
  std::swap(plan_.nodes()[0], plan_.nodes()[1]);
  std::swap(plan_.nodes()[0].position, plan_.nodes()[1].position);
  EXPECT_EQ(check(),
            "node 0 `use` reads [2:3, 0:4] of `S` in its prologue, but node 1 `append` writes that "
            "in the same run\n");
  plan_.nodes()[1].operands[0].tiles_of_work = [](std::int64_t) {
    return std::vector<std::int64_t>{3};
  };
  EXPECT_EQ(check(), "");
}

TEST_F(ContractReads, APrologueReadOfAConstantIsRightAndOfAValueIsNot) {
  const TensorId w = plan_.tensor({.name = "W", .shape = {4}, .kind = TensorKind::kConstant});
  NodeSpec spec = use();
  spec.operands.push_back(read(w));
  spec.operands.back().when = ReadTime::kPrologue;
  plan_.add(make());
  plan_.add(spec);
  EXPECT_EQ(check(), "");
  plan_.nodes()[1].operands.push_back(read(y_, grid(shape_, {1, 4})));
  plan_.nodes()[1].operands.back().when = ReadTime::kPrologue;
  EXPECT_EQ(check(),
            "node 1 `use` reads [0:1, 0:4] of `Y` in its prologue, but node 0 `make` writes that "
            "in the same run\n");
}

TEST_F(ContractReads, UnwrittenBoxesOfAStateNeedNoWriter) {
  plan_.add(node("use", 1, {read(s_), write(z_)}));
  EXPECT_EQ(check(), "");
  EXPECT_TRUE(edges_.empty());
}

TEST_F(ContractReads, AWorkMayUpdateItsOwnBoxOfAStateButReadNoOther) {
  plan_.add(node("update", 4, {read(s_, pairs_), write(s_, pairs_)}));
  EXPECT_EQ(check(), "");
  plan_.nodes()[0].operands[0].kernel_tiles = grid(shape_, {3, 4});
  plan_.nodes()[0].num_works = 3;
  plan_.nodes()[0].operands[1].kernel_tiles = pairs_;
  EXPECT_EQ(check(),
            "node 0 `update` has work 0 read [2:3, 0:4] of `S`, which its work 1 writes\n");
  EXPECT_EQ(kinds_, Kinds{FaultKind::kUncoveredRead});
  plan_.nodes()[0].operands[0].kernel_tiles = {};  // every work reads all of it
  EXPECT_EQ(check(),
            "node 0 `update` has work 1 read [0:2, 0:4] of `S`, which its work 0 writes\n");
}

TEST_F(ContractReads, ListsTheReadersThatALaterWriteOfAStateMustWaitFor) {
  plan_.add(node("use", 1, {read(s_, grid(shape_, {4, 4})), write(z_)}));  // rows 0 to 3
  plan_.add(node("update", 4, {write(s_, pairs_)}));
  EXPECT_EQ(check(), "");
  ASSERT_EQ(overwrites_.size(), 1U);
  EXPECT_EQ(overwrites_[0].reader, 0);
  EXPECT_EQ(overwrites_[0].writer, 1);
  EXPECT_EQ(overwrites_[0].tensor, s_);
  plan_.nodes()[1].operands[0].tiles_of_work = [](std::int64_t) {
    return std::vector<std::int64_t>{2};
  };
  plan_.nodes()[1].num_works = 1;
  EXPECT_EQ(check(), "");
  EXPECT_TRUE(overwrites_.empty());
}

TEST_F(ContractReads, NamesAReadAndAWriteOfAStateAtTheSamePosition) {
  plan_.add(node("use", 1, {read(s_), write(z_)}));
  NodeSpec update = node("update", 4, {write(s_, pairs_)});
  update.rank = 1;
  plan_.add(update);
  EXPECT_EQ(check(),
            "node 0 `use` at position 0 reads [0:2, 0:4] of `S`, which node 1 `update` at "
            "position 0 of rank 1 writes\n");
  EXPECT_EQ(kinds_, Kinds{FaultKind::kUncoveredRead});
  std::swap(plan_.nodes()[0], plan_.nodes()[1]);
  std::swap(plan_.nodes()[0].rank, plan_.nodes()[1].rank);
  EXPECT_EQ(check(),
            "node 1 `use` at position 0 of rank 1 reads [0:2, 0:4] of `S`, which node 0 `update` "
            "at position 0 writes\n");
}

TEST_F(ContractReads, OneRankMayReadWhatAnotherWroteAtAnEarlierPosition) {
  const TensorId peers =
      plan_.tensor({.name = "peers", .shape = {2, 8}, .tiles = {1, 4}});  // (rank, element)
  for (std::int32_t rank = 0; rank < 2; ++rank) {
    NodeSpec publish = node("publish", 2, {write(peers, grid({2, 8}, {1, 4}), 0)});
    publish.operands[0].tiles_of_work = [rank](std::int64_t w) {
      return std::vector<std::int64_t>{2 * (1 - rank) + w};  // into the other rank's memory
    };
    publish.rank = rank;
    plan_.add(publish);
  }
  NodeSpec consume = node("consume", 1, {read(peers, grid({2, 8}, {1, 8}), 0), write(z_)});
  plan_.add(consume);
  EXPECT_EQ(check(), "");
  ASSERT_EQ(edges_.size(), 1U);
  EXPECT_EQ(edges_[0].from, 1);
}

}  // namespace
}  // namespace tileweave
