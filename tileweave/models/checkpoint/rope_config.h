// The RoPE part of config.json in both spellings: `rope_theta` beside `rope_scaling` (whose kind is
// `type` or `rope_type`), and `rope_parameters` with everything in it. As in Hugging Face, a
// `rope_scaling` that is there wins over `rope_parameters`, and a `rope_theta` inside wins over the
// one beside. Used by parse_config. Throws Error naming file and key.
#pragma once

#include <cstdint>

#include "tileweave/models/checkpoint/config.h"
#include "tileweave/models/json/json_file.h"

namespace tileweave {

RopeConfig read_rope_config(const JsonNode& root, std::int64_t max_position_embeddings);

}  // namespace tileweave
