// tokenizer.json, and text for the tokenizer that it describes: after a NUL in the input.
#include <string>
#include <vector>

#include "tests/fuzz/fuzz_input.h"
#include "tileweave/core/format.h"
#include "tileweave/models/tokenizer/tokenizer.h"

namespace tileweave::fuzz {
namespace {

constexpr std::string_view kText = "It's <s> a\u0301b 12\n \t\u4f60\u597d <t>ab--ab \U0001f642 ";

void check_decoding(const Tokenizer& tokenizer, const std::vector<std::int32_t>& ids,
                    DecodeSpecial special) {
  TextStream stream(tokenizer, special);
  std::string streamed;
  const auto take = [&streamed](const std::string& part) {
    demand(valid_utf8_prefix(part) == part.size());
    streamed += part;
  };
  for (const std::int32_t id : ids) take(stream.push(id));
  take(stream.finish());
  demand(streamed == tokenizer.decode(ids, special));
}

void check(const Tokenizer& tokenizer, std::string_view text) {
  std::vector<std::int32_t> ids = tokenizer.encode(text, SpecialTokens::kAdd);
  for (const std::int32_t id : ids) demand(tokenizer.token(id).has_value());
  for (std::int32_t id = 0; id < tokenizer.size() && id < 300; ++id) ids.push_back(id);
  ids.push_back(tokenizer.size());
  for (const std::int32_t id : ids) {
    const auto token = tokenizer.token(id);
    demand(!token || tokenizer.id_of(*token) == id);
  }
  check_decoding(tokenizer, ids, DecodeSpecial::kKeep);
  check_decoding(tokenizer, ids, DecodeSpecial::kSkip);
}

}  // namespace
}  // namespace tileweave::fuzz

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace tileweave;
  const std::string_view input = fuzz::text_of(data, size);
  const std::size_t nul = input.find('\0');
  fuzz::may_refuse([&] {
    const Tokenizer tokenizer = Tokenizer::parse(input.substr(0, nul), "tokenizer.json");
    fuzz::may_refuse([&] { fuzz::check(tokenizer, fuzz::kText); });
    if (nul == std::string_view::npos) return;
    fuzz::may_refuse([&] { fuzz::check(tokenizer, input.substr(nul + 1)); });
  });
  return 0;
}
