// SamplingParams: what a user may ask for per sequence. SampleInputs: the same for a whole batch,
// as the constants of a `sample` node hold it.
//
//   SampleInputs inputs(num_sequences, max_history);
//   inputs.set(s, params, position, prompt_and_generated_ids);   // before each run
//   program.write(tensors.temperature, inputs.temperature); ...
//
// Host only. Throws Error with a sentence for values that mean nothing.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

namespace tileweave {

struct SamplingParams {
  float temperature = 1;         // 0: the most likely token
  std::int32_t top_k = 0;        // 0: off
  float top_p = 1;               // 1: off
  float min_p = 0;               // 0: off
  float repetition_penalty = 1;  // 1: off; above 1 discourages tokens of prompt and reply
  std::uint64_t seed = 0;

  friend bool operator==(const SamplingParams&, const SamplingParams&) = default;
};

/// Throws Error naming the parameter that is out of range.
void check_sampling_params(const SamplingParams& params);

struct SampleInputs {
  /// Every sequence starts as greedy with an empty history.
  SampleInputs(std::int64_t num_sequences, std::int64_t max_history);

  /// `position`: of the token to be drawn. `history`: ids seen so far, prompt included; used by the
  /// repetition penalty only. Throws Error for bad parameters or a history that does not fit.
  void set(std::int64_t sequence, const SamplingParams& params, std::int64_t position,
           std::span<const std::int32_t> history);

  std::int64_t num_sequences;
  std::int64_t max_history;
  std::vector<float> temperature, top_p, min_p, repetition_penalty;  // (S)
  std::vector<std::int32_t> top_k;                                   // (S)
  std::vector<std::int32_t> seed;                                    // (S, 2)
  std::vector<std::int32_t> position;                                // (S)
  std::vector<std::int32_t> history;                                 // (S, max_history)
  std::vector<std::int32_t> history_length;                          // (S)
};

}  // namespace tileweave
