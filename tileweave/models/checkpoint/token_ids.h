// Token ids that config.json and generation_config.json spell alike.
#pragma once

#include <cstdint>
#include <limits>
#include <vector>

#include "tileweave/models/json/json_file.h"

namespace tileweave {

/// `eos_token_id`: one id, a list of them, or nothing.
inline std::vector<std::int64_t> read_eos_token_ids(const JsonNode& root) {
  constexpr std::int64_t kMaxId = std::numeric_limits<std::int32_t>::max();
  std::vector<std::int64_t> ids;
  const std::optional<JsonNode> eos = root.find("eos_token_id");
  if (!eos) return ids;
  if (!eos->is_array()) return {eos->integer(0, kMaxId)};
  for (std::size_t i = 0; i < eos->length(); ++i) {
    ids.push_back(eos->element(i).integer(0, kMaxId));
  }
  return ids;
}

inline std::optional<std::int64_t> read_bos_token_id(const JsonNode& root) {
  constexpr std::int64_t kMaxId = std::numeric_limits<std::int32_t>::max();
  const std::optional<JsonNode> bos = root.find("bos_token_id");
  return bos ? std::optional(bos->integer(0, kMaxId)) : std::nullopt;
}

}  // namespace tileweave
