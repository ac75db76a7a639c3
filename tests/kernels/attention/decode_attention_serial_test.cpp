// Decode attention's reference against its parts, its CPU form against both, with declared boxes
// checked, and what the node refuses.
#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <string>
#include <vector>

#include "tests/kernels/attention/decode_step.h"
#include "tests/kernels/serial_lane.h"
#include "tileweave/kernels/attention/decode_attention.h"
#include "tileweave/kernels/attention/decode_attention_args.h"
#include "tileweave/kernels/attention/paged_attention.h"

namespace tileweave {
namespace {

/// The tensors of a step, without a plan; k_step and v_step lie in the pool.
struct DecodeTensors {
  TensorTable table;
  DecodeAttentionTensors at;

  explicit DecodeTensors(DecodeStep& d, DType type = DType::kF32) {
    const AttentionStep& s = d.step;
    const auto tensor = [&](const char* name, const Shape& shape, DType dtype, TensorKind kind,
                            void* address = nullptr) {
      return table.add(
          {.name = name, .shape = shape, .dtype = dtype, .kind = kind, .address = address});
    };
    const auto number = [&](const char* name, const Shape& shape) {
      return tensor(name, shape, DType::kI32, TensorKind::kConstant);
    };
    const Shape pool{s.pool_rows, s.kv_width()}, step{s.rows, s.kv_width()};
    at.qkv =
        tensor("qkv", {s.rows, s.q_width() + 2 * s.kv_width()}, DType::kF32, TensorKind::kValue);
    at.positions = number("positions", {s.rows});
    at.slots = number("slots", {s.rows});
    at.sequence_of_row = number("sequences", {s.rows});
    at.page_table = number("table", {static_cast<std::int64_t>(s.past.size()), s.max_pages});
    at.inv_freq = tensor("inv_freq", {s.heads.head_dim / 2}, DType::kF32, TensorKind::kConstant);
    at.k_past = tensor("k_past", pool, type, TensorKind::kState);
    at.v_past = tensor("v_past", pool, type, TensorKind::kState);
    at.k_step = tensor("k_step", step, type, TensorKind::kValue, d.step.k_pool.data());
    at.v_step = tensor("v_step", step, type, TensorKind::kValue, d.step.v_pool.data());
    at.out = tensor("out", {s.rows, s.q_width()}, type, TensorKind::kValue);
    if (d.q_norm.empty()) return;
    at.q_norm = tensor("q_norm", {s.heads.head_dim}, DType::kF32, TensorKind::kConstant);
    at.k_norm = tensor("k_norm", {s.heads.head_dim}, DType::kF32, TensorKind::kConstant);
  }
};

DecodeAttentionOptions options_of(const DecodeStep& d) {
  return {.name = "d",
          .heads = d.step.heads.heads,
          .kv_heads = d.step.heads.kv_heads,
          .page_size = d.step.page_size,
          .attention_factor = d.attention_factor};
}

/// Runs the CPU form; the step's rows of the pool are then written.
std::vector<float> attend(DecodeStep& d) {
  DecodeTensors t(d);
  const NodeSpec node = decode_attention(t.table, options_of(d), t.at);
  KernelLibrary kernels;
  add_attention_cpu(kernels);
  AttentionStep& s = d.step;
  std::vector<float> out(s.q.size(), std::numeric_limits<float>::quiet_NaN());
  Addresses at{.operands = {d.qkv.data(), s.positions.data(), s.slots.data(),
                            s.sequence_of_row.data(), s.page_table.data(), d.inv_freq.data(),
                            s.k_pool.data(), s.v_pool.data(), s.k_pool.data(), s.v_pool.data(),
                            out.data()}};
  if (!d.q_norm.empty()) {
    at.operands.push_back(d.q_norm.data());
    at.operands.push_back(d.k_norm.data());
  }
  const SerialLane lane = run_serially<DecodeAttentionOperands::kSlots>(node, t.table, kernels, at);
  EXPECT_EQ(lane.works_run(), node.num_works);
  EXPECT_EQ(lane.signals(), 3 * node.num_works);
  return out;
}

float scale_of(const DecodeStep& d) {
  return 1.0F / std::sqrt(static_cast<float>(d.step.heads.head_dim));
}

AttentionStep some_step(const AttentionHeads& heads) {
  return {heads, 4, {{1, 0, 1}, {2, 70, 1}, {3, 9, 1}, {4, 127, 1}}, 1};
}

TEST(DecodeAttentionReference, WithoutTurningIsPagedAttention) {
  const AttentionStep step = some_step({6, 2, 8});
  const PagedAttentionReference paged = paged_attention_reference(step.problem(0.5F));
  const DecodeStep d(step, Turn::kNone);
  const DecodeAttentionReference decode = d.reference(0.5F, DType::kF32);
  for (std::size_t i = 0; i < paged.out.size(); ++i) {
    ASSERT_NEAR(decode.out[i], paged.out[i], 1e-12) << "element " << i;
  }
}

TEST(DecodeAttentionSerial, AgreesWithTheReferenceAndWritesItsRows) {
  for (const AttentionHeads& heads :
       std::vector<AttentionHeads>{{1, 1, 2}, {4, 1, 16}, {9, 3, 10}, {4, 4, 64}}) {
    for (const Turn turn : {Turn::kNone, Turn::kRope, Turn::kNormAndRope}) {
      SCOPED_TRACE(std::to_string(heads.head_dim) + " dimensions, turn " +
                   std::to_string(static_cast<int>(turn)));
      DecodeStep d(some_step(heads), turn);
      const DecodeAttentionReference exact = d.reference(scale_of(d), DType::kF32);
      const std::vector<float> out = attend(d);
      for (std::size_t i = 0; i < out.size(); ++i) {
        ASSERT_LE(std::fabs(out[i] - exact.out[i]), exact.out_bounds[i]) << "element " << i;
      }
      const std::int64_t width = d.step.kv_width();
      for (std::int64_t t = 0; t < d.step.rows; ++t) {
        const std::int64_t slot = d.step.slots[static_cast<std::size_t>(t)];
        if (slot < 0) continue;
        for (std::int64_t i = 0; i < width; ++i) {
          const auto from = static_cast<std::size_t>(slot * width + i);
          const auto at = static_cast<std::size_t>(t * width + i);
          ASSERT_LE(std::fabs(d.step.k_pool[from] - exact.k[at]), exact.k_bounds[at]);
          ASSERT_EQ(d.step.v_pool[from], exact.v[at]);
        }
      }
    }
  }
}

TEST(DecodeAttentionNode, SplitsTheKeysOfABf16Pool) {
  DecodeStep d({{8, 2, 64}, 16, {{1, 4000, 1}, {2, 10, 1}}}, Turn::kRope);
  const DecodeTensors t(d, DType::kBF16);
  DecodeAttentionOptions options = options_of(d);
  const NodeSpec node = decode_attention(t.table, options, t.at);
  EXPECT_EQ(node.kernel, "decode_attention.bf16.f32.d64");
  EXPECT_EQ(node.num_works, 4 * 16);  // one per segment of 256 keys
  EXPECT_EQ(node.counter.arrivals, std::vector<std::uint32_t>(4, 16));
  EXPECT_EQ(node.resources.shared_bytes, AttentionShared{64}.bytes(2, 4));
  options.num_splits = 1;
  const NodeSpec whole = decode_attention(t.table, options, t.at);
  EXPECT_EQ(whole.num_works, 4);
  EXPECT_EQ(whole.scratch_bytes, 0U);
  EXPECT_TRUE(whole.counter.arrivals.empty());
}

TEST(DecodeAttentionNode, RefusesWhatDoesNotFit) {
  const auto sentence = [](DType type, const AttentionHeads& heads, auto change) {
    DecodeStep d({heads, 4, {{1, 5, 1}}}, Turn::kRope);
    DecodeTensors t(d, type);
    DecodeAttentionOptions options = options_of(d);
    change(options, t);
    try {
      decode_attention(t.table, options, t.at);
    } catch (const Error& error) {
      const std::string text = error.what();
      const std::string start = "make decode_attention node `d`: ";
      EXPECT_EQ(text.substr(0, start.size()), start);
      return text.substr(start.size());
    }
    return std::string("no error");
  };
  const auto nothing = [](auto&, auto&) {};
  EXPECT_EQ(sentence(DType::kF32, {4, 2, 6}, nothing), "no error");
  EXPECT_EQ(sentence(DType::kBF16, {4, 2, 6}, nothing),
            "head_dim must be 64, 80, 96 or 128 with a bf16 pool, got 6");
  EXPECT_EQ(sentence(DType::kBF16, {9, 1, 64}, nothing),
            "at most 8 query heads may share a kv head with a bf16 pool, got 9");
  EXPECT_EQ(sentence(DType::kF16, {4, 2, 64}, nothing), "`k_past` must be f32 or bf16, got f16");
  EXPECT_EQ(sentence(DType::kF32, {4, 2, 6}, [](auto& o, auto&) { o.num_splits = 2; }),
            "num_splits must be 0 or 1 with an f32 pool, got 2");
  EXPECT_EQ(sentence(DType::kF32, {4, 2, 6}, [](auto& o, auto&) { o.heads = 3; }),
            "heads must be a multiple of kv_heads 2, got 3");
  EXPECT_EQ(sentence(DType::kF32, {4, 2, 6}, [](auto&, auto& t) { t.at.q_norm = t.at.inv_freq; }),
            "q_norm and k_norm must come together, got one of them");
  EXPECT_EQ(sentence(DType::kF32, {4, 2, 6}, [](auto&, auto& t) { t.at.out = t.at.k_step; }),
            "`k_step` must be (1, 24), got (1, 12)");
}

}  // namespace
}  // namespace tileweave
