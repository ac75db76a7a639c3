#include <gtest/gtest.h>

#include <fstream>

#include "tests/models/tokenizer/golden_data.h"
#include "tileweave/core/format.h"

namespace tileweave {

std::string data_path(const std::string& name) {
  return std::string(TW_TOKENIZER_DATA) + "/" + name;
}

nlohmann::json read_data(const std::string& name) {
  std::ifstream file(data_path(name));
  return nlohmann::json::parse(file);
}

const std::vector<std::string>& golden_strings() {
  static const auto strings = read_data("strings.json")["strings"].get<std::vector<std::string>>();
  return strings;
}

std::optional<GoldenAnswer> golden_answer(const nlohmann::json& answer, const std::string& text) {
  if (answer.is_null()) return std::nullopt;
  GoldenAnswer golden;
  golden.ids = answer[0].get<std::vector<std::int32_t>>();
  golden.bare = answer[1].is_null() ? golden.ids : answer[1].get<std::vector<std::int32_t>>();
  golden.kept = answer[2].is_null() ? text : answer[2].get<std::string>();
  golden.skipped = answer[3].is_null() ? text : answer[3].get<std::string>();
  return golden;
}

std::string decode_streamed(const Tokenizer& tokenizer, std::span<const std::int32_t> ids,
                            DecodeSpecial special) {
  TextStream stream(tokenizer, special);
  std::string text;
  const auto take = [&text](const std::string& part) {
    EXPECT_EQ(valid_utf8_prefix(part), part.size()) << "part of a character in " << in_quotes(part);
    text += part;
  };
  for (const std::int32_t id : ids) take(stream.push(id));
  take(stream.finish());
  return text;
}

}  // namespace tileweave
