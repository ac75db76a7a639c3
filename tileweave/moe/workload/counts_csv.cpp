#include "tileweave/moe/workload/counts_csv.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <limits>
#include <map>
#include <utility>

#include "tileweave/core/error.h"
#include "tileweave/core/file_map.h"
#include "tileweave/core/format.h"

namespace tileweave {
namespace {

constexpr std::string_view kHeader = "rank,expert,count";
constexpr std::int32_t kMostRanks = 1 << 16, kMostExperts = 1 << 20;

[[noreturn]] void refuse(const std::string& name, std::size_t line, const std::string& expected,
                         const std::string& got) {
  throw Error("read " + name, fmt::format("line {} to have {}", line, expected), got);
}

std::string_view trimmed(std::string_view text) {
  const auto is_space = [](char c) { return c == ' ' || c == '\t' || c == '\r'; };
  while (!text.empty() && is_space(text.front())) text.remove_prefix(1);
  while (!text.empty() && is_space(text.back())) text.remove_suffix(1);
  return text;
}

std::array<std::int32_t, 3> parse_line(const std::string& name, std::size_t number,
                                       std::string_view line) {
  std::array<std::int32_t, 3> values{};
  const std::array<const char*, 3> fields = {"a rank", "an expert", "a count"};
  const std::array<std::int32_t, 3> most = {kMostRanks - 1, kMostExperts - 1,
                                            std::numeric_limits<std::int32_t>::max()};
  std::string_view rest = line;
  for (std::size_t i = 0; i < 3; ++i) {
    const std::size_t comma = rest.find(',');
    if ((comma == rest.npos) != (i == 2)) refuse(name, number, "three fields", in_quotes(line));
    const std::string_view field = trimmed(rest.substr(0, comma));
    if (comma != rest.npos) rest.remove_prefix(comma + 1);
    const auto [end, error] = std::from_chars(field.data(), field.data() + field.size(), values[i]);
    const bool is_number = error == std::errc{} && end == field.data() + field.size();
    if (!is_number || values[i] < 0 || values[i] > most[i]) {
      refuse(name, number, fmt::format("{} of 0 to {}", fields[i], most[i]), in_quotes(field));
    }
  }
  return values;
}

}  // namespace

CountMatrix parse_counts_csv(std::string_view text, const std::string& name,
                             const CountsCsvOptions& options) {
  std::map<std::pair<std::int32_t, std::int32_t>, std::int32_t> counts;
  std::int32_t num_ranks = 0, num_experts = 0;
  bool has_header = false;
  for (std::size_t number = 1; !text.empty(); ++number) {
    const std::size_t end = text.find('\n');
    const std::string_view line = trimmed(text.substr(0, end));
    text.remove_prefix(end == text.npos ? text.size() : end + 1);
    if (line.empty()) continue;
    if (!has_header) {
      if (line != kHeader) {
        refuse(name, number, "the header " + std::string(kHeader), in_quotes(line));
      }
      has_header = true;
      continue;
    }
    const auto [rank, expert, count] = parse_line(name, number, line);
    if (options.num_ranks > 0 && rank >= options.num_ranks) {
      refuse(name, number, fmt::format("a rank below {}", options.num_ranks), std::to_string(rank));
    }
    if (options.num_experts > 0 && expert >= options.num_experts) {
      refuse(name, number, fmt::format("an expert below {}", options.num_experts),
             std::to_string(expert));
    }
    if (!counts.emplace(std::pair{rank, expert}, count).second) {
      refuse(name, number, "a rank and expert that no line before has",
             fmt::format("rank {}, expert {} again", rank, expert));
    }
    num_ranks = std::max(num_ranks, rank + 1);
    num_experts = std::max(num_experts, expert + 1);
  }
  if (!has_header)
    throw Error("read " + name, "the header " + std::string(kHeader), "an empty file");
  if (counts.empty()) throw Error("read " + name, "at least one line of counts", "none");
  CountMatrix matrix = empty_counts(options.num_ranks > 0 ? options.num_ranks : num_ranks,
                                    options.num_experts > 0 ? options.num_experts : num_experts);
  for (const auto& [at, count] : counts) matrix.at(at.first, at.second) = count;
  return matrix;
}

CountMatrix read_counts_csv(const std::string& path, const CountsCsvOptions& options) {
  const FileMap file = FileMap::open(path);
  return parse_counts_csv(file.text(), path, options);
}

std::string to_counts_csv(const CountMatrix& counts) {
  std::string text = std::string(kHeader) + "\n";
  for (std::int32_t rank = 0; rank < counts.num_ranks; ++rank) {
    for (std::int32_t e = 0; e < counts.num_experts; ++e) {
      // The last pair is always there: it carries the size of the matrix.
      const bool is_last = rank + 1 == counts.num_ranks && e + 1 == counts.num_experts;
      const std::int32_t count = counts.at(rank, e);
      if (count > 0 || is_last) text += fmt::format("{},{},{}\n", rank, e, count);
    }
  }
  return text;
}

}  // namespace tileweave
