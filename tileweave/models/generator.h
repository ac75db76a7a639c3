// Generator: continues token sequences with a Decoder, several at a time.
//
// Every step runs one token of each sequence that is past its prompt, and fills up with prompt
// tokens of the others, in the order of the requests. Greedy results do not depend on the batch;
// sampled ones on the request's seed alone. One host thread at a time.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <vector>

#include "tileweave/models/decoder.h"

namespace tileweave {

struct GenerateRequest {
  std::vector<std::int32_t> ids;  // the whole sequence so far
  /// A sequence of the decoder that already holds the first tokens of `ids` (not all of them), and
  /// goes on after the reply; nothing: one of its own, removed at the end.
  std::optional<KvCache::SequenceId> sequence = std::nullopt;
  std::int64_t max_new_tokens = 128;
  SamplingParams sampling = {.temperature = 0};
  std::vector<std::int32_t> stop_ids = {};  // end the reply and are its last token
};

enum class Finish : std::uint8_t { kStopToken, kMaxNewTokens, kContextFull, kStopped };

constexpr const char* name_of(Finish finish) {
  switch (finish) {
    case Finish::kStopToken:
      return "stop_token";
    case Finish::kMaxNewTokens:
      return "max_new_tokens";
    case Finish::kContextFull:
      return "context_full";
    case Finish::kStopped:
      return "stopped";
  }
  return "?";
}

struct GenerateResult {
  std::vector<std::int32_t> ids;  // new tokens only
  Finish finish = Finish::kMaxNewTokens;
};

struct GenerateTimes {
  std::int64_t prompt_tokens = 0;  // that were computed
  std::int64_t new_tokens = 0;
  std::int64_t steps = 0;
  double first_token_seconds = 0;  // from the call to the first new token of any sequence
  double decode_seconds = 0;       // from there to the end
  std::int64_t decode_tokens = 0;  // new tokens after that first step
};

struct Generated {
  std::vector<GenerateResult> results;  // in the order of the requests
  GenerateTimes times;
};

/// Called after every new token; kStop ends all replies where they stand.
enum class Continue : std::uint8_t { kGoOn, kStop };
using OnToken = std::function<Continue(std::size_t request, std::int32_t id)>;

/// Asked before every step, of which a long prompt takes many; kStop as above.
using BeforeStep = std::function<Continue()>;

/// Throws Error, before anything is computed, for a prompt that is empty, leaves no room for a
/// token or has ids that the vocabulary does not have.
Generated generate(Decoder& decoder, const std::vector<GenerateRequest>& requests,
                   const OnToken& on_token = nullptr, const BeforeStep& before_step = nullptr);

}  // namespace tileweave
