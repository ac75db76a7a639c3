// Plans of a GPU's numeric form, verified against the limits of an H200 where there is none.
#include <gtest/gtest.h>

#include <algorithm>

#include "tileweave/core/error.h"
#include "tileweave/models/decoder.h"
#include "tileweave/models/dense_model.h"
#include "tileweave/models/presets.h"
#include "tileweave/plan/verify.h"
#include "tileweave/runtime/loader.h"

namespace tileweave {
namespace {

struct Described {
  Described(const std::string& name, std::int64_t layers, Granularity how,
            DeviceLimits gpu = h200_limits(), WideProducts wide_products = WideProducts::kOwn)
      : granularity(how), limits(std::move(gpu)), wide(wide_products) {
    config = *preset_config(name);
    config.num_layers = layers;
    weights = described_weights(config, DType::kBF16, weight_form(form, granularity, wide));
    cache = std::make_unique<KvCache>(
        *device, cache_shape(resolved({.max_tokens = 256, .cache_tokens = 4096}, config, form),
                             config, form));
  }

  Plan plan(const StepShape& shape, const StepKnobs& knobs) const {
    StepBuilder builder({.config = &config,
                         .weights = &weights,
                         .cache = cache.get(),
                         .max_pages = 16,
                         .max_history = 256,
                         .limits = limits,
                         .num_streams = 3,
                         .granularity = granularity,
                         .form = form,
                         .wide_products = wide},
                        shape, knobs);
    dense_step(builder);
    return builder.plan();
  }

