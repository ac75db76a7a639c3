// The interface: messages, options, files.
#include "tileweave/models/chat/chat_template.h"

#include <gtest/gtest.h>

#include <unistd.h>

#include <ctime>
#include <filesystem>
#include <fstream>
#include <thread>

#include "tileweave/core/error.h"

namespace tileweave {
namespace {

namespace fs = std::filesystem;

class ModelFolder {
 public:
  ModelFolder() : path_(fs::temp_directory_path() / unique_name()) { fs::create_directory(path_); }
  ~ModelFolder() { fs::remove_all(path_); }
  ModelFolder(const ModelFolder&) = delete;
  ModelFolder& operator=(const ModelFolder&) = delete;

  void write(const std::string& name, const std::string& text) const {
    std::ofstream(path_ / name, std::ios::binary) << text;
  }
  std::string path() const { return path_.string(); }

 private:
  static std::string unique_name() {
    const auto* info = testing::UnitTest::GetInstance()->current_test_info();
    return "tileweave_chat_" + std::string(info->name()) + "_" + std::to_string(getpid());
  }
  fs::path path_;
};

template <class Call>
std::string error_of(const Call& call) {
  try {
    call();
  } catch (const Error& error) {
    return error.what();
  }
  return "no error";
}

std::string render(const std::string& source, const ChatOptions& options = {}) {
  return ChatTemplate::parse(source, "t").render(std::vector<ChatMessage>{{"user", "hi"}}, options);
}

TEST(ChatOptions, GiveTheirVariablesAndVariablesJsonWins) {
  EXPECT_EQ(render("{{ add_generation_prompt }}"), "True");
  EXPECT_EQ(render("{{ add_generation_prompt }}", {.generation_prompt = GenerationPrompt::kNone}),
            "False");
  EXPECT_EQ(render("{{ bos_token }}{{ eos_token }}", {.bos_token = "<s>", .eos_token = "</s>"}),
            "<s></s>");
  EXPECT_EQ(render("{{ bos_token is defined }}{{ tools }}{{ documents is none }}"),
            "FalseNoneTrue");
  EXPECT_EQ(render("{{ bos_token }}{{ tools[0].a }}{{ enable_thinking }}",
                   {.bos_token = "<s>", .variables_json = R"({"bos_token": "x", "tools": [{"a": 1}],
                                          "enable_thinking": false})"}),
            "x1False");
}

TEST(ChatOptions, TheClockIsThatOfTheMachineUnlessGiven) {
  const std::time_t before = std::time(nullptr);
  std::tm parts{};
  localtime_r(&before, &parts);
  const std::string today = render("{{ strftime_now('%Y-%m-%d %H:%M:%S') }}");
  std::tm read{};
  ASSERT_NE(strptime(today.c_str(), "%Y-%m-%d %H:%M:%S", &read), nullptr) << today;
  read.tm_isdst = parts.tm_isdst;
  EXPECT_NEAR(static_cast<double>(mktime(&read)), static_cast<double>(before), 60);
  const ChatOptions leap_day{.now = std::chrono::local_days(std::chrono::year(2024) / 2 / 29) +
                                    std::chrono::hours(23)};
  EXPECT_EQ(render("{{ strftime_now('%d %b %Y %a %j %H') }}", leap_day), "29 Feb 2024 Thu 060 23");
}

TEST(ChatTemplates, MessagesAsStructsAndAsJsonGiveTheSameText) {
  const ChatTemplate parsed = ChatTemplate::parse(
      "{% for m in messages %}{{ m.role }}={{ m['content'] }};{% endfor %}", "t");
  EXPECT_EQ(parsed.render(std::vector<ChatMessage>{{"system", "é \"q\""}, {"user", ""}}),
            "system=é \"q\";user=;");
  EXPECT_EQ(parsed.render_json(R"([{"role": "system", "content": "é \"q\""},
                                   {"role": "user", "content": ""}])"),
            "system=é \"q\";user=;");
  EXPECT_EQ(parsed.name(), "t");
}

TEST(ChatTemplates, NullKeysVanishAndReasoningHasThreeNames) {
  const ChatTemplate parsed = ChatTemplate::parse(
      "{{ messages[0].tool_calls is defined }} {{ messages[0].reasoning_content }} "
      "{{ messages[0].thinking }} {{ messages[0] | list | length }}",
      "t");
  EXPECT_EQ(parsed.render_json(R"([{"role": "x", "tool_calls": null, "reasoning": "r"}])"),
            "False r r 4");
}

