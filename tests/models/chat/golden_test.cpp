// What transformers makes of the same templates, conversations and snippets.
#include <gtest/gtest.h>

#include <functional>

#include "tests/models/chat/golden_files.h"
#include "tileweave/core/error.h"
#include "tileweave/models/chat/chat_template.h"

namespace tileweave {
namespace {

// Compares one rendering with its golden: {"text": ...} or {"refusal": words of raise_exception}.
void expect_golden(const Golden& golden, const std::function<std::string()>& render) {
  if (golden.contains("text")) {
    EXPECT_EQ(render(), golden["text"].get<std::string>());
    return;
  }
  try {
    ADD_FAILURE() << "transformers refuses, this gives " << render();
  } catch (const Error& error) {
    const std::string words = golden["refusal"];
    EXPECT_NE(std::string(error.what()).find(words), std::string::npos) << error.what();
  }
}

class ChatGoldens : public testing::TestWithParam<const char*> {};

TEST_P(ChatGoldens, EqualTransformersOnEveryConversation) {
  const std::string name = GetParam();
  const ChatTemplate parsed = ChatTemplate::parse(data_text(name + ".jinja"), name);
  const Golden goldens = data_json(name + ".json");
  const Golden conversations = data_json("conversations.json");
  ASSERT_EQ(conversations.size(), goldens["results"].size());
  ASSERT_GE(conversations.size(), 30U);
  std::size_t num_texts = 0;
  for (std::size_t i = 0; i < conversations.size(); ++i) {
    SCOPED_TRACE("conversation " + std::to_string(i) + " " + conversations[i].dump());
    ChatOptions options;
    options.bos_token = goldens["bos_token"];
    options.eos_token = goldens["eos_token"];
    options.variables_json = conversations[i]["variables"].dump();
    options.now = golden_time();
    const std::string messages = conversations[i]["messages"].dump();
    const Golden& results = goldens["results"][i];
    options.generation_prompt = GenerationPrompt::kAdd;
    expect_golden(results["with_prompt"], [&] { return parsed.render_json(messages, options); });
    options.generation_prompt = GenerationPrompt::kNone;
    expect_golden(results["without_prompt"], [&] { return parsed.render_json(messages, options); });
    num_texts += results["with_prompt"].contains("text") ? 1 : 0;
  }
  EXPECT_GE(num_texts, 30U);
}

INSTANTIATE_TEST_SUITE_P(Templates, ChatGoldens,
                         testing::Values("smollm2_style", "qwen3_style", "llama3_style",
                                         "llama31_style", "llama32_style", "llama2_style",
                                         "mistral_style", "phi_style", "macro_style"),
                         [](const auto& one) { return std::string(one.param); });

TEST(SnippetGoldens, EqualJinjaForEveryOperatorFilterTestMethodAndStatement) {
  const Golden snippets = data_json("snippet_results.json");
  ASSERT_GE(snippets.size(), 150U);
  ChatOptions options;
  options.bos_token = "<s>";
  options.generation_prompt = GenerationPrompt::kNone;
  options.variables_json = data_text("snippet_variables.json");
  options.now = golden_time();
  const std::vector<ChatMessage> messages = {{"user", "hi"}, {"assistant", "ho"}};
  for (const Golden& snippet : snippets) {
    const std::string source = snippet["template"];
    SCOPED_TRACE(source);
    expect_golden(snippet,
                  [&] { return ChatTemplate::parse(source, "snippet").render(messages, options); });
  }
}

}  // namespace
}  // namespace tileweave
