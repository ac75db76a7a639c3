#include "tileweave/kernels/sampling/sampling_params.h"

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdio>
#include <limits>
#include <string>

#include "tileweave/core/error.h"

namespace tileweave {

void check_sampling_params(const SamplingParams& params) {
  const auto need = [](bool holds, const char* expected, const std::string& got) {
    require(holds, "check sampling parameters", expected, got);
  };
  // Within these bounds a logit keeps to the range of float through penalty and temperature.
  constexpr float kSmallest = 1e-15F, kLargest = 1e15F;
  const auto text = [](float value) {
    std::array<char, 32> digits{};
    std::snprintf(digits.data(), digits.size(), "%g", static_cast<double>(value));
    return std::string(digits.data());
  };
  need(params.temperature == 0 ||
           (params.temperature >= kSmallest && params.temperature <= kLargest),
       "temperature must be 0 or between 1e-15 and 1e15", text(params.temperature));
  need(params.top_k >= 0, "top_k must not be negative", std::to_string(params.top_k));
  need(params.top_p > 0 && params.top_p <= 1, "top_p must be above 0 and at most 1",
       text(params.top_p));
  need(params.min_p >= 0 && params.min_p <= 1, "min_p must be between 0 and 1", text(params.min_p));
  need(params.repetition_penalty >= kSmallest && params.repetition_penalty <= kLargest,
       "repetition_penalty must be between 1e-15 and 1e15", text(params.repetition_penalty));
}

SampleInputs::SampleInputs(std::int64_t sequences, std::int64_t most)
    : num_sequences(sequences), max_history(most) {
  require(sequences >= 1, "make sampling inputs", "at least one sequence",
          std::to_string(sequences));
  require(most >= 1, "make sampling inputs", "room for at least one id of history",
          std::to_string(most));
  const auto count = static_cast<std::size_t>(sequences);
  temperature.assign(count, 0);
  top_p.assign(count, 1);
  min_p.assign(count, 0);
  repetition_penalty.assign(count, 1);
  top_k.assign(count, 0);
  seed.assign(2 * count, 0);
  position.assign(count, 0);
  history.assign(count * static_cast<std::size_t>(most), -1);
  history_length.assign(count, 0);
}

void SampleInputs::set(std::int64_t sequence, const SamplingParams& params, std::int64_t at,
                       std::span<const std::int32_t> ids) {
  check_sampling_params(params);
  const std::string operation = "set the sampling inputs of sequence " + std::to_string(sequence);
  require(sequence >= 0 && sequence < num_sequences, operation.c_str(), "a sequence of the batch",
          std::to_string(num_sequences) + " sequences");
  require(at >= 0 && at <= std::numeric_limits<std::int32_t>::max(), operation.c_str(),
          "a position between 0 and 2^31 - 1", std::to_string(at));
  require(static_cast<std::int64_t>(ids.size()) <= max_history, operation.c_str(),
          "a history that fits",
          std::to_string(ids.size()) + " ids for room of " + std::to_string(max_history));
  const auto s = static_cast<std::size_t>(sequence);
  temperature[s] = params.temperature;
  top_p[s] = params.top_p;
  min_p[s] = params.min_p;
  repetition_penalty[s] = params.repetition_penalty;
  top_k[s] = params.top_k;
  seed[2 * s] = static_cast<std::int32_t>(static_cast<std::uint32_t>(params.seed));
  seed[2 * s + 1] = static_cast<std::int32_t>(static_cast<std::uint32_t>(params.seed >> 32));
  position[s] = static_cast<std::int32_t>(at);
  std::copy(ids.begin(), ids.end(),
            history.begin() + static_cast<std::ptrdiff_t>(sequence * max_history));
  history_length[s] = static_cast<std::int32_t>(ids.size());
}

}  // namespace tileweave
