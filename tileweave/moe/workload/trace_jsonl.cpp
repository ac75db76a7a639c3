#include "tileweave/moe/workload/trace_jsonl.h"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <vector>

#include "tileweave/core/error.h"
#include "tileweave/core/file_map.h"
#include "tileweave/core/format.h"

namespace tileweave {
namespace {

using Json = nlohmann::json;

constexpr std::int64_t kMostRanks = 1 << 16, kMostExperts = 1 << 20, kMostLayers = 1 << 20;

class TraceReader {
 public:
  TraceReader(const std::string& name, const TraceOptions& options)
      : name_(name), options_(options), num_ranks_(options.num_ranks) {}

  void line(std::size_t number, std::string_view text) {
    number_ = number;
    const Json json = Json::parse(text, nullptr, /*allow_exceptions=*/false);
    if (!json.is_object()) refuse("be a JSON object", in_quotes(text));
    const auto layer = static_cast<std::int32_t>(integer(json, "layer", kMostLayers - 1));
    const std::int64_t most_rank = options_.num_ranks > 0 ? options_.num_ranks : kMostRanks;
    const auto rank = static_cast<std::size_t>(integer(json, "rank", most_rank - 1));
    const auto tokens = json.find("topk_ids");
    if (tokens == json.end() || !tokens->is_array()) {
      refuse("have \"topk_ids\", an array of arrays of expert ids",
             tokens == json.end() ? "none" : tokens->type_name());
    }
    auto& ranks = layers_[layer];
    if (ranks.size() <= rank) ranks.resize(rank + 1);
    num_ranks_ = std::max(num_ranks_, static_cast<std::int32_t>(rank) + 1);
    for (const Json& token : *tokens) read_token(token, ranks[rank]);
  }

  std::map<std::int32_t, Route> finish() {
    if (top_k_ == 0) throw Error("read " + name_, "at least one token", "none");
    std::map<std::int32_t, Route> routes;
    const std::int32_t experts = options_.num_experts > 0 ? options_.num_experts : num_experts_;
    for (auto& [layer, ids] : layers_) {
      ids.resize(static_cast<std::size_t>(num_ranks_));
      routes[layer] = {std::max(experts, top_k_), top_k_, std::move(ids)};
    }
    return routes;
  }

 private:
  [[noreturn]] void refuse(const std::string& expected, const std::string& got) const {
    throw Error("read " + name_, fmt::format("line {} to {}", number_, expected), got);
  }

  std::int64_t integer(const Json& json, const char* key, std::int64_t most) const {
    const auto found = json.find(key);
    const bool fits = found != json.end() && found->is_number_integer() &&
                      !(found->is_number_unsigned() && found->get<std::uint64_t>() > kMostExperts);
    const std::int64_t value = fits ? found->get<std::int64_t>() : -1;
    if (value >= 0 && value <= most) return value;
    refuse(fmt::format("have \"{}\", an integer of 0 to {}", key, most),
           found == json.end() ? "none" : in_quotes(found->dump(-1, ' ', true, kReplace)));
  }

  void read_token(const Json& token, std::vector<std::int32_t>& ids) {
    if (!token.is_array() || token.empty()) {
      refuse("have an array of expert ids for each token",
             in_quotes(token.dump(-1, ' ', true, kReplace)));
    }
    const auto count = static_cast<std::int32_t>(std::min<std::size_t>(token.size(), kMostExperts));
    if (top_k_ == 0) top_k_ = count;
    if (count != top_k_) {
      refuse(fmt::format("have {} expert ids for each token, as before", top_k_),
             std::to_string(token.size()));
    }
    if (options_.num_experts > 0 && top_k_ > options_.num_experts) {
      refuse(fmt::format("have at most {} expert ids for a token, the number of experts",
                         options_.num_experts),
             std::to_string(top_k_));
    }
    const std::int64_t bound = options_.num_experts > 0 ? options_.num_experts : kMostExperts;
    const std::size_t first = ids.size();
    for (const Json& id : token) {
      const bool fits = id.is_number_integer() &&
                        !(id.is_number_unsigned() && id.get<std::uint64_t>() > kMostExperts);
      const std::int64_t value = fits ? id.get<std::int64_t>() : -2;
      if (value < -1 || value >= bound) {
        refuse(fmt::format("have expert ids of -1 to {}", bound - 1),
               in_quotes(id.dump(-1, ' ', true, kReplace)));
      }
      const auto expert = static_cast<std::int32_t>(value);
      const auto token_ids = ids.begin() + static_cast<std::ptrdiff_t>(first);
      if (expert >= 0 && std::find(token_ids, ids.end(), expert) != ids.end()) {
        refuse("have different experts for each token", fmt::format("expert {} twice", expert));
      }
      ids.push_back(expert);
      num_experts_ = std::max(num_experts_, expert + 1);
    }
  }

  static constexpr Json::error_handler_t kReplace = Json::error_handler_t::replace;

  const std::string name_;
  const TraceOptions options_;
  std::size_t number_ = 0;
  std::int32_t top_k_ = 0, num_experts_ = 0, num_ranks_ = 0;
  std::map<std::int32_t, std::vector<std::vector<std::int32_t>>> layers_;
};

}  // namespace

std::map<std::int32_t, Route> parse_trace(std::string_view text, const std::string& name,
                                          const TraceOptions& options) {
  TraceReader reader(name, options);
  for (std::size_t number = 1; !text.empty(); ++number) {
    const std::size_t end = text.find('\n');
    const std::string_view line = text.substr(0, end);
    text.remove_prefix(end == text.npos ? text.size() : end + 1);
    if (line.find_first_not_of(" \t\r") == line.npos) continue;
    reader.line(number, line);
  }
  return reader.finish();
}

std::map<std::int32_t, Route> read_trace(const std::string& path, const TraceOptions& options) {
  const FileMap file = FileMap::open(path);
  return parse_trace(file.text(), path, options);
}

std::string to_trace_line(std::int32_t layer, std::int32_t rank, std::int32_t top_k,
                          std::span<const std::int32_t> ids) {
  require(top_k >= 1 && ids.size() % static_cast<std::size_t>(top_k) == 0, "write a trace line",
          "whole tokens", std::to_string(ids.size()) + " ids");
  std::string line = fmt::format("{{\"layer\": {}, \"rank\": {}, \"topk_ids\": [", layer, rank);
  for (std::size_t i = 0; i < ids.size(); ++i) {
    const bool starts = i % static_cast<std::size_t>(top_k) == 0;
    if (i > 0) line += starts ? "], [" : ", ";
    if (i == 0) line += "[";
    line += std::to_string(ids[i]);
  }
  return line + (ids.empty() ? "]}\n" : "]]}\n");
}

std::string to_trace(std::int32_t layer, const Route& route) {
  std::string text;
  for (std::int32_t rank = 0; rank < route.num_ranks(); ++rank) {
    text += to_trace_line(layer, rank, route.top_k, route.ids[static_cast<std::size_t>(rank)]);
  }
  return text;
}

}  // namespace tileweave
