// Whatever a template does, it ends: with a sentence, in bounded time, memory and stack.
#include <gtest/gtest.h>

#include "tileweave/core/error.h"
#include "tileweave/core/target.h"
#include "tileweave/models/chat/chat_template.h"

namespace tileweave {
namespace {

/// Far beyond what is allowed; less under ThreadSanitizer, which makes every call cost.
constexpr int kDeep = TW_TSAN ? 10'000 : 100'000;

const ChatLimits kSmall = {.work = 20'000'000, .output_bytes = 1 << 20};

std::string outcome(const std::string& source, const ChatLimits& limits = kSmall) {
  try {
    const ChatTemplate parsed = ChatTemplate::parse(source, "t");
    return "rendered " +
           std::to_string(
               parsed.render(std::vector<ChatMessage>{{"user", "hi"}}, {.limits = limits}).size());
  } catch (const Error& error) {
    return error.what();
  }
}

std::string repeated(const std::string& part, int count) {
  std::string text;
  for (int i = 0; i < count; ++i) text += part;
  return text;
}

TEST(ChatBounds, WorkThatGrowsWithoutEndIsStopped) {
  const std::string loop = "{% for i in range(100000) %}";
  const std::vector<std::string> sources = {
      loop + loop + loop + "{% endfor %}{% endfor %}{% endfor %}",
      "{% set n = namespace(x='ab') %}" + loop + "{% set n.x = n.x + n.x %}{% endfor %}",
      "{% set n = namespace(x=[1, 2]) %}" + loop + "{% set n.x = n.x + n.x %}{% endfor %}",
      "{% set n = namespace(x='ab') %}" + loop + "{% set n.x = n.x ~ n.x %}{% endfor %}",
      "{% set n = namespace(x='ab') %}" + loop +
          "{% set n.x = n.x | replace('a', 'aa') %}{% endfor %}",
      "{% set n = namespace(x='ab') %}" + loop +
          "{% set n.x %}{{ n.x }}{{ n.x }}{% endset %}{% endfor %}",
      "{{ ('a' * 2000000000) | length }}",
      "{{ [1] * 2000000000 }}",
      "{{ ('ab' * 3000000) | list }}",
      "{{ ('x\\n' * 20000) | indent(10000) }}",
      "{% set x = namespace(l=[]) %}" + loop + "{% set x.l = x.l + [i] %}{% endfor %}",
      "{% macro m() %}{{ m() }}{{ m() }}{% endmacro %}" + loop + "{{ '' ~ m }}{% endfor %}",
  };
  for (const std::string& source : sources) {
    const std::string result = outcome(source);
    EXPECT_EQ(result.substr(0, 27), "render chat template 't': l") << source << "\n" << result;
  }
}

TEST(ChatBounds, SharedNestingIsNotWalkedForEver) {
  // 60 levels of [x, x]: 2^60 elements to compare, print or dump.
  const std::string nested =
      "{% set n = namespace(x=1, y=1) %}{% for i in range(60) %}{% set n.x = [n.x, n.x] %}"
      "{% set n.y = [n.y, n.y] %}{% endfor %}";
  const std::string sentence =
      "render chat template 't': line 1: a template that ends within its budget of work";
  EXPECT_EQ(outcome(nested + "{{ n.x == n.y }}"), sentence);
  EXPECT_EQ(outcome(nested + "{{ n.x }}"), sentence);
  EXPECT_EQ(outcome(nested + "{{ n.x | tojson | length }}"), sentence);
  EXPECT_EQ(outcome(nested + "{{ n.x < n.y }}"), sentence);
}

TEST(ChatBounds, DeepNestingIsRefusedBeforeTheStackEnds) {
  const std::string deep =
      "{% set n = namespace(x=1) %}{% for i in range(100000) %}{% set n.x = [n.x] %}{% endfor %}";
  EXPECT_EQ(outcome(deep),
            "render chat template 't': line 1: lists and dicts nested at most 100 deep");
  EXPECT_EQ(outcome("{% macro m(i) %}{{ m(i + 1) }}{% endmacro %}{{ m(0) }}"),
            "render chat template 't': line 1: calls and expressions nested at most 1000 deep");
  EXPECT_EQ(outcome("{% set n = namespace(x=1) %}{% for i in range(100000) %}"
                    "{% set n.x = [n.x].index %}{% endfor %}"),
            "render chat template 't': line 1: lists and dicts nested at most 100 deep");
  const std::vector<std::string> sources = {repeated("(", kDeep) + "1" + repeated(")", kDeep),
                                            repeated("[", kDeep) + repeated("]", kDeep),
                                            repeated("-", kDeep) + "1",
                                            repeated("not ", kDeep) + "1",
                                            "1" + repeated("+1", kDeep),
                                            "a" + repeated(".b", kDeep),
                                            "a" + repeated("|upper", kDeep),
                                            "a" + repeated("()", kDeep),
                                            "1" + repeated(" if 1 else 2", kDeep),
                                            "a" + repeated("[0]", kDeep),
                                            repeated("f(", kDeep) + repeated(")", kDeep)};
  for (const std::string& source : sources) {
    const std::string result = outcome("{{ " + source + " }}");
    EXPECT_NE(result.find("nested at most"), std::string::npos) << source.substr(0, 20) << result;
  }
  for (const char* statement : {"{% if 1 %}", "{% for x in y %}", "{% set x %}", "{% with %}",
                                "{% filter upper %}", "{% macro m() %}", "{% generation %}"}) {
    EXPECT_NE(outcome(repeated(statement, kDeep)).find("nested at most"), std::string::npos)
        << statement;
  }
  EXPECT_NE(outcome("{% for " + repeated("(", kDeep) + "a").find("nested at most"),
            std::string::npos);
}

TEST(ChatBounds, MapOfMapIsBounded) {
  EXPECT_EQ(outcome("{{ 'a' | map(" + repeated("'map', ", 1500) + "'upper') | list }}",
                    {.work = 1'000'000'000}),
            "render chat template 't': line 1: calls and expressions nested at most 1000 deep");
}

TEST(ChatBounds, OutputIsBounded) {
  const ChatLimits limits = {.work = 100'000'000, .output_bytes = 100};
  EXPECT_EQ(outcome("{{ 'a' * 100 }}", limits), "rendered 100");
  EXPECT_EQ(outcome("{{ 'a' * 101 }}", limits),
            "render chat template 't': line 1: an output of at most 100 bytes");
}

TEST(ChatBounds, ALongConversationIsFarFromThem) {
  const ChatTemplate parsed = ChatTemplate::parse(
      "{% for m in messages %}{{ '<' + m.role + '>' + m.content | trim + '</>' }}{% endfor %}",
      "t");
  const std::vector<ChatMessage> messages(2000, {"user", std::string(10'000, 'x')});
  EXPECT_EQ(parsed.render(messages).size(), 2000U * (10'000U + 9U));
}

TEST(ChatBounds, ValuesMayReferToEachOtherInCircles) {
  EXPECT_EQ(outcome("{% set n = namespace() %}{% set n.self = [n] %}"
                    "{% macro m() %}{{ n.m is defined }}{% endmacro %}{% set n.m = m %}"
                    "{% for x in [1, 2] %}{% set n.loop = loop %}"
                    "{{ loop.changed(loop) }}{% endfor %}{{ n.loop.index }}{{ n.m() }}"),
            "rendered 14");  // TrueFalse 2 True
}

}  // namespace
}  // namespace tileweave
