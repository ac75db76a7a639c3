// Tokens and their ids. Internal to the tokenizer.
//
// Ids may have holes. Views of tokens live as long as the Vocabulary, which may be moved.
#pragma once

#include <cstdint>
#include <deque>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "tileweave/models/json/json_file.h"

namespace tileweave {

/// Larger ids are taken for a mistake: a table of all ids is kept.
inline constexpr std::int32_t kLargestTokenId = (1 << 24) - 1;

class Vocabulary {
 public:
  Vocabulary() = default;
  Vocabulary(Vocabulary&&) = default;
  Vocabulary& operator=(Vocabulary&&) = default;
  Vocabulary(const Vocabulary&) = delete;
  Vocabulary& operator=(const Vocabulary&) = delete;

  /// Reads an object of tokens and ids. Throws Error when two tokens have one id.
  static Vocabulary read(const JsonNode& node);

  /// The token and the id must be new.
  void add(std::string token, std::int32_t id);

  std::optional<std::int32_t> id_of(std::string_view token) const;
  std::optional<std::string_view> token(std::int32_t id) const;
  /// Largest id + 1.
  std::int32_t size() const { return static_cast<std::int32_t>(by_id_.size()); }

 private:
  std::deque<std::string> tokens_;  // a deque: its elements stay where they are
  std::unordered_map<std::string_view, std::int32_t> ids_;
  std::vector<const std::string*> by_id_;  // null: a hole
};

}  // namespace tileweave
