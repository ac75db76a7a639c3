// Bad templates and bad inputs, each with its sentence.
#include <gtest/gtest.h>

#include "tileweave/core/error.h"
#include "tileweave/models/chat/chat_template.h"

namespace tileweave {
namespace {

const std::vector<ChatMessage> kMessages = {{"user", "hi"}};

struct Refusal {
  std::string source;
  std::string sentence;  // behind "parse chat template 't': line "
};

std::string parse_error(const std::string& source) {
  try {
    ChatTemplate::parse(source, "t");
  } catch (const Error& error) {
    return error.what();
  }
  return "no error";
}

std::string render_error(const std::string& source, const ChatOptions& options = {}) {
  const ChatTemplate parsed = ChatTemplate::parse(source, "t");
  try {
    return "no error but " + parsed.render(kMessages, options);
  } catch (const Error& error) {
    return error.what();
  }
}

TEST(BadTemplates, AreRefusedWhenParsedWithLineAndConstruct) {
  const std::vector<Refusal> refusals = {
      {"{{ 1", "1: '}}', got the end of the template"},
      {"\n\n{{ 1 + }}", "3: an expression, got '}}'"},
      {"{{ }}", "1: an expression, got '}}'"},
      {"{{ a b }}", "1: '}}', got 'b'"},
      {"{{ 'a }}", "1: a string that ends with '"},
      {"{{ (1 }}", "1: brackets that match, got '}'"},
      {"{{ 1) }}", "1: brackets that match, got ')'"},
      {"{{ a ! b }}", "1: characters that an expression may hold, got '!'"},
      {"{{ é }}", "1: characters that an expression may hold, got 'é'"},
      {"{{ 99999999999999999999 }}", "1: integers that fit 64 bits, got 99999999999999999999"},
      {"{{ 1e999 }}", "1: floats within the range of doubles, got 1e999"},
      {"{{ '\\ud800' }}", "1: escapes of Unicode characters, got a code that is none"},
      {"{{ '\\x4' }}", "1: escapes with all their digits, got '\\x4'"},
      {"{{ '\\N{BULLET}' }}", "1: escapes of characters by their code, got '\\N'"},
      {"{{ a.}}", "1: the name of an attribute, got '}}'"},
      {"{{ a[] }}", "1: a subscript, got '[]'"},
      {"{{ a[1, 2] }}", "1: one subscript in brackets, got several"},
      {"{{ f(*a) }}", "1: calls whose arguments are written out, got '*' before an argument"},
      {"{{ f(a=1, 2) }}", "1: positional arguments before named ones"},
      {"{{ f(a=1, a=2) }}", "1: each argument once, got 'a' twice"},
      {"{{ a | }}", "1: a name, got '}}'"},
      {"a\n{{ a |\n xmlattr }}", "2: only filters that are supported, got 'xmlattr'"},
      {"{{ a is nice }}", "1: only tests that are supported, got 'nice'"},
      {"{{ a is string is string }}", "1: one test after 'is', got 'is' again"},
      {"{{ lipsum() }}", "1: only functions that are supported, got 'lipsum'"},
      {"{% %}", "1: a statement, got '%}'"},
      {"{% unknown %}", "1: a statement, got 'unknown'"},
      {"{% include 'a' %}", "1: only statements that are supported, got 'include'"},
      {"{% import 'a' as b %}", "1: only statements that are supported, got 'import'"},
      {"{% extends 'a' %}", "1: only statements that are supported, got 'extends'"},
      {"{% block a %}{% endblock %}", "1: only statements that are supported, got 'block'"},
      {"{% do a.b() %}", "1: only statements that are supported, got 'do'"},
      {"{% if true %}\nx", "2: 'elif' or 'else' or 'endif', got the end of the template"},
      {"{% for x in y %}{% endif %}", "1: 'else' or 'endfor', got 'endif'"},
      {"{% endfor %}", "1: an open statement before its end, got 'endfor'"},
      {"{% else %}", "1: an open statement before its end, got 'else'"},
      {"{% for x y %}{% endfor %}", "1: 'in', got 'y'"},
      {"{% for loop in x %}{% endfor %}", "1: a loop's variable with another name, got 'loop'"},
      {"{% for x in y recursive %}{% endfor %}",
       "1: loops that are not recursive, got 'recursive'"},
      {"{% break %}", "1: 'break' inside of a loop, got none around it"},
      {"{% for x in y %}{% set z %}{% continue %}{% endset %}{% endfor %}",
       "1: 'continue' inside of a loop, got none around it"},
      {"{% set none = 1 %}", "1: a name to assign to, got 'none'"},
      {"{% set a[0] = 1 %}", "1: assignments to names and attributes of namespaces, got '['"},
      {"{% set a.b.c = 1 %}", "1: assignments to names and attributes of namespaces, got '.'"},
      {"{% set a %}x", "1: 'endset', got the end of the template"},
      {"{% macro m(a, a) %}{% endmacro %}", "1: each parameter once, got 'a' twice"},
      {"{% macro m(a=1, b) %}{% endmacro %}",
       "1: parameters without a default before those with one, got 'b'"},
      {"{% call 5 %}{% endcall %}", "1: a call after 'call'"},
      {"{% filter nope %}{% endfilter %}", "1: only filters that are supported, got 'nope'"},
      {"a\n{# never", "2: a comment that ends with '#}'"},
      {"{% raw %}x", "1: a raw block that ends with '{% endraw %}'"},
      {"{% if a %}{% elif %}{% endif %}", "1: an expression, got '%}'"},
  };
  for (const Refusal& refusal : refusals) {
    EXPECT_EQ(parse_error(refusal.source), "parse chat template 't': line " + refusal.sentence)
        << refusal.source;
  }
}

TEST(BadTemplates, AreRefusedWhenRenderedWithLineAndReason) {
  const std::vector<Refusal> refusals = {
      {"\n{{ nope.x }}", "2: a value that is defined, got 'nope', which is not defined"},
      {"{{ messages[0].nope.x }}",
       "1: a value that is defined, got 'nope', which a dict does not have"},
      {"{{ messages[5].role }}", "1: a value that is defined, got item 5 of a list without it"},
      {"{{ nope() }}", "1: a value that is defined, got 'nope', which is not defined"},
      {"{{ 1 + 'a' }}", "1: operands that '+' takes, got a int and a str"},
      {"{{ 1 // 0 }}", "1: a divisor other than zero"},
      {"{{ 9223372036854775807 + 1 }}", "1: integers that fit 64 bits"},
      {"{{ 10 ** 100 }}", "1: integers that fit 64 bits"},
      {"{{ 'a' < 1 }}", "1: values that have an order, got a str and a int"},
      {"{{ 1 in 'a' }}", "1: a string to look for in a string, got a int"},
      {"{% for x in 5 %}{% endfor %}", "1: a value to loop over, got a int"},
      {"{% set a, b = [1] %}", "1: 2 values to unpack, got 1"},
      {"{{ {[]: 1} }}", "1: a key that is a string, a number, none or a tuple of them, got a list"},
      {"{{ messages.append(1) }}",
       "1: a value that is defined, got 'append' of a list, which would change it"},
      {"{{ messages[0].update({}) }}",
       "1: a value that is defined, got 'update' of a dict, which would change it"},
      {"{{ 'a'.encode() }}", "1: only methods that are supported, got 'encode' of a str"},
      {"{{ messages | select }}",
       "1: a value with a text (lazy filters need `| list`), got a generator"},
      {"{{ namespace() }}", "1: a value with a text, got a namespace"},
      {"{{ range }}", "1: a value with a text, got a function"},
      {"{% set x.y = 1 %}", "1: a namespace whose attribute is set, got 'x', which is not defined"},
      {"{{ namespace(_a=1) }}", "1: names of a namespace that do not start with '_', got '_a'"},
      {"{{ nope | tojson }}", "1: a value that is defined, got 'nope', which is not defined"},
      {"{{ range(2) | tojson }}", "1: a value that JSON can hold, got a range"},
      {"{{ 'a' | replace('b') }}", "1: the filter 'replace' with the argument 'new', got none"},
      {"{{ 'a' | trim('b', 'c') }}", "1: the filter 'trim' with at most 1 arguments, got 2"},
      {"{{ 'a' | indent(depth=2) }}",
       "1: the filter 'indent' with the parameters that it has, got 'depth'"},
      {"{{ 1 is divisibleby }}", "1: the test 'divisibleby' with 1 arguments, got 0"},
      {"{% macro m(a) %}{% endmacro %}\n{{ m(1, 2) }}",
       "2: a call of 'm' with at most 1 arguments, got 2"},
      {"{% macro m(a) %}{% endmacro %}{{ m(b=2) }}",
       "1: a call of 'm' with the parameters that it has, got 'b'"},
      {"{{ 'a %x' % 1 }}", "1: a format of the conversions %s, %r, %d, %i, %f and %%, got '%x'"},
      {"{{ strftime_now('%q') }}", "1: only time directives that are supported, got '%q'"},
      {"{{ messages | map('nope') | list }}", "1: only filters that are supported, got 'nope'"},
      {"a\n{% if true %}\n{{ raise_exception('Roles must alternate!') }}{% endif %}",
       "3: the template accepts the conversation, got its refusal 'Roles must alternate!'"},
  };
  for (const Refusal& refusal : refusals) {
    EXPECT_EQ(render_error(refusal.source), "render chat template 't': line " + refusal.sentence)
        << refusal.source;
  }
}

TEST(BadInputs, AreRefusedInASentence) {
  const ChatTemplate parsed = ChatTemplate::parse("{{ messages[0].content }}", "t");
  const auto render = [&](const std::string& messages, const ChatOptions& options = {}) {
    try {
      return "no error but " + parsed.render_json(messages, options);
    } catch (const Error& error) {
      return std::string(error.what());
    }
  };
  const std::string start = "render chat template 't': ";
  EXPECT_EQ(render("[]"), start + "a conversation of at least one message");
  EXPECT_EQ(render("{}"), start + "the messages are a JSON array, got a dict");
  EXPECT_EQ(render("[1]"), start + "message 0 is an object, got a int");
  EXPECT_EQ(render("[{\"a\": tru}]"),
            start + "the JSON text of the messages is JSON, got \"\\\"a\\\": tru}\" at byte 11");
  EXPECT_EQ(render("[{\"a\": 99999999999999999999}]"),
            start +
                "the JSON text of the messages holds integers of at most 64 bits, got "
                "99999999999999999999");
  EXPECT_EQ(render(std::string(200, '[')),
            start + "the JSON text of the messages nests at most 100 deep");
  EXPECT_EQ(render("[{}]", {.variables_json = "[1]"}),
            start + "variables_json is a JSON object, got a list");
  EXPECT_NE(render("[{\"content\": \"\xff\"}]").find("is JSON, got"), std::string::npos);
  EXPECT_EQ(render("[{\"content\": \"\\ud800\"}]").find("no error"), std::string::npos);
  EXPECT_EQ(render_error("x", {.bos_token = "\xff"}),
            start + "bos_token is UTF-8, got another byte at offset 0");
  try {
    ChatTemplate::parse("x", "t").render(std::vector<ChatMessage>{{"user", "a\xc3"}});
    FAIL() << "invalid UTF-8 was accepted";
  } catch (const Error& error) {
    EXPECT_EQ(std::string(error.what()),
              start + "the content of message 0 is UTF-8, got another byte at offset 1");
  }
  EXPECT_EQ(parse_error("ab\xed\xa0\x80"),
            "parse chat template 't': UTF-8 text, got another byte at offset 2");
}

}  // namespace
}  // namespace tileweave
