// Plans with bf16 attention nodes as a GPU runs them: proved on the host.
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "tests/kernels/attention/attention_step.h"
#include "tileweave/kernels/attention/decode_attention.h"
#include "tileweave/kernels/attention/paged_attention.h"
#include "tileweave/kernels/gemm/gemm.h"
#include "tileweave/plan/verify.h"

namespace tileweave {
namespace {

std::string faults_of(const Verdict& verdict) {
  std::string text;
  for (const Fault& fault : verdict.faults) text += fault.sentence + "\n";
  return text;
}

TensorId tensor(Plan& plan, const char* name, const Shape& shape, DType type, TensorKind kind,
                const Coord& tiles = {}, void* address = nullptr) {
  return plan.tensor({.name = name,
                      .shape = shape,
                      .dtype = type,
                      .kind = kind,
                      .tiles = tiles,
                      .address = address});
}

TEST(AttentionPlan, OfDecodeAttentionBetweenGemmsIsProved) {
  float pool_memory = 0;  // never touched: the pool's rows have an address of their own
  for (const std::int64_t splits : {0, 1, 4}) {
    for (const Coord& tiles : std::vector<Coord>{{}, {16, 768}, {16, 64}, {1, 100}}) {
      SCOPED_TRACE(std::to_string(splits) + " splits, " + std::to_string(tiles.num_axes) + " axes");
      Plan plan({.num_streams = 3, .edge = {.start = StartRule::kWaitAll}});
      const auto constant = [&](const char* name, const Shape& shape, DType type) {
        return tensor(plan, name, shape, type, TensorKind::kConstant);
      };
      const std::int64_t rows = 4, pool = 640;
      const TensorId x = constant("x", {rows, 96}, DType::kBF16);
      const TensorId w = constant("w", {96, 768}, DType::kBF16);
      const TensorId w_out = constant("w_out", {512, 96}, DType::kBF16);
      DecodeAttentionTensors at;
      at.qkv = tensor(plan, "qkv", {rows, 768}, DType::kF32, TensorKind::kValue, tiles);
      at.positions = constant("positions", {rows}, DType::kI32);
      at.slots = constant("slots", {rows}, DType::kI32);
      at.sequence_of_row = constant("sequences", {rows}, DType::kI32);
      at.page_table = constant("pages", {rows, 64}, DType::kI32);
      at.inv_freq = constant("inv_freq", {32}, DType::kF32);
      at.k_past = tensor(plan, "k_past", {pool, 128}, DType::kBF16, TensorKind::kState);
      at.v_past = tensor(plan, "v_past", {pool, 128}, DType::kBF16, TensorKind::kState);
      at.k_step =
          tensor(plan, "k_step", {rows, 128}, DType::kBF16, TensorKind::kValue, {}, &pool_memory);
      at.v_step =
          tensor(plan, "v_step", {rows, 128}, DType::kBF16, TensorKind::kValue, {}, &pool_memory);
      at.out = tensor(plan, "a", {rows, 512}, DType::kBF16, TensorKind::kValue,
                      tiles.num_axes == 0 ? Coord{} : Coord{4, 256});
      const TensorId y = tensor(plan, "y", {rows, 96}, DType::kF32, TensorKind::kValue);
      plan.add(gemm(plan.tensors(), {.tile_m = 16, .tile_n = 40}, x, w, at.qkv));
      plan.add(
          decode_attention(plan.tensors(), {.heads = 8, .kv_heads = 2, .num_splits = splits}, at));
      plan.add(gemm(plan.tensors(), {.tile_m = 16, .tile_n = 40}, at.out, w_out, y));
      const Verdict verdict = verify(plan, {.device = h200_limits()});
      EXPECT_EQ(faults_of(verdict), "");
      EXPECT_EQ(verdict.num_downgrades(), tiles.num_axes == 0 ? 2 : 0);
    }
  }
}

TEST(AttentionPlan, OfPagedAttentionWithSplitsIsProved) {
  float memory = 0;
  for (const std::int64_t splits : {0, 1, 4}) {
    for (const std::int64_t tile_m : {1, 3}) {
      SCOPED_TRACE(std::to_string(splits) + " splits, tile_m " + std::to_string(tile_m));
      Plan plan;
      const auto constant = [&](const char* name, const Shape& shape, DType type,
                                void* address = nullptr) {
        return tensor(plan, name, shape, type, TensorKind::kConstant, {}, address);
      };
      PagedAttentionTensors at;
      at.q = constant("q", {5, 512}, DType::kBF16);
      at.k_step = constant("k_step", {5, 128}, DType::kBF16, &memory);
      at.v_step = constant("v_step", {5, 128}, DType::kBF16, &memory);
      at.k_past = tensor(plan, "k_past", {640, 128}, DType::kBF16, TensorKind::kState, {}, &memory);
      at.v_past = tensor(plan, "v_past", {640, 128}, DType::kBF16, TensorKind::kState, {}, &memory);
      at.positions = constant("positions", {5}, DType::kI32);
      at.slots = constant("slots", {5}, DType::kI32);
      at.sequence_of_row = constant("sequences", {5}, DType::kI32);
      at.first_row = constant("first", {2}, DType::kI32);
      at.past = constant("past", {2}, DType::kI32);
      at.page_table = constant("pages", {2, 64}, DType::kI32);
      at.out = tensor(plan, "out", {5, 512}, DType::kBF16, TensorKind::kValue, {2, 256});
      plan.add(paged_attention(plan.tensors(),
                               {.head_dim = 64, .tile_m = tile_m, .num_splits = splits}, at));
      const Verdict verdict = verify(plan, {.device = h200_limits()});
      EXPECT_EQ(faults_of(verdict), "");
    }
  }
}

}  // namespace
}  // namespace tileweave