TEST(ChatTemplates, RenderingDoesNotChangeTheTemplate) {
  const ChatTemplate parsed = ChatTemplate::parse(
      "{% set ns = namespace(n=0) %}{% for i in range(50) %}{% set ns.n = ns.n + i %}{% endfor %}"
      "{{ ns.n }}{{ messages[0].content | select | list | length }}",
      "t");
  std::vector<std::string> results(4);
  std::vector<std::thread> threads;
  for (std::string& result : results) {
    threads.emplace_back([&] {
      for (int i = 0; i < 50; ++i) {
        result = parsed.render(std::vector<ChatMessage>{{"user", "abc"}});
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  for (const std::string& result : results) EXPECT_EQ(result, "12253");
}

TEST(ChatFiles, TheJinjaFileComesBeforeTheConfig) {
  const ModelFolder folder;
  folder.write("tokenizer_config.json", R"({"chat_template": "config"})");
  const std::vector<ChatMessage> messages = {{"user", "hi"}};
  EXPECT_EQ(open_chat_template(folder.path()).render(messages), "config");
  folder.write("chat_template.jinja", "file {{ messages[0].content }}\n");
  EXPECT_EQ(open_chat_template(folder.path()).render(messages), "file hi");
  EXPECT_EQ(open_chat_template(folder.path()).name(), folder.path() + "/chat_template.jinja");
}

TEST(ChatFiles, AListOfTemplatesHasADefault) {
  const ModelFolder folder;
  folder.write("tokenizer_config.json",
               R"({"chat_template": [{"name": "tool_use", "template": "t"},
                                     {"name": "default", "template": "d"}]})");
  EXPECT_EQ(open_chat_template(folder.path()).render(std::vector<ChatMessage>{{"user", ""}}), "d");
  folder.write("tokenizer_config.json",
               R"({"chat_template": [{"name": "tool_use", "template": "t"}]})");
  const std::string config = folder.path() + "/tokenizer_config.json";
  EXPECT_EQ(error_of([&] { open_chat_template(folder.path()); }),
            "read " + config +
                ": chat_template to be a list with a template named 'default', got 'tool_use'");
}

TEST(ChatFiles, WithoutATemplateTheErrorSaysWhereOneCouldBe) {
  const ModelFolder folder;
  const std::string sentence =
      "open the chat template of " + folder.path() +
      ": a file chat_template.jinja, or chat_template in tokenizer_config.json, got neither";
  EXPECT_EQ(error_of([&] { open_chat_template(folder.path()); }), sentence);
  folder.write("tokenizer_config.json", R"({"chat_template": null})");
  EXPECT_EQ(error_of([&] { open_chat_template(folder.path()); }), sentence);
  EXPECT_NE(error_of([&] { open_chat_template(folder.path() + "/missing"); }).find("got neither"),
            std::string::npos);
}

TEST(ChatFiles, BadFilesAreNamed) {
  const ModelFolder folder;
  const std::string config = folder.path() + "/tokenizer_config.json";
  const auto error = [&] { return error_of([&] { open_chat_template(folder.path()); }); };
  folder.write("tokenizer_config.json", "{\"chat_template\": ");
  EXPECT_EQ(error().substr(0, config.size() + 5), "read " + config);
  folder.write("tokenizer_config.json", "[]");
  EXPECT_EQ(error().substr(0, config.size() + 5), "read " + config);
  folder.write("tokenizer_config.json", R"({"chat_template": 5})");
  EXPECT_EQ(error(), "read " + config +
                         ": chat_template to be a string or a list of named templates, got the "
                         "number 5");
  folder.write("tokenizer_config.json", R"({"chat_template": "{{"})");
  EXPECT_EQ(error(), "parse chat template '" + config +
                         "': line 1: an expression, got the end of the template");
  folder.write("chat_template.jinja", "version https://git-lfs.github.com/spec/v1\noid sha256:0\n");
  EXPECT_EQ(error(), "read " + folder.path() +
                         "/chat_template.jinja: a chat template, got a Git LFS pointer: fetch the "
                         "file itself");
}

TEST(ChatTokens, AreStringsOrObjectsOrAbsent) {
  const ModelFolder folder;
  EXPECT_EQ(open_chat_tokens(folder.path()).bos_token, "");
  folder.write("tokenizer_config.json",
               R"({"bos_token": "<s>", "eos_token": {"content": "</s>", "lstrip": false}})");
  EXPECT_EQ(open_chat_tokens(folder.path()).bos_token, "<s>");
  EXPECT_EQ(open_chat_tokens(folder.path()).eos_token, "</s>");
  folder.write("tokenizer_config.json", R"({"bos_token": null})");
  EXPECT_EQ(open_chat_tokens(folder.path()).bos_token, "");
  EXPECT_EQ(open_chat_tokens(folder.path()).eos_token, "");
  folder.write("tokenizer_config.json", R"({"eos_token": 2})");
  EXPECT_EQ(error_of([&] { open_chat_tokens(folder.path()); }),
            "read " + folder.path() +
                "/tokenizer_config.json: eos_token to be a string or an object with a string "
                "'content', got the number 2");
}

}  // namespace
}  // namespace tileweave
