// `tileweave tokenize`: the token ids of a text, or the text of ids; needs tokenizer.json only.
#pragma once

#include <cstdint>
#include <optional>
#include <ostream>
#include <string>
#include <vector>

#include "cli/output_form.h"
#include "tileweave/models/tokenizer/tokenizer.h"

namespace tileweave::cli {

struct TokenizeOptions {
  std::string model;
  std::string text;                      // or
  std::optional<std::string> text_file;  // bytes verbatim; "-": standard input; or
  std::vector<std::int32_t> ids;         // decoded
  SpecialTokens special = SpecialTokens::kAdd;
  OutputForm form = OutputForm::kTable;
};

int tokenize(const TokenizeOptions& options, std::ostream& out, std::ostream& err);

}  // namespace tileweave::cli
