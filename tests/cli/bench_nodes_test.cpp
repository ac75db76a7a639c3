// Plans of benchmarks, verified against the limits of an H200 where there is none.
#include "cli/bench_nodes.h"

#include <gtest/gtest.h>

#include <memory>

#include "cli/bench_decode.h"
#include "tileweave/core/error.h"
#include "tileweave/models/decoder.h"
#include "tileweave/models/dense_model.h"
#include "tileweave/models/presets.h"
#include "tileweave/plan/verify.h"

namespace tileweave::cli {
namespace {

constexpr std::int64_t kLayers = 3;

/// A decode step of a GPU.
Plan decode_plan(const char* name, Granularity granularity, std::int64_t rows,
                 const EdgePolicy& edge) {
  const NumericForm form = numeric_form("cuda");
  const std::unique_ptr<Device> device = open_cpu_device();
  ModelConfig config = *preset_config(name);
  config.num_layers = kLayers;
  const ModelWeights weights =
      described_weights(config, DType::kBF16, weight_form(form, granularity));
  const KvCache cache(
      *device,
      cache_shape(resolved({.max_tokens = 256, .cache_tokens = 4096}, config, form), config, form));
  StepBuilder builder({.config = &config,
                       .weights = &weights,
                       .cache = &cache,
                       .max_pages = 16,
                       .max_history = 256,
                       .limits = h200_limits(),
                       .num_streams = 3,
                       .granularity = granularity,
                       .form = form},
                      {.rows = rows, .sequences = rows, .outputs = rows, .decode = true},
                      with_edges({.num_streams = 3}, edge));
  dense_step(builder);
  return builder.plan();
}

TEST(BenchNodes, AStepWithoutAttentionIsTheSameStepAndVerified) {
  for (const char* name : {"llama-3.2-1b", "qwen3-8b", "llama-3.1-70b"}) {
    for (const Granularity granularity : {Granularity::kOps, Granularity::kStages}) {
      for (const std::int64_t rows : {1, 16}) {
        for (const EdgePolicy& edge :
             {EdgePolicy{.kind = EdgeKind::kFull}, EdgePolicy{.kind = EdgeKind::kProgrammatic},
              EdgePolicy{.kind = EdgeKind::kTile, .start = StartRule::kLaunchCompletion}}) {
          SCOPED_TRACE(testing::Message() << name << ", " << name_of(granularity) << ", " << rows
                                          << " rows, " << name_of(edge.kind));
          Plan plan = decode_plan(name, granularity, rows, edge);
          const std::size_t nodes = plan.nodes().size();
          EXPECT_EQ(replace_attention(plan), kLayers);
          EXPECT_EQ(plan.nodes().size(), nodes);
          EXPECT_EQ(replace_attention(plan), 0) << "none is left";
          const Verdict verdict =
              verify(plan, {.device = h200_limits(), .launch_order = LaunchOrder::kTrusted});
          ASSERT_TRUE(verdict.ok()) << verdict.faults.at(0).sentence;
        }
      }
    }
  }
}

TEST(BenchNodes, ACopyStandsBetweenTheSameTensorsAsAttentionDid) {
  const Plan before = decode_plan("qwen3-8b", Granularity::kStages, 2, {});
  Plan after = before;
  replace_attention(after);
  for (std::size_t i = 0; i < before.nodes().size(); ++i) {
    const NodeSpec& real = before.nodes()[i];
    const NodeSpec& copy = after.nodes()[i];
    if (real.kernel == copy.kernel) continue;
    EXPECT_EQ(copy.operands.size(), 2U);
    EXPECT_EQ(copy.operands[0].tensor, real.operands[0].tensor) << real.name;
    const TensorSpec& result = before.tensors()[copy.operands[1].tensor].spec;
    EXPECT_EQ(result.shape, (Shape{2, 32 * 128})) << result.name;
    EXPECT_EQ(copy.position, real.position);
    EXPECT_EQ(copy.num_works, 2);
  }
}

TEST(BenchNodes, RowsThatNoBlockHoldsAreRefused) {
  Plan plan;
  const auto row = [&](const char* name, std::int64_t columns) {
    return plan.tensor({.name = name, .shape = {1, columns}});
  };
  const TensorId x = row("x", 8196), y = row("y", 8196), odd = row("odd", 6), z = row("z", 6);
  EXPECT_THROW(next_row_node(plan.tensors(), "next", x, x, y), Error);
  EXPECT_THROW(next_row_node(plan.tensors(), "next", odd, odd, z), Error);
}

TEST(BenchDecode, GrowingContextsAreReadAsTheyAreWritten) {
  const std::vector<Growth> growths = parse_growths("128+64,1024+1024", 2048);
  ASSERT_EQ(growths.size(), 2U);
  EXPECT_EQ(growths[0].context, 128);
  EXPECT_EQ(growths[0].steps, 64);
  EXPECT_EQ(growths[1].context, 1024);
  EXPECT_EQ(growths[1].steps, 1024);
  for (const char* text :
       {"", "128", "128+", "+64", "1,2+3", "128+64,", "0+1", "1+2049", "1+2+3"}) {
    EXPECT_THROW(parse_growths(text, 2048), Error) << text;
  }
}

}  // namespace
}  // namespace tileweave::cli
