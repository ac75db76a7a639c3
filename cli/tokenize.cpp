#include "cli/tokenize.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <memory>
#include <vector>

#include "cli/command_line.h"
#include "cli/open_model.h"
#include "tileweave/core/error.h"
#include "tileweave/core/format.h"
#include "tileweave/models/checkpoint/model_directory.h"

namespace tileweave::cli {
namespace {

std::string contents_of(const std::string& path) {
  struct Close {
    void operator()(std::FILE* file) const {
      if (file != stdin) std::fclose(file);
    }
  };
  const bool is_input = path == "-";
  const auto refuse = [&] {
    throw Error("read " + (is_input ? "standard input" : in_quotes(path)),
                "a file that can be read", std::strerror(errno));
  };
  const std::unique_ptr<std::FILE, Close> file(is_input ? stdin : std::fopen(path.c_str(), "rb"));
  if (file == nullptr) refuse();
  std::string text;
  std::array<char, 1 << 16> part;
  while (const std::size_t count = std::fread(part.data(), 1, part.size(), file.get())) {
    text.append(part.data(), count);
  }
  if (std::ferror(file.get()) != 0) refuse();
  return text;
}

}  // namespace

int tokenize(const TokenizeOptions& options, std::ostream& out, std::ostream& err) {
  const Tokenizer tokenizer = open_tokenizer(resolve_model(options.model));
  std::vector<std::int32_t> ids;
  if (!options.ids.empty()) {
    ids = options.ids;
  } else {
    const std::string text = options.text_file ? contents_of(*options.text_file) : options.text;
    ids = tokenizer.encode(text, options.special);
  }
  const auto nameless =
      std::count_if(ids.begin(), ids.end(), [&](std::int32_t id) { return !tokenizer.token(id); });
  if (nameless != 0) {
    // Models have room for more ids than their tokenizers name, so these are no fault.
    err << fmt::format("tileweave tokenize: note: {} of {} ids name no token and give no text\n",
                       nameless, ids.size());
  }
  if (options.form == OutputForm::kJson) {
    Json tokens = Json::array();
    for (const std::int32_t id : ids) {
      const std::optional<std::string_view> token = tokenizer.token(id);
      tokens.push_back(token ? Json(*token) : Json(nullptr));
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
