// `tileweave info`: what a model is and what it will take, before it is loaded.
#pragma once

#include <cstdint>
#include <ostream>
#include <string>

#include "cli/output_form.h"

namespace tileweave::cli {

struct InfoOptions {
  std::string model;
  std::int64_t context = 4096;  // tokens that the estimate of the KV cache is made for
  OutputForm form = OutputForm::kTable;
};

int info(const InfoOptions& options, std::ostream& out);

}  // namespace tileweave::cli
