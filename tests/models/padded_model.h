// The tiny models as they would be with heads of 64 elements, which is what attention on a GPU
// takes: the same function of the same tokens, so what transformers said about the tiny ones holds;
// for tests only.
//
// Elements that are added to heads are zeros; rotary pairs keep their frequencies; queries are
// scaled so that scores come out the same.
#pragma once

#include <memory>
#include <string>

#include "tests/models/tiny_models.h"

namespace tileweave {

/// On `device`, which the model then owns.
TinyModel open_padded_model(const std::string& name, std::unique_ptr<Device> device,
                            const DecoderOptions& options);

}  // namespace tileweave
