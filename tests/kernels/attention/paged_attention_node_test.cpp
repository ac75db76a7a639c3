// What the node refuses, each in its sentence.
#include <gtest/gtest.h>

#include <cmath>
#include <string>

#include "tileweave/core/error.h"
#include "tileweave/kernels/attention/paged_attention.h"
#include "tileweave/plan/tensor.h"

namespace tileweave {
namespace {

struct Operands {
  TensorTable table;
  PagedAttentionTensors at;

  TensorId add(const char* name, const Shape& shape, TensorKind kind = TensorKind::kValue,
               DType type = DType::kF32) {
    return table.add({.name = name, .shape = shape, .dtype = type, .kind = kind});
  }
  TensorId number(const char* name, const Shape& shape) {
    return add(name, shape, TensorKind::kConstant, DType::kI32);
  }
  Operands() {
    at.q = add("q", {5, 32});
    at.k_step = add("k", {5, 16});
    at.v_step = add("v", {5, 16});
    at.k_past = add("k_pool", {12, 16}, TensorKind::kState);
    at.v_past = add("v_pool", {12, 16}, TensorKind::kState);
    at.positions = number("positions", {5});
    at.slots = number("slots", {5});
    at.sequence_of_row = number("sequences", {5});
    at.first_row = number("first", {2});
    at.past = number("past", {2});
    at.page_table = number("table", {2, 3});
    at.out = add("out", {5, 32});
  }
};

PagedAttentionOptions good() {
  return {.name = "a", .head_dim = 8, .page_size = 4};
}

std::string sentence(const Operands& operands, const PagedAttentionOptions& options) {
  try {
    paged_attention(operands.table, options, operands.at);
  } catch (const Error& error) {
    const std::string text = error.what();
    const std::string start = "make paged_attention node `a`: ";
    EXPECT_EQ(text.substr(0, start.size()), start);
    return text.substr(start.size());
  }
  return "no error";
}

TEST(PagedAttentionNode, HasOneWorkPerRowTileAndGroup) {
  const Operands operands;
  PagedAttentionOptions options = good();
  options.tile_m = 2;
  EXPECT_EQ(paged_attention(operands.table, options, operands.at).num_works, 3 * 2);
  options.kv_heads_per_work = 2;
  options.num_blocks = 2;
  const NodeSpec node = paged_attention(operands.table, options, operands.at);
  EXPECT_EQ(node.num_works, 3);
  EXPECT_EQ(node.num_blocks, 2);
  EXPECT_EQ(node.cost.of_work(0), 1);
  EXPECT_EQ(node.cost.of_work(2), 0.5);
}

TEST(PagedAttentionNode, RefusesOptionsThatMeanNothing) {
  const Operands operands;
  const auto with = [&](auto change) {
    PagedAttentionOptions options = good();
    change(options);
    return sentence(operands, options);
  };
  EXPECT_EQ(with([](auto&) {}), "no error");
  EXPECT_EQ(with([](auto& o) { o.head_dim = 0; }), "head_dim must be even and at least 2, got 0");
  EXPECT_EQ(with([](auto& o) { o.head_dim = 7; }), "head_dim must be even and at least 2, got 7");
  EXPECT_EQ(with([](auto& o) { o.page_size = 0; }), "page_size must be at least 1, got 0");
  EXPECT_EQ(with([](auto& o) { o.page_size = 5; }),
            "`k_pool` must be (a multiple of page_size = 5, 16), got (12, 16)");
  EXPECT_EQ(with([](auto& o) { o.tile_m = 0; }), "tile_m must be at least 1, got 0");
  EXPECT_EQ(with([](auto& o) { o.num_blocks = -1; }), "num_blocks must not be negative, got -1");
  EXPECT_EQ(with([](auto& o) { o.prefetch_bytes = -1; }),
            "prefetch_bytes must not be negative, got -1");
  EXPECT_EQ(with([](auto& o) { o.scale = INFINITY; }), "scale must be finite, got inf");
  EXPECT_EQ(with([](auto& o) { o.head_dim = 6; }),
            "`q` must have a multiple of head_dim = 6 columns, got 32");
  EXPECT_EQ(with([](auto& o) { o.kv_heads_per_work = 3; }),
            "kv_heads_per_work must divide the 2 kv heads, got 3");
}

TEST(PagedAttentionNode, RefusesTensorsThatDoNotFit) {
  const auto with = [&](auto change) {
    Operands operands;
    change(operands);
    return sentence(operands, good());
  };
  EXPECT_EQ(with([](auto& o) {
              o.at.q = o.add("q3", {5, 4, 8});
            }),
            "`q3` must be a matrix, got shape (5, 4, 8)");
  EXPECT_EQ(with([](auto& o) {
              o.at.q = o.add("q16", {5, 32}, TensorKind::kValue, DType::kBF16);
            }),
            "`q16` must be f32, got bf16");
  EXPECT_EQ(with([](auto& o) {
              o.at.q = o.add("q3", {5, 24});
            }),
            "the query heads of `q3` must be a multiple of the kv heads of `k`, got 3 and 2");
  EXPECT_EQ(with([](auto& o) {
              o.at.k_step = o.add("k4", {4, 16});
            }),
            "`k4` must be (5, 16), got (4, 16)");
  EXPECT_EQ(with([](auto& o) {
              o.at.v_step = o.add("v8", {5, 8});
            }),
            "`v8` must be (5, 16), got (5, 8)");
  EXPECT_EQ(with([](auto& o) {
              o.at.v_past = o.add("pool", {8, 16}, TensorKind::kState);
            }),
            "`pool` must be (12, 16), got (8, 16)");
  EXPECT_EQ(with([](auto& o) {
              o.at.k_past = o.add("pool", {12, 16});
            }),
            "`pool` must be state, got value");
  EXPECT_EQ(with([](auto& o) { o.at.positions = o.number("p", {4}); }), "`p` must be (5), got (4)");
  EXPECT_EQ(with([](auto& o) { o.at.past = o.number("p", {3}); }), "`p` must be (2), got (3)");
  EXPECT_EQ(with([](auto& o) { o.at.page_table = o.number("p", {6}); }),
            "`p` must be a matrix, got shape (6)");
  EXPECT_EQ(with([](auto& o) { o.at.slots = o.add("s", {5}, TensorKind::kConstant); }),
            "`s` must be i32, got f32");
  EXPECT_EQ(with([](auto& o) { o.at.slots = o.add("s", {5}, TensorKind::kValue, DType::kI32); }),
            "`s` must be constant, got value");
  EXPECT_EQ(with([](auto& o) { o.at.out = o.at.q; }),
            "the result must be another tensor than the operands, got `q` as both");
  EXPECT_EQ(with([](auto& o) {
              o.at.out = o.add("out2", {5, 16});
            }),
            "`out2` must be (5, 32), got (5, 16)");
}

}  // namespace
}  // namespace tileweave
