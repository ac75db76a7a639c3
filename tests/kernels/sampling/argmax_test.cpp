// Argmax against its reference, without a device.
#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <string>
#include <vector>

#include "tests/kernels/operand_values.h"
#include "tests/kernels/sampling/sampling_serial.h"
#include "tileweave/core/error.h"
#include "tileweave/kernels/sampling/sample_ref.h"

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

TEST(Argmax, FindsTheLargestWhateverTheTiles) {
  for (const std::int64_t cols : {1, 2, 15, 16, 17, 67, 1000}) {
    for (const std::int64_t rows : {1, 3, 8, 13}) {
      const auto logits = random_values<float>(rows * cols, static_cast<std::uint64_t>(cols));
      for (const ArgmaxOptions& options :
           {ArgmaxOptions{}, ArgmaxOptions{.tile_m = 1, .tile_n = 1}, ArgmaxOptions{.tile_n = 16},
            ArgmaxOptions{.tile_m = 3, .tile_n = 33, .num_blocks = 2},
            ArgmaxOptions{.tile_m = 5, .tile_n = 50, .order = TileOrder::rotation(1)}}) {
        SCOPED_TRACE(std::to_string(rows) + " x " + std::to_string(cols) + ", tile_n " +
                     std::to_string(options.tile_n));
        EXPECT_EQ(run_argmax(logits, cols, options), reference(logits, cols));
      }
    }
  }
}

TEST(Argmax, TiesGoToTheLowestColumn) {
  std::vector<float> logits(100, 1.0F);
  for (const std::int64_t tile_n : {1, 7, 32, 100}) {
    EXPECT_EQ(run_argmax(logits, 100, {.tile_n = tile_n}), std::vector{0});
  }
  logits[41] = logits[90] = 2;
  for (const std::int64_t tile_n : {1, 7, 32, 100}) {
    EXPECT_EQ(run_argmax(logits, 100, {.tile_n = tile_n}), std::vector{41});
  }
}

TEST(Argmax, NaNNeverWinsAndRowsOfNaNsGiveZero) {
  for (const std::int64_t cols : {4, 37}) {
    for (const std::int64_t tile_n : {1, 3, 16, 64}) {
      const auto with = [&](float filler, std::int64_t at, float value) {
        std::vector<float> row(static_cast<std::size_t>(cols), filler);
        row[static_cast<std::size_t>(at)] = value;
        return run_argmax(row, cols, {.tile_n = tile_n})[0];
      };
      SCOPED_TRACE(std::to_string(cols) + " columns by " + std::to_string(tile_n));
      EXPECT_EQ(with(kNaN, 3, -5), 3);
      EXPECT_EQ(with(kNaN, 2, -kInf), 2);
      EXPECT_EQ(with(kNaN, 1, kInf), 1);
      EXPECT_EQ(with(-1, 0, kNaN), 1);
      EXPECT_EQ(with(-kInf, 0, kNaN), 1);
      EXPECT_EQ(with(kNaN, 0, kNaN), 0);
      EXPECT_EQ(with(-kInf, 0, -kInf), 0);
    }
  }
}

TEST(Argmax, RefusesWhatDoesNotFitInOneSentence) {
  TensorTable tensors;
  const auto add = [&](const char* name, const Shape& shape, DType type,
                       TensorKind kind = TensorKind::kValue) {
    return tensors.add({.name = name, .shape = shape, .dtype = type, .kind = kind});
  };
  const TensorId logits = add("logits", {3, 8}, DType::kF32);
  const TensorId ids = add("ids", {3}, DType::kI32);
  const auto sentence = [&](const ArgmaxOptions& options, TensorId in, TensorId out) {
    try {
      argmax(tensors, options, in, out);
    } catch (const Error& error) {
      return std::string(error.what());
    }
    return std::string("no error");
  };
  const std::string start = "make argmax node `argmax`: ";
  EXPECT_EQ(sentence({}, logits, ids), "no error");
  EXPECT_EQ(sentence({}, ids, ids), start + "`ids` must be a matrix, got shape (3)");
  EXPECT_EQ(sentence({}, add("half", {3, 8}, DType::kF16), ids),
            start + "`half` must be f32, got f16");
  EXPECT_EQ(sentence({}, logits, add("floats", {3}, DType::kF32)),
            start + "`floats` must be i32, got f32");
  EXPECT_EQ(sentence({}, logits, add("four", {4}, DType::kI32)),
            start + "`four` must be (3), got (4)");
  EXPECT_EQ(sentence({}, logits, add("fixed", {3}, DType::kI32, TensorKind::kConstant)),
            start + "the result `fixed` must not be constant");
  EXPECT_EQ(sentence({.tile_m = 0}, logits, ids), start + "tile_m must be at least 1, got 0");
  EXPECT_EQ(sentence({.tile_n = 0}, logits, ids), start + "tile_n must be at least 1, got 0");
  EXPECT_EQ(sentence({.num_blocks = -1}, logits, ids),
            start + "num_blocks must be at least 0, got -1");
}

}  // namespace
}  // namespace tileweave
