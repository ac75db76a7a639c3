// tune_config: what it keeps and finds again, and a product tuned for real on the emulated device.
#include "tileweave/tune/tune_config.h"

#include <gtest/gtest.h>

#include <cstring>
#include <memory>
#include <string>
#include <vector>

#include "tests/tune/tune_folder.h"
#include "tileweave/kernels/gemm/skinny_gemm_args.h"
#include "tileweave/tune/tune_skinny_gemm.h"

namespace tileweave {
namespace {

/// A task whose second value is the faster one, and that counts its measurements.
TuneTask task_of(int& measured) {
  return {.op = "op",
          .shapes = "1x2",
          .dtypes = "f32",
          .knobs = {{"stages", {0, 4, 6}}},
          .prepare = [&measured](const TuneCandidate& c) -> TuneSample {
            ++measured;
            return [c] { return c[0] == 4 ? 0.5 : 1.0; };
          }};
}

TEST(TuneConfig, MeasuresOnceAndFindsItAgain) {
  TuneFolder folder;
  const auto device = open_cpu_device();
  int measured = 0;
  const TuneTask task = task_of(measured);
  TuneCache cache = folder.cache();
  EXPECT_EQ(tune_config(*device, task, cache, TuneLookup::kOnly).source, TuneSource::kDefault);
  EXPECT_EQ(measured, 0);
  const TunedConfig first = tune_config(*device, task, cache);
  EXPECT_EQ(first.source, TuneSource::kMeasured);
  EXPECT_EQ(first.value("stages"), 4);
  EXPECT_EQ(first.value("window"), 0);
  EXPECT_EQ(first.seconds, 0.5);
  const int once = measured;
  TuneCache later = folder.cache();
  const TunedConfig again = tune_config(*device, task, later);
  EXPECT_EQ(again.source, TuneSource::kCached);
  EXPECT_EQ(again.values, first.values);
  EXPECT_EQ(measured, once);
  EXPECT_EQ(tune_config(*device, task, later, TuneLookup::kNever).source, TuneSource::kMeasured);
  EXPECT_GT(measured, once);
}

TEST(TuneConfig, AnotherShapeTypeOrMachineIsAMiss) {
  TuneFolder folder;
  TuneCache cache = folder.cache();
  int measured = 0;
  const auto source = [&](const Device& device, const TuneTask& task) {
    return tune_config(device, task, cache, TuneLookup::kOnly).source;
  };
  const auto device = open_cpu_device({.num_sms = 2});
  tune_config(*device, task_of(measured), cache);
  EXPECT_EQ(source(*device, task_of(measured)), TuneSource::kCached);
  TuneTask other = task_of(measured);
  other.shapes = "2x2";
  EXPECT_EQ(source(*device, other), TuneSource::kDefault);
  other = task_of(measured);
  other.dtypes = "bf16";
  EXPECT_EQ(source(*device, other), TuneSource::kDefault);
  EXPECT_EQ(source(*open_cpu_device({.num_sms = 3}), task_of(measured)), TuneSource::kDefault);
  DeviceLimits limits = h200_limits();
  limits.num_sms = 2;
  EXPECT_EQ(source(*open_cpu_device({.limits = limits}), task_of(measured)), TuneSource::kDefault);
}

TEST(TuneConfig, ValuesThatTheKernelDoesNotHaveAreAMissAndSaidOnce) {
  TuneFolder folder;
  const auto device = open_cpu_device();
  int measured = 0;
  const TuneTask task = task_of(measured);
  const TuneKey key = key_on(*device, "op", {{"shapes", "1x2"}, {"dtypes", "f32"}});
  for (const char* value : {"4", "{}", R"({"knobs": {}, "seconds": "fast", "default_seconds": 1})",
                            R"({"knobs": {"stages": 5}, "seconds": 1, "default_seconds": 1})",
                            R"({"knobs": {"depth": 4}, "seconds": 1, "default_seconds": 1})",
                            R"({"knobs": {"stages": 4.5}, "seconds": 1, "default_seconds": 1})",
                            R"({"knobs": [4], "seconds": 1, "default_seconds": 1})"}) {
    folder.cache().store(key, value);
    folder.notes.clear();
    TuneCache cache = folder.cache();
    EXPECT_EQ(tune_config(*device, task, cache, TuneLookup::kOnly).source, TuneSource::kDefault)
        << value;
    EXPECT_EQ(folder.notes.size(), 1U) << value;
  }
}

TEST(TuneConfig, ACacheThatCannotBeWrittenIsNoted) {
  const auto device = open_cpu_device();
  int measured = 0;
  std::vector<std::string> notes;
  TuneCache cache("/dev/null/x", [&](const std::string& note) { notes.push_back(note); });
  EXPECT_EQ(tune_config(*device, task_of(measured), cache).value("stages"), 4);
  ASSERT_EQ(notes.size(), 1U);
  EXPECT_NE(notes[0].find("not kept"), std::string::npos) << notes[0];
  EXPECT_NE(notes[0].find("/dev/null/x"), std::string::npos) << notes[0];
}

TEST(TuneConfig, ASkinnyGemmIsTunedOnTheEmulatedDevice) {
  TuneFolder folder;
  TuneCache cache = folder.cache();
  const auto device = open_cpu_device({.num_sms = 2});
  add_skinny_gemm_cpu(device->kernels());
  for (const SkinnyGemmProblem& problem :
       {SkinnyGemmProblem{.m = 2, .n = 80, .k = 2100, .norm = true},
        SkinnyGemmProblem{.n = 128, .k = 64, .gated = true}}) {
    const TuneTask task =
        skinny_gemm_task(*device, problem, {.cold_bytes = 1 << 20, .seconds_per_sample = 1e-4});
    std::int64_t candidates = 0;
    const SearchOptions options{
        .repeats = 1,
        .budget_seconds = 20,
        .most_rounds = 1,
        .progress = [&](const TuneProgress& p) { candidates = p.measured; }};
    const TunedConfig tuned = tune_config(*device, task, cache, TuneLookup::kFirst, options);
    EXPECT_EQ(tuned.source, TuneSource::kMeasured);
    EXPECT_GT(tuned.seconds, 0);
    EXPECT_LE(tuned.seconds, tuned.default_seconds);
    EXPECT_GE(candidates, 10);
    for (const SearchResult::Refusal& refusal : tuned.refused) {
      EXPECT_EQ(refusal.why.find("bit"), std::string::npos) << refusal.why;
    }
    // What was found makes a node.
    const SkinnyGemmKnobs knobs = skinny_gemm_knobs(tuned);
    EXPECT_NO_THROW(task.prepare(
        {knobs.blocks_per_sm, knobs.strips_per_work, knobs.split_k, knobs.stages, knobs.window})());
    EXPECT_EQ(tune_config(*device, task, cache).values, tuned.values);
  }
}

TEST(TuneConfig, ACutWithAnotherResultIsRefused) {
  const auto device = open_cpu_device({.num_sms = 2});
  add_skinny_gemm_cpu(device->kernels());
  const TuneTask task = skinny_gemm_task(*device, {.n = 64, .k = 3000},
                                         {.cold_bytes = 1, .seconds_per_sample = 1e-5});
  task.prepare({0, 0, 0, 0, 0});
  EXPECT_NO_THROW(task.prepare({0, 1, 2, 0, 0}));
  // A kernel that goes wrong where K is split: it adds a bias that nobody asked for.
  static const std::vector<float> ones(64, 1.0F);
  KernelLibrary right;
  add_skinny_gemm_cpu(right);
  const auto wrong = open_cpu_device({.num_sms = 2});
  for (const auto& [name, kernel] : right.all()) {
    KernelImpl changed = kernel;
    changed.cpu = [run = kernel.cpu, split = name.find(".split") != std::string::npos](
                      CpuLane& lane, const std::byte* args, const std::byte* context) {
      SkinnyGemmArgs own;
      std::memcpy(&own, args, sizeof(own));
      if (split) own.bias = {ones.data()};
      run(lane, reinterpret_cast<const std::byte*>(&own), context);
    };
    wrong->kernels().add(changed);
  }
  const TuneTask wrong_task =
      skinny_gemm_task(*wrong, {.n = 64, .k = 3000}, {.cold_bytes = 1, .seconds_per_sample = 1e-5});
  wrong_task.prepare({0, 4, 1, 0, 0});
  EXPECT_THROW(wrong_task.prepare({0, 4, 2, 0, 0}), Error);
}

}  // namespace
}  // namespace tileweave
