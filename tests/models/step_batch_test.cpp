#include "tileweave/models/step_batch.h"

#include <gtest/gtest.h>

#include "tileweave/core/error.h"

namespace tileweave {
namespace {

using Ids = std::vector<std::int32_t>;

TEST(StepBatch, LaysPartsOutInOrderAndPadsTheRest) {
  const auto device = open_cpu_device();
  KvCache cache(*device, {.layers = 1, .row_elements = 4, .num_pages = 8, .page_size = 2});
  const auto a = cache.add();
  const auto b = cache.add();
  cache.extend(a, 2);  // an earlier step
  cache.extend(a, 1);
  cache.extend(b, 3);
  const Ids more{7}, prompt{4, 5, 6};
  const std::vector<StepPart> parts{{a, more}, {b, prompt}};
  const StepShape shape{.rows = 8, .sequences = 2, .outputs = 2};
  const StepBatch batch = step_batch(shape, cache, 4, parts);
  EXPECT_EQ(batch.ids, (Ids{7, 4, 5, 6, 0, 0, 0, 0}));
  EXPECT_EQ(batch.positions, (Ids{2, 0, 1, 2, 0, 0, 0, 0}));
  EXPECT_EQ(batch.sequence_of_row, (Ids{0, 1, 1, 1, -1, -1, -1, -1}));
  EXPECT_EQ(batch.slots, (Ids{cache.row(a, 2), cache.row(b, 0), cache.row(b, 1), cache.row(b, 2),
                              -1, -1, -1, -1}));
  EXPECT_EQ(batch.first_row, (Ids{0, 1}));
  EXPECT_EQ(batch.past, (Ids{2, 0}));
  EXPECT_EQ(batch.output_rows, (Ids{0, 3}));
  EXPECT_EQ(batch.page_table, (Ids{cache.pages(a)[0], cache.pages(a)[1], 0, 0, cache.pages(b)[0],
                                   cache.pages(b)[1], 0, 0}));
}

TEST(StepBatch, RefusesPartsThatDoNotFit) {
  const auto device = open_cpu_device();
  KvCache cache(*device, {.layers = 1, .row_elements = 4, .num_pages = 8, .page_size = 2});
  const auto a = cache.add();
  cache.extend(a, 3);
  const Ids ids{1, 2, 3}, none;
  const StepShape shape{.rows = 2, .sequences = 1, .outputs = 1};
  EXPECT_THROW(step_batch(shape, cache, 4, std::vector<StepPart>{{a, ids}}), Error);
  EXPECT_THROW(step_batch(shape, cache, 4, std::vector<StepPart>{{a, none}}), Error);
  EXPECT_THROW(step_batch({.rows = 4}, cache, 1, std::vector<StepPart>{{a, ids}}), Error)
      << "two pages in a table of one";
}

}  // namespace
}  // namespace tileweave
