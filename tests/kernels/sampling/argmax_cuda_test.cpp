// Argmax on a GPU: exactly the reference's columns.
#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <span>
#include <string>
#include <vector>

#include "tests/kernels/operand_values.h"
#include "tileweave/kernels/gemm/gemm.h"
#include "tileweave/kernels/sampling/add_sampling.h"
#include "tileweave/kernels/sampling/argmax.h"
#include "tileweave/kernels/sampling/sample_ref.h"
#include "tileweave/runtime/program.h"

namespace tileweave {
namespace {

const float kNaN = std::numeric_limits<float>::quiet_NaN();
const float kInf = std::numeric_limits<float>::infinity();

std::vector<std::int32_t> reference(const std::vector<float>& logits, std::int64_t cols) {
  std::vector<std::int32_t> ids;
  for (std::size_t at = 0; at < logits.size(); at += static_cast<std::size_t>(cols)) {
    ids.push_back(argmax_reference(std::span(logits).subspan(at, static_cast<std::size_t>(cols))));
  }
  return ids;
}

std::string to_string(const ArgmaxOptions& options) {
  return "tiles of " + std::to_string(options.tile_m) + " x " + std::to_string(options.tile_n) +
         ", " + std::to_string(options.num_blocks) + " blocks";
}

/// Two runs, so that the second starts from counters that the first has moved.
std::vector<std::int32_t> run_argmax(Device& device, const std::vector<float>& logits,
                                     std::int64_t cols, const ArgmaxOptions& options) {
  const std::int64_t rows = std::ssize(logits) / cols;
  Plan plan;
  const TensorId in =
      plan.tensor({.name = "logits", .shape = {rows, cols}, .kind = TensorKind::kConstant});
  const TensorId ids =
      plan.tensor({.name = "ids", .shape = {rows}, .dtype = DType::kI32, .output = true});
  plan.add(argmax(plan.tensors(), options, in, ids));
  Program program(device, plan);
  program.write(in, logits);
  program.write(ids, std::vector<std::int32_t>(static_cast<std::size_t>(rows), -7));
  for (int run = 0; run < 2; ++run) program.run();
  program.synchronize();
  return program.read<std::int32_t>(ids);
}

std::vector<ArgmaxOptions> options_for(std::int64_t rows, std::int64_t cols) {
  std::vector<ArgmaxOptions> all{{},
                                 {.tile_m = 1, .tile_n = argmax_tile_n(rows, cols)},
                                 {.tile_m = 1, .tile_n = 2048, .num_blocks = 3},
                                 {.tile_m = 5, .tile_n = 5000}};
  if (cols <= 1000) {
    all.push_back({.tile_m = 1, .tile_n = 1});
    all.push_back({.tile_m = 3, .tile_n = 33, .num_blocks = 2});
    all.push_back({.tile_m = 2, .tile_n = 50, .order = TileOrder::rotation(1)});
  }
  return all;
}

TEST(ArgmaxCuda, FindsTheLargestWhateverTheTiles) {
  const auto device = open_cuda_device();
  add_sampling(*device);
  for (const std::int64_t cols : {1, 3, 31, 32, 1000, 1001, 32000, 151936}) {
    for (const std::int64_t rows : {1, 3, 16}) {
      std::vector<float> logits = random_values<float>(rows * cols, 7);
      // A few values far apart decide many comparisons, a few equal ones all others.
      for (float& value : logits) value = std::round(64 * value);
      for (const ArgmaxOptions& options : options_for(rows, cols)) {
        EXPECT_EQ(run_argmax(*device, logits, cols, options), reference(logits, cols))
            << rows << " x " << cols << ", " << to_string(options);
      }
    }
  }
}

TEST(ArgmaxCuda, FindsTheOnlyLargestInEveryColumnOfAWork) {
  const auto device = open_cuda_device();
  add_sampling(*device);
  // Row r has its maximum at column r: every place a thread looks at, edges of works included.
  constexpr std::int64_t kCols = 700;
  std::vector<float> logits = random_values<float>(kCols * kCols, 8);
  for (std::size_t r = 0; r < kCols; ++r) logits[r * kCols + r] = 2;
  for (const std::int64_t tile_n : {128, 256, 301, 700}) {
    for (const std::int64_t tile_m : {1, 9}) {
      const ArgmaxOptions options{.tile_m = tile_m, .tile_n = tile_n};
      const std::vector<std::int32_t> ids = run_argmax(*device, logits, kCols, options);
      for (std::size_t r = 0; r < kCols; ++r) {
        ASSERT_EQ(ids[r], static_cast<std::int32_t>(r))
            << "row " << r << ", " << to_string(options);
      }
    }
  }
}

TEST(ArgmaxCuda, TiesGoToTheLowestColumnAndNaNNeverWins) {
  const auto device = open_cuda_device();
  add_sampling(*device);
  for (const std::int64_t cols : {6, 37, 5000}) {
    const auto row = [&](float filler, std::int64_t at, float value) {
      std::vector<float> made(static_cast<std::size_t>(cols), filler);
      made[static_cast<std::size_t>(at)] = value;
      return made;
    };
    const auto last = cols - 1;
    std::vector<std::vector<float>> rows{
        row(1, 0, 1),       row(kNaN, 3, -5),    row(kNaN, 2, -kInf), row(kNaN, 1, kInf),
        row(-1, 0, kNaN),   row(-kInf, 0, kNaN), row(kNaN, 0, kNaN),  row(-kInf, 0, -kInf),
        row(0, 0, -0.0F),   row(-0.0F, 4, 0),    row(-kNaN, 0, kNaN), row(-1, last, kNaN),
        row(kNaN, last, -1)};
    std::vector<float> tie = row(1, 2, 2);
    tie[static_cast<std::size_t>(last)] = 2;
    rows.push_back(tie);
    std::vector<float> logits;
    for (const std::vector<float>& one : rows) logits.insert(logits.end(), one.begin(), one.end());
    for (const std::int64_t tile_n : {1, 3, 16, 1024, 8192}) {
      if (cols / tile_n > 2000) continue;
      const ArgmaxOptions options{.tile_m = 4, .tile_n = tile_n};
      EXPECT_EQ(run_argmax(*device, logits, cols, options), reference(logits, cols))
          << cols << " columns, " << to_string(options);
    }
  }
}

/// Argmax of the logits that a GEMM writes tile by tile.
std::vector<std::int32_t> run_after_gemm(Device& device, const Coord& tiles,
                                         const ArgmaxOptions& options, const RunOptions& run) {
  constexpr std::int64_t kRows = 11, kDepth = 40, kCols = 500;
  Plan plan({.num_streams = 3, .edge = {.start = StartRule::kWaitAll}});
  const TensorId x =
      plan.tensor({.name = "x", .shape = {kRows, kDepth}, .kind = TensorKind::kConstant});
  const TensorId w =
      plan.tensor({.name = "w", .shape = {kDepth, kCols}, .kind = TensorKind::kConstant});
  const TensorId logits = plan.tensor({.name = "logits", .shape = {kRows, kCols}, .tiles = tiles});
  const TensorId ids =
      plan.tensor({.name = "ids", .shape = {kRows}, .dtype = DType::kI32, .output = true});
  plan.add(gemm(plan.tensors(), {.tile_m = 8, .tile_n = 32}, x, w, logits));
  plan.add(argmax(plan.tensors(), options, logits, ids));
  Program program(device, plan, run);
  program.write(x, random_values<float>(kRows * kDepth, 1));
  program.write(w, random_values<float>(kDepth * kCols, 2));
  for (int i = 0; i < 3; ++i) program.run();
  program.synchronize();
  return program.read<std::int32_t>(ids);
}

TEST(ArgmaxCuda, BehindAGemmOverlapGivesTheIdsOfSerial) {
  const auto device = open_cuda_device();
  add_gemm(*device);
  add_sampling(*device);
  const std::vector<std::int32_t> expected =
      run_after_gemm(*device, {}, {}, {.mode = Mode::kSerial});
  struct Case {
    Coord tiles;
    ArgmaxOptions argmax;
  };
  for (const Case& c : {Case{{11, 64}, {.tile_n = 64}}, Case{{8, 32}, {.tile_m = 1, .tile_n = 100}},
                        Case{{3, 40}, {.tile_m = 5, .tile_n = 49}},
                        Case{{8, 32}, {.tile_m = 3, .tile_n = 20, .num_blocks = 4}}}) {
    for (const Mode mode : {Mode::kSerial, Mode::kOverlap}) {
      for (const Submit submit : {Submit::kEager, Submit::kGraph}) {
        EXPECT_EQ(run_after_gemm(*device, c.tiles, c.argmax, {.mode = mode, .submit = submit}),
                  expected)
            << to_string(c.argmax) << (mode == Mode::kSerial ? ", serial" : ", overlap")
            << (submit == Submit::kEager ? ", eager" : ", graph");
      }
    }
  }
}

}  // namespace
}  // namespace tileweave
