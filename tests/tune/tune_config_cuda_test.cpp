// A product tuned on a GPU: a few candidates, each right to the bit.
#include <gtest/gtest.h>

#include <string>

#include "tests/tune/tune_folder.h"
#include "tileweave/tune/tune_skinny_gemm.h"

namespace tileweave {
namespace {

TEST(TuneConfigOnAGpu, TunesAProductOfEveryFormAndFindsItAgain) {
  TuneFolder folder;
  TuneCache cache = folder.cache();
  const auto device = open_cuda_device();
  add_skinny_gemm(*device);
  EXPECT_NE(device->driver(), "");
  EXPECT_GE(device->limits().compute_capability, 80);
  EXPECT_GT(device->limits().l2_bytes, 0);
  for (const SkinnyGemmProblem& problem :
       {SkinnyGemmProblem{.m = 1, .n = 2048, .k = 2048},
        SkinnyGemmProblem{.m = 8, .n = 8192, .k = 1024, .gated = true, .norm = true},
        SkinnyGemmProblem{.m = 2, .n = 1024, .k = 3072, .kernel = SkinnyKernel::kPortable}}) {
    if (problem.kernel == SkinnyKernel::kBulk && device->limits().compute_capability < 90) continue;
    SCOPED_TRACE(testing::Message() << problem.m << " x " << problem.n << " x " << problem.k);
    const TuneTask task = skinny_gemm_task(*device, problem);
    const TunedConfig tuned = tune_config(*device, task, cache, TuneLookup::kFirst,
                                          {.repeats = 3, .budget_seconds = 5, .most_rounds = 1});
    EXPECT_EQ(tuned.source, TuneSource::kMeasured);
    EXPECT_GT(tuned.seconds, 1e-7);
    EXPECT_LE(tuned.seconds, tuned.default_seconds);
    for (const SearchResult::Refusal& refusal : tuned.refused) {
      EXPECT_EQ(refusal.why.find("bit"), std::string::npos) << refusal.why;
    }
    const TunedConfig again = tune_config(*device, task, cache);
    EXPECT_EQ(again.source, TuneSource::kCached);
    EXPECT_EQ(again.values, tuned.values);
    std::string values;
    for (const auto& [name, value] : tuned.values)
      values += name + " " + std::to_string(value) + " ";
    RecordProperty("tuned", values + std::to_string(tuned.seconds * 1e6) + " us, default " +
                                std::to_string(tuned.default_seconds * 1e6) + " us");
  }
  EXPECT_TRUE(folder.notes.empty());
}

}  // namespace
}  // namespace tileweave
