// SmolLM2-135M-Instruct against transformers, where `make run` has left it in the cache.
#include <gtest/gtest.h>

#include <cmath>
#include <cstdlib>
#include <filesystem>

#include "tileweave/models/chat/chat_template.h"
#include "tileweave/models/checkpoint/config.h"
#include "tileweave/models/generator.h"
#include "tileweave/models/json/json_file.h"
#include "tileweave/models/tokenizer/tokenizer.h"

namespace tileweave {
namespace {

std::filesystem::path model_folder() {
  const char* cache = std::getenv("XDG_CACHE_HOME");
  const char* home = std::getenv("HOME");
  const std::filesystem::path root =
      cache != nullptr && *cache != '\0'
          ? std::filesystem::path(cache)
          : std::filesystem::path(home == nullptr ? "" : home) / ".cache";
  return root / "tileweave/models/SmolLM2-135M-Instruct";
}

TEST(SmolLM2, WritesWhatTransformersWrites) {
  const std::filesystem::path folder = model_folder();
  if (!std::filesystem::exists(folder / "model.safetensors")) {
    GTEST_SKIP() << "SmolLM2-135M-Instruct is not in the cache; `make run` fetches it";
  }
  const JsonFile golden = JsonFile::read(std::string(TW_MODEL_DATA) + "/smollm2_golden.json");
  const auto device = open_cpu_device();
  const ModelConfig config = read_config((folder / "config.json").string());
  Decoder decoder(*device, config, load_weights(*device, Checkpoint::open(folder.string()), config),
                  {.max_tokens = 256});
  const Tokenizer tokenizer = Tokenizer::open((folder / "tokenizer.json").string());
  const ChatTemplate chat = open_chat_template(folder.string());
  for (const nlohmann::json& c : golden.json().at("runs")) {
    const std::vector<ChatMessage> messages{{"user", c.at("message")}};
    SCOPED_TRACE(messages[0].content);
    const std::string prompt = chat.render(messages);
    EXPECT_EQ(prompt, c.at("prompt"));
    const std::vector<std::int32_t> ids = tokenizer.encode(prompt, SpecialTokens::kNone);
    EXPECT_EQ(ids, c.at("prompt_ids").get<std::vector<std::int32_t>>());

    const auto sequence = decoder.add_sequence();
    const StepResult first = decoder.step({.parts = {{sequence, ids}}, .head = Head::kLogits});
    decoder.remove_sequence(sequence);
    double size = 0;
    for (const float x : first.logits) size += static_cast<double>(x) * static_cast<double>(x);
    for (const nlohmann::json& top : c.at("first_logits")) {
      EXPECT_NEAR(static_cast<double>(first.logits.at(top.at(0).get<std::size_t>())),
                  top.at(1).get<double>(), 1e-4 * std::sqrt(size));
    }
    const auto expected = c.at("ids").get<std::vector<std::int32_t>>();
    const GenerateRequest request{.ids = ids,
                                  .max_new_tokens = static_cast<std::int64_t>(expected.size())};
    EXPECT_EQ(generate(decoder, {request}).results[0].ids, expected);
  }
}

}  // namespace
}  // namespace tileweave
