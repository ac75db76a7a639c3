// tune_plan on the emulated device: what it measures, what it refuses, what it leaves behind.
#include "tileweave/models/plan_tuner.h"

#include <gtest/gtest.h>

#include <atomic>
#include <cstring>
#include <string>
#include <vector>

#include "tests/models/tiny_models.h"
#include "tileweave/core/error.h"
#include "tileweave/kernels/norm/rms_norm_args.h"

namespace tileweave {
namespace {

const PlanTuneOptions kShort = {.rows = 2, .context = 5, .steps = 3, .repeat = 2};

TinyModel open_model() {
  return open_tiny_model(
      "qwen3", {.device = {.num_sms = 2}, .decoder = {.max_tokens = 64, .cache_tokens = 256}});
}

TEST(TunePlan, MeasuresEveryArmOfTheDeviceAndKeepsOne) {
  TinyModel model = open_model();
  std::vector<PlanArm> arms = plan_arms(*model.decoder, decode_shape(2));
  ASSERT_GE(arms.size(), 3U);
  EXPECT_EQ(arms[0].name, "default");
  std::size_t told = 0;
  PlanTuneOptions options = kShort;
  options.progress = [&](std::size_t done, std::size_t in_all) {
    EXPECT_EQ(done, ++told);
    EXPECT_EQ(in_all, 3 * arms.size());
  };
  const PlanTuning tuning = tune_plan(*model.decoder, arms, options);
  EXPECT_EQ(told, 3 * arms.size());
  ASSERT_EQ(tuning.arms.size(), arms.size());
  for (const PlanArm& arm : tuning.arms) {
    EXPECT_EQ(arm.failure, "") << arm.name;
    EXPECT_GT(arm.seconds, 0) << arm.name;
  }
  if (tuning.chosen != 0) {
    EXPECT_LT(tuning.arms[tuning.chosen].seconds, 0.99 * tuning.arms[0].seconds);
  }
  EXPECT_EQ(model.decoder->cache().free_tokens(), model.decoder->cache().pool_rows())
      << "its sequences are gone";
}

TEST(TunePlan, TheDefaultStaysWhereNothingIsFasterByMuch) {
  TinyModel model = open_model();
  PlanTuneOptions options = kShort;
  options.least_gain = 0.999;
  EXPECT_EQ(tune_plan(*model.decoder, plan_arms(*model.decoder, decode_shape(2)), options).chosen,
            0U);
}

TEST(TunePlan, PassesOverAnArmThatMakesNoPlan) {
  TinyModel model = open_model();
  PlanArm bad{.name = "bad", .knobs = {.num_streams = 1000}};
  const PlanTuning tuning =
      tune_plan(*model.decoder, {{.name = "default"}, bad, {.name = "same"}}, kShort);
  EXPECT_NE(tuning.arms[1].failure, "");
  EXPECT_EQ(tuning.arms[2].failure, "");
  EXPECT_NE(tuning.chosen, 1U);
  EXPECT_THROW(tune_plan(*model.decoder, {bad, {.name = "other"}}, kShort), Error);
  EXPECT_THROW(tune_plan(*model.decoder, {}, kShort), Error);
}

TEST(TunePlan, RefusesAnArmWithOtherLogits) {
  TinyModel model = open_model();
  // A norm that is wrong while it is told to be.
  static std::atomic<bool> wrong{false};
  using Args = RmsNormArgs<float, float, float>;
  const std::string name = rms_norm_kernel_name(DType::kF32, DType::kF32, DType::kF32);
  KernelImpl kernel = model.device->kernels().find(name);
  kernel.cpu = [run = kernel.cpu](CpuLane& lane, const std::byte* args, const std::byte* context) {
    Args own;
    std::memcpy(&own, args, sizeof(own));
    if (wrong) own.eps = 0.5F;
    run(lane, reinterpret_cast<const std::byte*>(&own), context);
  };
  model.device->kernels().add(kernel);
  const std::vector<PlanArm> arms = {{.name = "default"}, {.name = "wrong"}, {.name = "right"}};
  PlanTuneOptions options = kShort;
  options.least_gain = 0;
  // Of three arms, made and measured twice in turn, the eighth run is the second's last.
  options.progress = [&](std::size_t done, std::size_t) { wrong = done == 7; };
  const PlanTuning tuning = tune_plan(*model.decoder, arms, options);
  EXPECT_NE(tuning.arms[1].failure.find("to the bit"), std::string::npos) << tuning.arms[1].failure;
  EXPECT_EQ(tuning.arms[2].failure, "");
  EXPECT_NE(tuning.chosen, 1U);
}

TEST(TunePlan, ASequenceWithoutRoomIsAnErrorThatLeavesNothingBehind) {
  TinyModel model = open_model();
  PlanTuneOptions options = kShort;
  options.context = 63;
  EXPECT_THROW(tune_plan(*model.decoder, {{.name = "default"}}, options), Error);
  EXPECT_EQ(model.decoder->cache().free_tokens(), model.decoder->cache().pool_rows());
}

TEST(StepProducts, AreThoseOfPackedWeightsAlone) {
  TinyModel model = open_model();
  EXPECT_TRUE(step_products(*model.decoder, 1).empty());
  const StepKnobs knobs = with_cut({}, StepOp::kDown, {.split_k = 3, .stages = 4});
  EXPECT_EQ(knobs.at(StepOp::kDown).split_k, 3);
  EXPECT_EQ(knobs.at(StepOp::kDown).stages, 4);
  EXPECT_EQ(knobs.at(StepOp::kO), OpKnobs{});
}

}  // namespace
}  // namespace tileweave
