// rope_kv as a node: what it refuses, and what it declares.
#include <gtest/gtest.h>

#include <cstdint>
#include <string>
#include <vector>

#include "tileweave/kernels/rope/rope_kv.h"
#include "tileweave/kernels/rope/rope_kv_args.h"

namespace tileweave {
namespace {

TEST(RopeKvNode, RefusesWhatDoesNotFitInOneSentence) {
  TensorTable tensors;
  const auto constant = [&](const char* name, const Shape& shape, DType type) {
    return tensors.add(
        {.name = name, .shape = shape, .dtype = type, .kind = TensorKind::kConstant});
  };
  float pool = 0;
  const TensorId positions = constant("positions", {3}, DType::kI32);
  const TensorId frequencies = constant("inv_freq", {4}, DType::kF32);
  const TensorId norm = constant("norm", {8}, DType::kBF16);
  const TensorId other_norm = constant("other", {8}, DType::kF32);
  const TensorId k = tensors.add({.name = "k", .shape = {3, 16}});
  const TensorId v = tensors.add({.name = "v", .shape = {3, 16}});
  const TensorId k_pool = tensors.add({.name = "kp", .shape = {3, 16}, .address = &pool});
  const RopeKvTensors fits{.qkv = tensors.add({.name = "qkv", .shape = {3, 64}}),
                           .positions = positions,
                           .slots = constant("slots", {3}, DType::kI32),
                           .inv_freq = frequencies,
                           .q = tensors.add({.name = "q", .shape = {3, 32}}),
                           .k_step = k,
                           .v_step = v};
  const RopeKvOptions options{.name = "n", .heads = 4, .kv_heads = 2};
  const auto sentence = [&](auto change) {
    RopeKvOptions changed_options = options;
    RopeKvTensors changed = fits;
    change(changed_options, changed);
    try {
      rope_kv(tensors, changed_options, changed);
    } catch (const Error& error) {
      return std::string(error.what());
    }
    return std::string("no error");
  };
  using O = RopeKvOptions;
  using T = RopeKvTensors;
  const std::string who = "make rope_kv node `n`: ";
  EXPECT_EQ(sentence([](O&, T&) {}), "no error");
  EXPECT_EQ(sentence([](O& o, T&) { o.kv_heads = 3; }),
            who + "heads must be a multiple of kv_heads 3, got 4");
  EXPECT_EQ(sentence([](O& o, T&) { o.heads = 6; }),
            who + "`qkv` must be (T, 10 head_dim) with an even head_dim, got (3, 64)");
  EXPECT_EQ(sentence([](O& o, T&) { o.attention_factor = 0; }),
            who + "attention_factor must be finite and positive, got 0.000000");
  EXPECT_EQ(sentence([](O& o, T&) { o.tile_m = 0; }), who + "tile_m must be at least 1, got 0");
  EXPECT_EQ(sentence([&](O&, T& t) { t.slots = frequencies; }),
            who + "`inv_freq` must be (3), got (4)");
  EXPECT_EQ(sentence([&](O&, T& t) { t.inv_freq = positions; }),
            who + "`positions` must be (4), got (3)");
  EXPECT_EQ(sentence([&](O&, T& t) { t.q = t.qkv; }), who + "`qkv` must be (3, 32), got (3, 64)");
  EXPECT_EQ(sentence([&](O&, T& t) { t.v_step = k; }),
            who + "q, k_step and v_step must be three values, got one of them twice");
  EXPECT_EQ(sentence([&](O&, T& t) { t.k_step = k_pool; }),
            who + "pool_rows must say how many rows lie at the address of `kp`, got 0");
  EXPECT_EQ(sentence([](O& o, T&) { o.pool_rows = 64; }),
            who + "`k` must have the address of a pool of 64 rows, got none");
  EXPECT_EQ(sentence([&](O&, T& t) { t.q_norm = norm; }),
            who + "q_norm and k_norm must come together, got one of them");
  EXPECT_EQ(sentence([&](O&, T& t) { t.q_norm = norm, t.k_norm = other_norm; }),
            who + "`other` must be bf16, got f32");
}

/// Every head of every row is read once and written once, whatever the cut; several units of qkv
/// only where the groups do not take all heads.
TEST(RopeKvNode, WorksCoverEveryHeadOnce) {
  for (const std::int64_t kv_heads : {1, 2, 3, 6, 7}) {
    for (const std::int64_t per_kv : {1, 3}) {
      for (std::int64_t tile = 1; tile <= kv_heads; ++tile) {
        const RopeKvSchedule s{.rows = 5,
                               .heads = kv_heads * per_kv,
                               .kv_heads = kv_heads,
                               .head_dim = 2,
                               .tile_m = 2,
                               .tile_kv_heads = tile};
        SCOPED_TRACE(std::to_string(kv_heads) + " key heads, " + std::to_string(per_kv) +
                     " queries each, tiles of " + std::to_string(tile));
        std::vector<int> reads(static_cast<std::size_t>(s.tiles_m() * s.all_heads()));
        for (std::int64_t w = 0; w < s.num_works(); ++w) {
          const Coord at = s.tile(w);
          std::vector<std::int64_t> heads;
          for (std::int64_t i = 0; i < s.num_units(at); ++i) {
            for (std::int64_t h = 0; h < s.unit_heads(); ++h) {
              heads.push_back(s.unit(at, i) * s.unit_heads() + h);
              ++reads[static_cast<std::size_t>(at[0] * s.all_heads() + heads.back())];
            }
          }
          ASSERT_EQ(heads.size(),
                    static_cast<std::size_t>(s.num_kv_heads(at) * (s.queries_per_kv() + 2)));
          for (const std::int64_t h : heads) {
            const std::int64_t kv = h < s.heads ? h / per_kv : (h - s.heads) % kv_heads;
            EXPECT_GE(kv, s.first_kv_head(at));
            EXPECT_LT(kv, s.first_kv_head(at) + s.num_kv_heads(at));
          }
        }
        for (const int count : reads) ASSERT_EQ(count, 1);
      }
    }
  }
}

}  // namespace
}  // namespace tileweave
