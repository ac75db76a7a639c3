// A chat template, and behind NULs the JSON of the messages and of further variables.
#include <string>
#include <vector>

#include "tests/fuzz/fuzz_input.h"
#include "tileweave/core/format.h"
#include "tileweave/models/chat/chat_template.h"

namespace tileweave::fuzz {
namespace {

// Small: a run ends in milliseconds whatever the template does.
constexpr ChatLimits kLimits = {.work = 2'000'000, .output_bytes = 200'000};

constexpr const char* kMessages =
    R"([{"role": "system", "content": " s\n"}, {"role": "user", "content": "\u00e9 <think>"},
        {"role": "assistant", "content": null, "reasoning": "r", "tool_calls": [{"id": "123456789",
         "function": {"name": "f", "arguments": {"a": 1.5, "b": [true, null, "x"]}}}]},
        {"role": "tool", "content": {"t": 17}}])";

void check(const ChatTemplate& parsed, const std::string& messages, const ChatOptions& options) {
  const std::string text = parsed.render_json(messages, options);
  demand(text.size() <= kLimits.output_bytes);
  demand(valid_utf8_prefix(text) == text.size());
  demand(text == parsed.render_json(messages, options));
}

}  // namespace
}  // namespace tileweave::fuzz

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace tileweave;
  const std::string input(fuzz::text_of(data, size));
  std::vector<std::string> parts;
  for (std::size_t at = 0; at <= input.size() && parts.size() < 3;) {
    const std::size_t nul = parts.size() < 2 ? input.find('\0', at) : std::string::npos;
    parts.push_back(input.substr(at, nul - at));
    at = nul == std::string::npos ? input.size() + 1 : nul + 1;
  }
  parts.resize(3);
  ChatOptions options{.bos_token = "<s>",
                      .variables_json = parts[2],
                      .now = std::chrono::local_seconds(std::chrono::seconds(1'750'000'000)),
                      .limits = fuzz::kLimits};
  fuzz::may_refuse([&] {
    const ChatTemplate parsed = ChatTemplate::parse(parts[0], "fuzz");
    fuzz::may_refuse(
        [&] { fuzz::check(parsed, parts[1].empty() ? fuzz::kMessages : parts[1], options); });
  });
  return 0;
}
