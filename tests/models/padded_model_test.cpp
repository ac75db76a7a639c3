#include "tests/models/padded_model.h"

#include <gtest/gtest.h>

namespace tileweave {
namespace {

TEST(PaddedModel, IsTheTinyModel) {
  for (const std::string& name : tiny_model_names()) {
    SCOPED_TRACE(name);
    const Golden golden = read_golden(name);
    const TinyModel model = open_padded_model(name, open_cpu_device(), {.max_tokens = 65});
    const std::vector<float> logits = logits_of(*model.decoder, golden.ids, 65);
    EXPECT_LE(largest_row_error(logits, golden.logits_f32,
                                static_cast<std::size_t>(model.config.vocab_size)),
              1e-3);
  }
}

}  // namespace
}  // namespace tileweave
