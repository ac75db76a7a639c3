#include "cli/tokenize.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <cerrno>
#include <cstring>
#include <fstream>
#include <iostream>
#include <iterator>
#include <vector>

#include "cli/command_line.h"
#include "cli/open_model.h"
#include "tileweave/core/error.h"
#include "tileweave/models/checkpoint/model_directory.h"

namespace tileweave::cli {
namespace {

std::string contents_of(const std::string& path) {
  const auto all = [](std::istream& in) {
    return std::string(std::istreambuf_iterator<char>(in), std::istreambuf_iterator<char>());
  };
  if (path == "-") return all(std::cin);
  std::ifstream file(path, std::ios::binary);
  std::string text;
  if (file) text = all(file);
  if (!file) throw Error("read " + path, "a file that can be read", std::strerror(errno));
  return text;
}

}  // namespace

int tokenize(const TokenizeOptions& options, std::ostream& out) {
  const Tokenizer tokenizer = open_tokenizer(resolve_model(options.model));
  std::vector<std::int32_t> ids;
  if (!options.ids.empty()) {
    ids = parse_ids(options.ids);
  } else {
    const std::string text =
        options.text_file.empty() ? options.text : contents_of(options.text_file);
    ids = tokenizer.encode(text, options.special);
  }
  if (options.form == OutputForm::kJson) {
    std::vector<std::string> tokens;
    tokens.reserve(ids.size());
    for (const std::int32_t id : ids) {
      tokens.emplace_back(tokenizer.token(id).value_or(std::string_view()));
    }
    out << to_text({{"verb", "tokenize"},
                    {"ids", ids},
                    {"tokens", tokens},
                    {"text", tokenizer.decode(ids, DecodeSpecial::kKeep)}});
  } else if (!options.ids.empty()) {
    out << tokenizer.decode(ids, DecodeSpecial::kKeep) << "\n";
  } else {
    out << fmt::format("{}\n", fmt::join(ids, ","));
  }
  return kSuccess;
}

}  // namespace tileweave::cli
