// Models on a GPU against Hugging Face transformers: scripts/goldens/models.py made the data.
#include <gtest/gtest.h>

#include "tests/models/padded_model.h"

namespace tileweave {
namespace {

/// ||a - b||_2 / ||b||_2 of a row of logits, against fp32 arithmetic on weights rounded to bf16.
/// Operands are rounded to bf16 on the way. transformers itself, run in bf16 on these models, is
/// off by up to 0.056 in a row (llama_plain, llama_tied; 5.17): random weights of so few columns
/// hardly average anything out. We round less often.
constexpr double kTolerance = 0.04;

TEST(GpuGolden, PrefillAndDecodeGiveTheLogitsOfTransformers) {
  for (const std::string& name : tiny_model_names()) {
    const Golden golden = read_golden(name);
    for (const Granularity granularity : {Granularity::kOps, Granularity::kStages}) {
      const TinyModel model = open_padded_model(name, open_cuda_device(),
                                                {.granularity = granularity, .max_tokens = 65});
      for (const std::size_t chunk : {64, 5, 1}) {
        SCOPED_TRACE(testing::Message()
                     << name << ", " << name_of(granularity) << ", " << chunk << " tokens a step");
        const std::vector<float> logits = logits_of(*model.decoder, golden.ids, chunk);
        const double error = largest_row_error(logits, golden.logits_bf16,
                                               static_cast<std::size_t>(model.config.vocab_size));
        EXPECT_LE(error, kTolerance);
        RecordProperty((name + "_" + name_of(granularity)).c_str(), std::to_string(error));
      }
    }
  }
}

}  // namespace
}  // namespace tileweave
