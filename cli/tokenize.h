// `tileweave tokenize`: the token ids of a text, or the text of ids; needs tokenizer.json only.
#pragma once

#include <ostream>
#include <string>

#include "cli/output_form.h"
#include "tileweave/models/tokenizer/tokenizer.h"

namespace tileweave::cli {

struct TokenizeOptions {
  std::string model;
  std::string text;       // or
  std::string text_file;  // bytes verbatim; "-": standard input; or
  std::string ids;        // "1,2,3": decoded
  SpecialTokens special = SpecialTokens::kAdd;
  OutputForm form = OutputForm::kTable;
};

int tokenize(const TokenizeOptions& options, std::ostream& out);

}  // namespace tileweave::cli
