#include "tileweave/plan/node_check.h"

#include <gtest/gtest.h>

#include <limits>

#include "tileweave/core/error.h"

namespace tileweave {
namespace {

template <class Ask>
std::string sentence(Ask ask) {
  try {
    ask(NodeCheck("twist", "n"));
  } catch (const Error& error) {
    return error.what();
  }
  return "";
}

using Check = const NodeCheck&;

TEST(NodeCheck, OptionsThatDoNotFitAreNamedInOneSentence) {
  const std::string who = "make twist node `n`: ";
  EXPECT_EQ(sentence([](Check c) { c.at_least(1, 1, "tile_m"); }), "");
  EXPECT_EQ(sentence([](Check c) { c.at_least(0, 1, "tile_m"); }),
            who + "tile_m must be at least 1, got 0");
  EXPECT_EQ(sentence([](Check c) { c.finite_and_not_negative(0, "eps"); }), "");
  EXPECT_EQ(sentence([](Check c) { c.finite_and_not_negative(-1, "eps"); }),
            who + "eps must be finite and not negative, got -1.000000");
  EXPECT_EQ(sentence([](Check c) { c.finite_and_positive(0, "factor"); }),
            who + "factor must be finite and positive, got 0.000000");
  EXPECT_EQ(sentence([](Check c) {
              c.finite_and_positive(std::numeric_limits<float>::infinity(), "factor");
            }),
            who + "factor must be finite and positive, got inf");
  EXPECT_EQ(sentence([](Check c) { c.countable(2147483647); }), "");
  EXPECT_EQ(sentence([](Check c) { c.countable(2147483648); }),
            who + "the tiles must be large enough for at most 2^31 - 1 of them, got 2147483648");
}

TEST(NodeCheck, OperandsThatDoNotFitAreNamedInOneSentence) {
  const TensorSpec t{.name = "x", .shape = {4, 8}, .dtype = DType::kF16};
  const TensorSpec c{.name = "w", .shape = {8}, .kind = TensorKind::kConstant};
  const std::string who = "make twist node `n`: ";
  EXPECT_EQ(sentence([&](Check check) {
              check.matrix(t);
              check.shape(t, {4, 8});
              check.type(t, {DType::kF32, DType::kF16});
              check.result(t);
              check.constant(c);
            }),
            "");
  EXPECT_EQ(sentence([&](Check check) { check.matrix(c); }),
            who + "`w` must be a matrix, got shape (8)");
  EXPECT_EQ(sentence([&](Check check) {
              check.shape(t, {8, 4});
            }),
            who + "`x` must be (8, 4), got (4, 8)");
  EXPECT_EQ(sentence([&](Check check) { check.type(t, {DType::kF32}); }),
            who + "`x` must be f32, got f16");
  EXPECT_EQ(sentence([&](Check check) {
              check.type(t, {DType::kF32, DType::kBF16});
            }),
            who + "`x` must be f32 or bf16, got f16");
  EXPECT_EQ(sentence([&](Check check) {
              check.type(c, {DType::kI32, DType::kBF16, DType::kF16});
            }),
            who + "`w` must be i32, bf16 or f16, got f32");
  EXPECT_EQ(sentence([&](Check check) { check.constant(t, "the weight "); }),
            who + "the weight `x` must be constant, got value");
  EXPECT_EQ(sentence([&](Check check) { check.result(c); }),
            who + "the result `w` must not be constant, got a constant");
}

}  // namespace
}  // namespace tileweave
