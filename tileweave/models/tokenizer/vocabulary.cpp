#include "tileweave/models/tokenizer/vocabulary.h"

#include <utility>

#include "tileweave/core/error.h"
#include "tileweave/core/format.h"

namespace tileweave {

Vocabulary Vocabulary::read(const JsonNode& node) {
  Vocabulary vocabulary;
  const auto& members = node.require_object().json().get_ref<const nlohmann::json::object_t&>();
  vocabulary.ids_.reserve(members.size());
  for (const auto& [token, value] : members) {
    const bool is_integer = value.is_number_unsigned();
    if (!is_integer || value.get<std::uint64_t>() > static_cast<std::uint64_t>(kLargestTokenId)) {
      throw Error("read " + node.file(),
                  node.path() + " to give " + in_quotes(token) + " an id from 0 to " +
                      std::to_string(kLargestTokenId),
                  describe(value));
    }
    const auto id = value.get<std::int32_t>();
    if (const auto other = vocabulary.token(id)) {
      throw Error("read " + node.file(), node.path() + " to give every token an id of its own",
                  std::to_string(id) + " for " + in_quotes(*other) + " and " + in_quotes(token));
    }
    vocabulary.add(token, id);
  }
  return vocabulary;
}

void Vocabulary::add(std::string token, std::int32_t id) {
  const std::string& kept = tokens_.emplace_back(std::move(token));
  ids_.emplace(kept, id);
  if (id >= size()) by_id_.resize(static_cast<std::size_t>(id) + 1, nullptr);
  by_id_[static_cast<std::size_t>(id)] = &kept;
}

std::optional<std::int32_t> Vocabulary::id_of(std::string_view token) const {
  const auto found = ids_.find(token);
  if (found == ids_.end()) return std::nullopt;
  return found->second;
}

std::optional<std::string_view> Vocabulary::token(std::int32_t id) const {
  if (id < 0 || id >= size() || by_id_[static_cast<std::size_t>(id)] == nullptr) {
    return std::nullopt;
  }
  return *by_id_[static_cast<std::size_t>(id)];
}

}  // namespace tileweave
