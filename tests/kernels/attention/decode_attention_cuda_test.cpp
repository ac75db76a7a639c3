// Decode attention on a GPU: against its reference, against paged attention bit for bit, alone and
// in batches, in a graph that is replayed while its sequences grow, and between two GEMMs.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <string>
#include <vector>

#include "tests/kernels/attention/attention_cuda.h"
#include "tileweave/kernels/gemm/gemm.h"

namespace tileweave {
namespace {

std::unique_ptr<Device> open() {
  auto device = open_cuda_device();
  add_attention(*device);
  add_gemm(*device);
  return device;
}

float scale_of(const AttentionStep& step) {
  return 1.0F / std::sqrt(static_cast<float>(step.heads.head_dim));
}

TEST(DecodeAttentionCuda, TurnsAttendsAndWritesAsTheReferenceSays) {
  const auto device = open();
  for (const std::int64_t head_dim : {64, 80, 96, 128}) {
    for (const std::int64_t group : {1, 2, 4, 8}) {
      for (const Turn turn : {Turn::kNone, Turn::kRope, Turn::kNormAndRope}) {
        SCOPED_TRACE(std::to_string(group) + " heads per kv head of " + std::to_string(head_dim) +
                     ", turn " + std::to_string(static_cast<int>(turn)));
        const DecodeStep d(rounded({{2 * group, 2, head_dim},
                                    16,
                                    {{1, 0, 1}, {2, 300, 1}, {3, 127, 1}, {4, 128, 1}},
                                    1}),
                           turn, 0.5F);
        const DecodeAttentionReference exact = d.reference(scale_of(d.step), DType::kBF16);
        DecodeRuns runs(*device, d, {.num_splits = 3});
        const std::vector<BFloat16> out = runs.run();
        for (std::size_t i = 0; i < out.size(); ++i) {
          ASSERT_LE(std::fabs(to_float(out[i]) - exact.out[i]), exact.out_bounds[i])
              << "element " << i << ": " << to_float(out[i]) << ", not " << exact.out[i];
        }
        std::vector<BFloat16> k = to_bf16(d.step.k_pool), v = to_bf16(d.step.v_pool);
        const std::vector<BFloat16> k_now = runs.k.read(), v_now = runs.v.read();
        const std::int64_t width = d.step.kv_width();
        for (std::int64_t t = 0; t < d.step.rows; ++t) {
          const std::int64_t slot = d.step.slots[static_cast<std::size_t>(t)];
          if (slot < 0) continue;
          for (std::int64_t i = 0; i < width; ++i) {
            const auto at = static_cast<std::size_t>(slot * width + i);
            const auto from = static_cast<std::size_t>(t * width + i);
            ASSERT_LE(std::fabs(to_float(k_now[at]) - exact.k[from]), exact.k_bounds[from])
                << "key of row " << t;
            ASSERT_LE(std::fabs(to_float(v_now[at]) - exact.v[from]), exact.v_bounds[from])
                << "value of row " << t;
            k[at] = k_now[at];
            v[at] = v_now[at];
          }
        }
        EXPECT_EQ(bits_of(k), bits_of(k_now)) << "rows of the pool that are no one's to write";
        EXPECT_EQ(bits_of(v), bits_of(v_now)) << "rows of the pool that are no one's to write";
      }
    }
  }
}

TEST(DecodeAttentionCuda, WithoutTurningGivesTheBitsOfPagedAttention) {
  const auto device = open();
  for (const AttentionHeads& heads :
       std::vector<AttentionHeads>{{4, 1, 128}, {8, 1, 64}, {2, 1, 80}, {4, 2, 96}}) {
    for (const std::int64_t length :
         {1, 15, 16, 17, 63, 64, 65, 127, 128, 129, 200, 256, 257, 1000, 8191, 32768}) {
      const AttentionStep step = rounded({heads, 16, {{1, length - 1, 1}}});
      const std::vector<std::uint16_t> expected = bits_of(run_paged(*device, step, {}));
      const DecodeStep d(step, Turn::kNone);
      for (const std::int64_t splits : {0, 1, 7}) {
        for (const std::int64_t buffers : {1, 2}) {
          DecodeRuns runs(*device, d, {.num_splits = splits, .buffers = buffers});
          for (int run = 1; run <= 2; ++run) {
            EXPECT_EQ(bits_of(runs.run()), expected)
                << heads.head_dim << " columns, length " << length << ", " << splits << " splits, "
                << buffers << " buffers, run " << run;
          }
        }
      }
    }
  }
}

TEST(DecodeAttentionCuda, BitsOfARowAreTheSameAloneAndInABatch) {
  const auto device = open();
  const AttentionHeads heads{8, 2, 128};
  std::vector<StepSequence> sequences;
  for (std::int64_t i = 0; i < 16; ++i) sequences.push_back({i + 1, i * i * 5 + i % 3, 1});
  const DecodeStep batch(rounded({heads, 16, sequences}), Turn::kNormAndRope, 0.5F);
  DecodeRuns together(*device, batch, {});
  const std::vector<std::uint16_t> out = bits_of(together.run());
  DecodeRuns few_blocks(*device, batch, {.num_splits = 4, .num_blocks = 7});
  EXPECT_EQ(bits_of(few_blocks.run()), out);
  DecodeRuns one_buffer(*device, batch, {.num_splits = 4, .buffers = 1, .num_blocks = 7});
  EXPECT_EQ(bits_of(one_buffer.run()), out);
  for (std::size_t i = 0; i < sequences.size(); ++i) {
    const DecodeStep alone(rounded({heads, 16, {sequences[i]}}), Turn::kNormAndRope, 0.5F);
    DecodeRuns one(*device, alone, {});
    const std::vector<std::uint16_t> expected = bits_of(one.run());
    ASSERT_TRUE(std::equal(expected.begin(), expected.end(),
                           out.begin() + static_cast<std::int64_t>(i) * batch.step.q_width()))
        << "sequence of " << sequences[i].past << " older keys";
  }
}

TEST(DecodeAttentionCuda, AReplayedGraphFollowsGrowingSequences) {
  const auto device = open();
  const AttentionHeads heads{4, 1, 64};
  // Rows of one plan: pages are dealt for the last step, the lengths below grow towards it.
  const std::int64_t steps = 140, first = 250;
  const AttentionStep last = rounded({heads, 16, {{1, first + steps, 1}, {2, steps, 1}}});
  DecodeStep whole(last, Turn::kNone);
  // What the runs are to write is not there yet.
  for (std::int64_t sequence = 0; sequence < 2; ++sequence) {
    for (std::int64_t j = sequence == 0 ? first : 0; j <= last.positions[sequence]; ++j) {
      const std::int64_t page = last.page_table[sequence * last.max_pages + j / 16];
      const std::int64_t at = (page * 16 + j % 16) * last.kv_width();
      std::fill_n(whole.step.k_pool.begin() + at, last.kv_width(), NAN);
      std::fill_n(whole.step.v_pool.begin() + at, last.kv_width(), NAN);
    }
  }
  const auto at_step = [&](std::int64_t i) {
    AttentionStep now = rounded({heads, 16, {{1, first + i, 1}, {2, i, 1}}});
    // The same pages as in the last step.
    now.max_pages = last.max_pages;
    now.page_table = last.page_table;
    for (std::size_t t = 0; t < 2; ++t) {
      const std::int64_t j = now.positions[t];
      now.slots[t] =
          static_cast<std::int32_t>(last.page_table[t * static_cast<std::size_t>(last.max_pages) +
                                                    static_cast<std::size_t>(j / 16)] *
                                        16 +
                                    j % 16);
    }
    return now;
  };
  const auto decode_of = [](AttentionStep step) {
    // Only qkv and numbers are used: the pool is the program's.
    step.k_pool.clear();
    step.v_pool.clear();
    DecodeStep d(AttentionStep({1, 1, 2}, 1, {{1, 0, 1}}), Turn::kNone);
    d.qkv.clear();
    for (std::int64_t t = 0; t < step.rows; ++t) {
      for (const auto& [from, width] :
           {std::pair(&step.q, step.q_width()), std::pair(&step.k_step, step.kv_width()),
            std::pair(&step.v_step, step.kv_width())}) {
        d.qkv.insert(d.qkv.end(), from->begin() + t * width, from->begin() + (t + 1) * width);
      }
    }
    d.step = std::move(step);
    return d;
  };
  for (const std::int64_t splits : {0, 3}) {
    DecodeRuns runs(*device, whole, {.num_splits = splits}, {.submit = Submit::kGraph});
    for (std::int64_t i = 0; i <= steps; ++i) {
      const AttentionStep now = at_step(i);
      runs.write(decode_of(now));
      const std::vector<std::uint16_t> out = bits_of(runs.run());
      if (i % 10 != 0 && i < 125 && i > 9) continue;
      const AttentionStep fresh = rounded({heads, 16, {{1, first + i, 1}, {2, i, 1}}});
      ASSERT_EQ(out, bits_of(run_paged(*device, fresh, {})))
          << "step " << i << ", " << splits << " splits";
    }
  }
}

/// qkv = x W, attention, y = attention V: bits of y.
std::vector<float> run_between_gemms(Device& device, const RunOptions& run, std::int64_t splits,
                                     const Coord& qkv_tiles, const Coord& out_tiles,
                                     EdgeKind edge = EdgeKind::kTile) {
  const AttentionHeads heads{8, 2, 64};
  const AttentionStep s = rounded({heads, 16, {{1, 500, 1}, {2, 3, 1}, {3, 130, 1}}, 1});
  const std::int64_t hidden = 96, all = s.q_width() + 2 * s.kv_width();
  GpuPool k(device, s.k_pool), v(device, s.v_pool);
  const Shape pool{s.pool_rows, s.kv_width()}, step{s.rows, s.kv_width()};
  Plan plan({.num_streams = edge == EdgeKind::kTile ? 3 : 1,
             .edge = {.kind = edge, .start = StartRule::kWaitAll}});
  const TensorId x = add_tensor(plan, "x", {s.rows, hidden}, DType::kBF16);
  const TensorId w = add_tensor(plan, "w", {hidden, all}, DType::kBF16);
  const TensorId w_out = add_tensor(plan, "w_out", {s.q_width(), hidden}, DType::kBF16);
  DecodeAttentionTensors at;
  at.qkv = plan.tensor({.name = "qkv", .shape = {s.rows, all}, .tiles = qkv_tiles});
  at.positions = add_tensor(plan, "positions", {s.rows}, DType::kI32);
  at.slots = add_tensor(plan, "slots", {s.rows}, DType::kI32);
  at.sequence_of_row = add_tensor(plan, "sequences", {s.rows}, DType::kI32);
  at.page_table = add_tensor(plan, "pages", {static_cast<std::int64_t>(s.past.size()), s.max_pages},
                             DType::kI32);
  at.inv_freq = add_tensor(plan, "inv_freq", {heads.head_dim / 2}, DType::kF32);
  at.k_past = add_tensor(plan, "k_past", pool, DType::kBF16, TensorKind::kState, k.memory());
  at.v_past = add_tensor(plan, "v_past", pool, DType::kBF16, TensorKind::kState, v.memory());
  const auto step_rows = [&](const char* name, const GpuPool& memory) {
    return plan.tensor({.name = name,
                        .shape = step,
                        .dtype = DType::kBF16,
                        .output = true,
                        .address = memory.memory()});
  };
  at.k_step = step_rows("k_step", k);
  at.v_step = step_rows("v_step", v);
  at.out = plan.tensor(
      {.name = "a", .shape = {s.rows, s.q_width()}, .dtype = DType::kBF16, .tiles = out_tiles});
  const TensorId y = plan.tensor({.name = "y", .shape = {s.rows, hidden}, .output = true});
  plan.add(gemm(plan.tensors(), {.tile_m = 16, .tile_n = 40}, x, w, at.qkv));
  plan.add(decode_attention(plan.tensors(),
                            {.heads = heads.heads,
                             .kv_heads = heads.kv_heads,
                             .page_size = s.page_size,
                             .num_splits = splits},
                            at));
  plan.add(gemm(plan.tensors(), {.tile_m = 16, .tile_n = 40}, at.out, w_out, y));
  Program program(device, plan, run);
  program.write(x, random_values<BFloat16>(s.rows * hidden, 1));
  program.write(w, random_values<BFloat16>(hidden * all, 2));
  program.write(w_out, random_values<BFloat16>(s.q_width() * hidden, 3));
  program.write(at.positions, s.positions);
  program.write(at.slots, s.slots);
  program.write(at.sequence_of_row, s.sequence_of_row);
  program.write(at.page_table, s.page_table);
  program.write(at.inv_freq,
                std::vector<float>(static_cast<std::size_t>(heads.head_dim / 2), 0.01F));
  for (int i = 0; i < 20; ++i) program.run();
  program.synchronize();
  return program.read<float>(y);
}

TEST(DecodeAttentionCuda, BetweenGemmsGivesTheSameBitsForEveryTilingModeAndSubmission) {
  const auto device = open();
  const std::vector<float> expected =
      run_between_gemms(*device, {.mode = Mode::kSerial}, 1, {}, {});
  for (const Mode mode : {Mode::kSerial, Mode::kOverlap}) {
    for (const Submit submit : {Submit::kEager, Submit::kGraph}) {
      for (const std::int64_t splits : {0, 1, 4}) {
        for (const Coord& qkv_tiles : std::vector<Coord>{{}, {16, 768}, {16, 64}, {1, 100}}) {
          SCOPED_TRACE(std::string(mode == Mode::kSerial ? "serial" : "overlap") +
                       (submit == Submit::kEager ? ", eager, " : ", graph, ") +
                       std::to_string(splits) + " splits, qkv tiles " +
                       std::to_string(qkv_tiles.num_axes == 0 ? 0 : qkv_tiles[1]));
          EXPECT_EQ(run_between_gemms(*device, {.mode = mode, .submit = submit}, splits, qkv_tiles,
                                      qkv_tiles.num_axes == 0 ? Coord{} : Coord{4, 256}),
                    expected);
        }
      }
    }
  }
}

TEST(DecodeAttentionCuda, LaunchedEarlyGivesTheSameBits) {
  const auto device = open();
  const std::vector<float> expected =
      run_between_gemms(*device, {.mode = Mode::kSerial}, 1, {}, {});
  for (const Submit submit : {Submit::kEager, Submit::kGraph}) {
    for (const std::int64_t splits : {0, 1, 4}) {
      EXPECT_EQ(
          run_between_gemms(*device, {.submit = submit}, splits, {}, {}, EdgeKind::kProgrammatic),
          expected)
          << (submit == Submit::kEager ? "eager, " : "graph, ") << splits << " splits";
    }
  }
}

}  // namespace
}  // namespace tileweave
