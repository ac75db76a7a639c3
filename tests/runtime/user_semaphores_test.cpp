// Semaphores in memory that the user owns: counted there, read there, going on from what stands
// there.
#include <gtest/gtest.h>

#include <memory>
#include <vector>

#include "tests/runtime/devices.h"
#include "tests/runtime/random_plan.h"
#include "tileweave/core/error.h"
#include "tileweave/runtime/program.h"

namespace tileweave {
namespace {

/// x -> node 0 -> v -> node 1 -> z on rows of 2 of (8, 4); v's semaphores lie at `words`.
MixPlan chain_with(std::uint32_t* words, std::int32_t word_stride) {
  MixPlan mix;
  const TileSet rows = TileSet::plain({{8, 4}, {2, 4}});
  const TensorId x =
      add_filled(mix, {.name = "x", .shape = {8, 4}, .kind = TensorKind::kConstant}, 3);
  const TensorId v = add_value(mix, {.name = "v",
                                     .shape = {8, 4},
                                     .tiles = {4, 4},
                                     .word_stride = word_stride,
                                     .semaphores = words});
  const TensorId z = add_value(mix, {.name = "z", .shape = {8, 4}, .output = true});
  for (const auto& [from, to] : {std::pair{x, v}, std::pair{v, z}}) {
    add_mix(mix, {.name = from == x ? "first" : "second",
                  .inputs = {{.tensor = from, .kernel_tiles = rows}},
                  .outputs = {{.tensor = to, .kernel_tiles = rows}},
                  .num_works = 4,
                  .salt = 1});
  }
  return mix;
}

TEST(UserSemaphores, GoOnFromWhatStandsThereAndNothingBetweenThemIsTouched) {
  for (const std::int32_t stride : {1, 3}) {
    SCOPED_TRACE("stride " + std::to_string(stride));
    const auto device = open_mix_device({.num_sms = 2});
    // Two data tiles; the second starts just below the wrap. Other words are the user's.
    std::vector<std::uint32_t> words(static_cast<std::size_t>(stride) + 1, 77);
    words.front() = 5;
    words.back() = 0xfffffffeU;
    const MixPlan mix = chain_with(words.data(), stride);
    Program program(*device, mix.plan);
    upload(program, mix);
    for (int run = 0; run < 3; ++run) program.run();
    program.synchronize();
    EXPECT_EQ(words.front(), 5U + 3 * 2);
    EXPECT_EQ(words.back(), 0xfffffffeU + 3 * 2);
    for (std::size_t i = 1; i + 1 < words.size(); ++i) EXPECT_EQ(words[i], 77U);
    for (const SemaphoreView& view : program.semaphores(1)) EXPECT_EQ(view.arrived(), 0);
  }
}

TEST(UserSemaphores, RecoverZeroesThemAndNothingBetweenThem) {
  for (const std::int32_t stride : {1, 3}) {
    SCOPED_TRACE("stride " + std::to_string(stride));
    const auto device = open_mix_device({.num_sms = 2});
    std::vector<std::uint32_t> words(static_cast<std::size_t>(stride) + 1, 77);
    const MixPlan mix = chain_with(words.data(), stride);
    Program program(*device, mix.plan);
    upload(program, mix);
    program.run();
    program.recover();
    for (const SemaphoreView& view : program.semaphores(1)) {
      EXPECT_EQ(view.count, 0U);
      EXPECT_EQ(view.base, 0U);
    }
    EXPECT_EQ(words.front(), 0U);
    EXPECT_EQ(words.back(), 0U);
    for (std::size_t i = 1; i + 1 < words.size(); ++i) EXPECT_EQ(words[i], 77U);
    program.run();  // and they count again
    program.synchronize();
    EXPECT_EQ(words.front(), 2U);
    EXPECT_EQ(words.back(), 2U);
  }
}

TEST(UserSemaphores, AreRefusedForATensorWithoutDataTiles) {
  Plan plan;
  std::uint32_t word = 0;
  EXPECT_THROW(plan.tensor({.name = "v", .shape = {8, 4}, .semaphores = &word}), Error);
}

}  // namespace
}  // namespace tileweave