  Granularity granularity;
  DeviceLimits limits;
  WideProducts wide;
  NumericForm form = numeric_form("cuda");
  std::unique_ptr<Device> device = open_cpu_device();
  ModelConfig config;
  ModelWeights weights;
  std::unique_ptr<KvCache> cache;
};

struct Edges {
  const char* name;
  EdgePolicy edge;
};

constexpr Edges kEdges[] = {
    {"full", {.kind = EdgeKind::kFull}},
    {"programmatic", {.kind = EdgeKind::kProgrammatic}},
    {"tile, none", {.kind = EdgeKind::kTile, .start = StartRule::kNone}},
    {"tile, wait_all", {.kind = EdgeKind::kTile, .start = StartRule::kWaitAll}},
    {"tile, launch_completion", {.kind = EdgeKind::kTile, .start = StartRule::kLaunchCompletion}},
};

TEST(GpuPlan, OfEveryPresetShapeAndEdgeKindIsVerified) {
  for (const std::string& name : preset_names()) {
    for (const Granularity granularity : {Granularity::kOps, Granularity::kStages}) {
      const Described model(name, 2, granularity);
      for (const StepShape& shape :
           {StepShape{.rows = 1, .sequences = 1, .outputs = 1, .decode = true},
            StepShape{.rows = 16, .sequences = 16, .outputs = 16, .decode = true},
            StepShape{.rows = kSkinnyMostRows, .sequences = 4, .outputs = 4},
            StepShape{.rows = kSkinnyMostRows,
            .sequences = 1,
            .outputs = kSkinnyMostRows,
            .head = Head::kLogits}}) {
        for (const Edges& edges : kEdges) {
          SCOPED_TRACE(testing::Message() << name << ", " << name_of(granularity) << ", "
                                          << shape.rows << " rows, " << edges.name);
          StepKnobs knobs = with_edges({.num_streams = 3}, edges.edge);
          const Plan plan = model.plan(shape, knobs);
          const Verdict verdict =
              verify(plan, {.device = h200_limits(), .launch_order = LaunchOrder::kTrusted});
          ASSERT_TRUE(verdict.ok()) << verdict.faults.at(0).sentence;
        }
      }
    }
  }
}

/// How many nodes of a plan run a kernel of this name or family.
std::int64_t count_of(const Plan& plan, const std::string& kernel) {
  return std::count_if(plan.nodes().begin(), plan.nodes().end(),
                       [&](const NodeSpec& node) { return node.kernel.starts_with(kernel); });
}

TEST(GpuPlan, OfProgrammaticEdgesTouchesNoSemaphore) {
  // A signal that nobody waits for costs a release, microseconds behind every result.
  for (const std::string& name : preset_names()) {
    for (const Granularity granularity : {Granularity::kOps, Granularity::kStages}) {
      const Described model(name, 2, granularity);
      const Plan plan = model.plan({.rows = 1, .sequences = 1, .outputs = 1, .decode = true},
                                   default_knobs(model.config, 1, h200_limits()));
      const Verdict verdict = verify(plan, {.device = h200_limits()});
      ASSERT_TRUE(verdict.ok()) << verdict.faults.at(0).sentence;
      const auto live = live_operands(plan, verdict.schedule, HappensBefore(plan, verdict.schedule),
                                      Mode::kOverlap);
      for (std::size_t node = 0; node < live.size(); ++node) {
        for (std::size_t operand = 0; operand < live[node].size(); ++operand) {
          const TensorId tensor = plan.nodes()[node].operands[operand].tensor;
          EXPECT_FALSE(live[node][operand] && plan.tensors()[tensor].tiled())
              << name << ", " << name_of(granularity) << ", node `" << plan.nodes()[node].name
              << "`, `" << plan.tensors()[tensor].spec.name << "`";
        }
      }
    }
  }
}

void expect_verified_for_every_edge_kind(const Described& model) {
  for (const StepShape& shape :
       {StepShape{.rows = 128, .sequences = 1, .outputs = 1, .head = Head::kNone},
        StepShape{.rows = 384, .sequences = 4, .outputs = 4},
        StepShape{.rows = 128, .sequences = 128, .outputs = 128, .decode = true},
        StepShape{.rows = 256, .sequences = 1, .outputs = 256, .head = Head::kLogits}}) {
    for (const Edges& edges : kEdges) {
      SCOPED_TRACE(testing::Message() << shape.rows << " rows, " << edges.name);
      const Plan plan = model.plan(shape, with_edges({.num_streams = 3}, edges.edge));
      const Verdict verdict =
          verify(plan, {.device = h200_limits(), .launch_order = LaunchOrder::kTrusted});
      ASSERT_TRUE(verdict.ok()) << verdict.faults.at(0).sentence;
    }
  }
}

TEST(GpuPlan, OfAPromptOrALargeBatchIsVerifiedForEveryEdgeKind) {
  for (const char* name : {"llama-3.2-1b", "qwen3-8b"}) {
    for (const Granularity granularity : {Granularity::kOps, Granularity::kStages}) {
      for (const WideProducts wide : {WideProducts::kOwn, WideProducts::kVendor}) {
        SCOPED_TRACE(testing::Message()
                     << name << ", " << name_of(granularity) << ", wide " << name_of(wide));
        expect_verified_for_every_edge_kind({name, 2, granularity, h200_limits(), wide});
      }
    }
  }
}

TEST(GpuPlan, MultipliesManyRowsWithWideGemmAndTheHeadsFewWithSkinnyGemm) {
  for (const Granularity granularity : {Granularity::kOps, Granularity::kStages}) {
    SCOPED_TRACE(name_of(granularity));
    const Described model("qwen3-0.6b", 3, granularity);
    const auto plan_of = [&](std::int64_t rows, std::int64_t outputs) {
      return model.plan({.rows = rows, .sequences = 1, .outputs = outputs},
                        default_knobs(model.config, rows, h200_limits()));
    };
    const Plan few = plan_of(kSkinnyMostRows, 1);
    EXPECT_EQ(count_of(few, "wide_gemm"), 0);
    EXPECT_EQ(count_of(few, "skinny_gemm"), 3 * 4 + 1);
    const Plan many = plan_of(512, 1);
    EXPECT_EQ(count_of(many, "wide_gemm"), 3 * 4);
    EXPECT_EQ(count_of(many, "skinny_gemm"), 1);
    EXPECT_EQ(count_of(many, "rms_norm"), 3 * 2 + 1);
    EXPECT_EQ(count_of(plan_of(512, 512), "wide_gemm"), 3 * 4 + 1);
  }
}

TEST(GpuPlan, WithWideProductsOfTheVendorUsesThemForManyRowsAlone) {
  DeviceLimits ampere = h200_limits();
  ampere.compute_capability = 80;  // which has no wide_gemm
  for (const DeviceLimits& limits : {h200_limits(), ampere}) {
    for (const Granularity granularity : {Granularity::kOps, Granularity::kStages}) {
      SCOPED_TRACE(name_of(granularity));
      const Described model("qwen3-0.6b", 3, granularity, limits, WideProducts::kVendor);
      const auto plan_of = [&](std::int64_t rows, std::int64_t outputs) {
        return model.plan({.rows = rows, .sequences = 1, .outputs = outputs},
                          default_knobs(model.config, rows, limits));
      };
      EXPECT_EQ(count_of(plan_of(kSkinnyMostRows, 1), "vendor_gemm"), 0);
      const Plan many = plan_of(512, 1);
      EXPECT_EQ(count_of(many, "wide_gemm"), 0);
      EXPECT_EQ(count_of(many, "vendor_gemm"), 3 * 4);
      EXPECT_EQ(count_of(many, "silu_mul"), 3);
      EXPECT_EQ(count_of(many, "skinny_gemm"), 1);
      EXPECT_EQ(count_of(plan_of(512, 512), "vendor_gemm"), 3 * 4 + 1);
    }
  }
}

TEST(GpuPlan, WithWideProductsOfTheVendorWantsWeightsThatWereLoadedForThem) {
  Described model("qwen3-0.6b", 1, Granularity::kStages);
  model.wide = WideProducts::kVendor;
  try {
    model.plan({.rows = 128, .sequences = 1, .outputs = 1}, {});
    ADD_FAILURE() << "was built";
  } catch (const Error& error) {
    const std::string said = error.what();
    EXPECT_NE(said.find("loaded for wide products of the vendor"), std::string::npos) << said;
    EXPECT_NE(said.find("`layer 0 qkv`"), std::string::npos) << said;
  }
}

TEST(GpuPlan, RefusesManyRowsWhereNoKernelTakesThem) {
  DeviceLimits ampere = h200_limits();
  ampere.compute_capability = 80;
  const Described model("qwen3-0.6b", 1, Granularity::kOps, ampere);
  const auto said = [&](const Described& of, const StepKnobs& knobs) -> std::string {
    try {
      of.plan({.rows = 128, .sequences = 1, .outputs = 1}, knobs);
    } catch (const Error& error) {
      return error.what();
    }
    return "nothing";
  };
  EXPECT_NE(said(model, {}).find("at most 64 rows for `layer 0 qkv` on this GPU"),
            std::string::npos)
      << said(model, {});
  const Described hopper("qwen3-0.6b", 1, Granularity::kOps);
  EXPECT_EQ(said(hopper, {}), "nothing");
  EXPECT_NE(said(hopper, {.products = SkinnyKernel::kPortable}).find("products `bulk`"),
            std::string::npos);
}

TEST(StepShape, BucketsOfRowsLeaveLessThanATileOfPadding) {
  for (std::int64_t rows = 1; rows <= 2048; ++rows) {
    const std::int64_t bucket = row_bucket_of(rows);
    EXPECT_GE(bucket, rows);
    EXPECT_LT(bucket, rows <= 128 ? 2 * rows : rows + 128) << rows;
    EXPECT_EQ(row_bucket_of(bucket), bucket);
  }
}

TEST(GpuPlan, WithFineDataTilesAndSlicesOfKIsVerified) {
  for (const char* name : {"llama-3.2-1b", "qwen3-8b"}) {
    for (const Granularity granularity : {Granularity::kOps, Granularity::kStages}) {
      SCOPED_TRACE(testing::Message() << name << ", " << name_of(granularity));
      const Described model(name, 2, granularity);
      StepKnobs knobs = with_edges({.num_streams = 2}, {.kind = EdgeKind::kTile});
      knobs.at(StepOp::kQkv).tile_columns = 512;
      knobs.at(StepOp::kAttention).tile_columns = 1024;
      knobs.at(StepOp::kAttention).splits = 4;
      knobs.at(StepOp::kSiluMul).tile_columns = 512;
      knobs.at(StepOp::kGateUp).tile_columns = 1024;
      knobs.at(StepOp::kO) = {.edge = EdgePolicy{.kind = EdgeKind::kTile},
                              .blocks_per_sm = 2,
                              .split_k = 2,
                              .wait_k = 1024};
      knobs.at(StepOp::kDown) = {
          .edge = EdgePolicy{.kind = EdgeKind::kTile}, .stages = 2, .wait_k = 1024};
      const Plan plan =
          model.plan({.rows = 4, .sequences = 4, .outputs = 4, .decode = true}, knobs);
      const Verdict verdict = verify(plan, {.device = h200_limits()});
      ASSERT_TRUE(verdict.ok()) << verdict.faults.at(0).sentence;
    }
  }
}

TEST(GpuPlan, KeepsOneKernelPerOperatorInOpsAndFewInStages) {
  const StepShape decode{.rows = 1, .sequences = 1, .outputs = 1, .decode = true};
  const auto nodes = [&](const char* name, Granularity granularity) {
    const Described model(name, 4, granularity);
    return model.plan(decode, default_knobs(model.config, 1, h200_limits())).nodes().size();
  };
  EXPECT_EQ(nodes("llama-3.2-1b", Granularity::kOps), 1 + 4 * 9 + 3);
  EXPECT_EQ(nodes("qwen3-0.6b", Granularity::kOps), 1 + 4 * 10 + 3);
  EXPECT_EQ(nodes("qwen3-0.6b", Granularity::kStages), 1 + 4 * 5 + 2);
}

/// As compute capability 8.6 has it, with room for `shared_bytes` in a block.
DeviceLimits small_gpu(std::int64_t shared_bytes = 99 << 10) {
  DeviceLimits limits = h200_limits();
  limits.name = "small";
  limits.num_sms = 82;
  limits.threads_per_sm = 1536;
  limits.blocks_per_sm = 16;
  limits.shared_bytes_per_sm = shared_bytes + 1024;
  limits.shared_bytes_per_block = shared_bytes;
  limits.compute_capability = 86;
  return limits;
}

TEST(GpuPlan, FitsTheSharedMemoryOfSmallerGpus) {
  for (const std::int64_t kib : {99, 163}) {
    const DeviceLimits limits = small_gpu(kib << 10);
    for (const char* name : {"llama-3.2-1b", "qwen3-0.6b", "llama-3.1-8b"}) {
      for (const Granularity granularity : {Granularity::kOps, Granularity::kStages}) {
        const Described model(name, 1, granularity, limits);
        const std::int64_t most = rows_that_fit(model.config, model.weights, granularity, limits);
        SCOPED_TRACE(testing::Message() << kib << " KiB, " << name << ", " << name_of(granularity)
                                        << ", " << most << " rows");
        EXPECT_GE(most, 4);
        for (const bool decode : {true, false}) {
          const Plan plan = model.plan({.rows = most,
                                        .sequences = decode ? most : 1,
                                        .outputs = decode ? most : 1,
                                        .decode = decode},
                                       default_knobs(model.config, most, limits));
          const Verdict verdict = verify(plan, {.device = limits});
          ASSERT_TRUE(verdict.ok()) << verdict.faults.at(0).sentence;
          for (const NodeSpec& node : plan.nodes()) {
            EXPECT_EQ(node.kernel.find("skinny_gemm.bulk"), std::string::npos)
                << node.kernel << " needs compute capability 9.0";
          }
        }
      }
    }
  }
  const Described model("llama-3.2-1b", 1, Granularity::kStages);
  EXPECT_EQ(rows_that_fit(model.config, model.weights, model.granularity, h200_limits()),
            kSkinnyMostRows);
}

TEST(GpuPlan, SaysInOneSentenceWhatASmallerGpuCannotRun) {
  const Described model("llama-3.1-8b", 1, Granularity::kStages, small_gpu());
  const auto said = [&](const StepShape& shape, const StepKnobs& knobs) -> std::string {
    try {
      model.plan(shape, knobs);
    } catch (const Error& error) {
      return error.what();
    }
    return "nothing";
  };
  const std::string rows =
      said({.rows = kSkinnyMostRows, .sequences = 1, .outputs = 1}, {.num_streams = 1});
  EXPECT_NE(rows.find("fewer rows than 64"), std::string::npos) << rows;
  EXPECT_NE(rows.find("101376 bytes of shared memory"), std::string::npos) << rows;
  const std::string bulk =
      said({.decode = true}, {.num_streams = 1, .products = SkinnyKernel::kBulk});
  EXPECT_NE(bulk.find("compute capability 9.0"), std::string::npos) << bulk;
  EXPECT_NE(bulk.find("got 8.6"), std::string::npos) << bulk;
}

TEST(StepKnobs, LeaveRoomForAttentionBesideAWholeShareOfQkv) {
  struct Expected {
    const char* name;
    std::int64_t stages, buffers;  // of qkv, of attention; 0: as usual
  };
  for (const Expected& expected : std::vector<Expected>{{"llama-3.2-1b", 3, 2},
                                                        {"qwen3-0.6b", 0, 2},
                                                        {"qwen3-1.7b", 3, 1},
                                                        {"qwen3-8b", 0, 0}}) {
    const StepKnobs one = default_knobs(*preset_config(expected.name), 1, h200_limits());
    EXPECT_EQ(one.at(StepOp::kQkv).stages, expected.stages) << expected.name;
    EXPECT_EQ(one.at(StepOp::kAttention).buffers, expected.buffers) << expected.name;
    const StepKnobs more = default_knobs(*preset_config(expected.name), 2, h200_limits());
    EXPECT_EQ(more.at(StepOp::kQkv).stages, 0) << expected.name;
    EXPECT_EQ(more.at(StepOp::kAttention).buffers, 0) << expected.name;
  }
  DeviceLimits ampere = h200_limits();
  ampere.compute_capability = 80;
  EXPECT_EQ(default_knobs(*preset_config("qwen3-1.7b"), 1, ampere).at(StepOp::kQkv).stages, 0);
}

TEST(StepKnobs, GoThroughJsonUnchanged) {
  StepKnobs knobs = default_knobs(*preset_config("qwen3-8b"), 1, h200_limits());
  knobs.at(StepOp::kQkv) = {
      .edge = EdgePolicy{.kind = EdgeKind::kTile, .start = StartRule::kLaunchCompletion},
      .split_k = 2,
      .wait_k = 512};
  knobs.at(StepOp::kAttention).splits = 4;
  knobs.at(StepOp::kAttention).buffers = 2;
  knobs.products = SkinnyKernel::kPortable;
  EXPECT_EQ(parse_knobs(to_json(knobs), "knobs"), knobs);
  EXPECT_EQ(parse_knobs("{}", "knobs"), StepKnobs{});
  for (const char* text :
       {"[]", R"({"stream": 1})", R"({"ops": {"gemm": {}}})",
        R"({"ops": {"qkv": {"edge": "half"}}})", R"({"ops": {"qkv": {"split_k": -1}}})",
        R"({"ops": {"qkv": {"depth": 1}}})"}) {
    EXPECT_THROW(parse_knobs(text, "knobs"), Error) << text;
  }
}

}  // namespace
}  // namespace tileweave
