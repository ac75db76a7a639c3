#include "tileweave/models/generator.h"

#include <algorithm>
#include <chrono>
#include <span>
#include <string>

#include "tileweave/core/error.h"

namespace tileweave {
namespace {

constexpr const char* kGenerate = "generate";

/// One request on its way.
struct Reply {
  const GenerateRequest* request = nullptr;
  KvCache::SequenceId sequence = -1;
  std::vector<std::int32_t> ids;  // prompt and reply
  std::int64_t computed = 0;      // how many of them the cache holds
  GenerateResult result;
  bool done = false;

  std::int64_t pending() const { return static_cast<std::int64_t>(ids.size()) - computed; }
};

void check(const Decoder& decoder, const GenerateRequest& request) {
  require(!request.ids.empty(), kGenerate, "a prompt of at least one token", "an empty one");
  const std::int64_t limit = decoder.options().max_tokens;
  const auto length = static_cast<std::int64_t>(request.ids.size());
  if (length >= limit) {
    throw Error(kGenerate,
                "a prompt of at most " + std::to_string(limit - 1) + " tokens (the limit of " +
                    std::to_string(limit) + " less one for the reply)",
                std::to_string(length));
  }
  require(request.max_new_tokens >= 0, kGenerate, "max_new_tokens of at least 0",
          std::to_string(request.max_new_tokens));
  require_in_vocabulary(request.ids, decoder.config());
  check_sampling_params(request.sampling);
}

/// Sequences that this call added go back to the cache however it ends.
class OwnSequences {
 public:
  explicit OwnSequences(Decoder& decoder) : decoder_(decoder) {}
  OwnSequences(const OwnSequences&) = delete;
  OwnSequences& operator=(const OwnSequences&) = delete;
  ~OwnSequences() {
    for (const KvCache::SequenceId sequence : added_) decoder_.remove_sequence(sequence);
  }
  KvCache::SequenceId add() {
    added_.push_back(decoder_.add_sequence());
    return added_.back();
  }

 private:
  Decoder& decoder_;
  std::vector<KvCache::SequenceId> added_;
};

/// The next step: a token of every sequence past its prompt, then as much prompt as fits.
StepRequest next_step(const std::vector<Reply>& replies, std::int64_t max_rows,
                      std::vector<std::size_t>& owners) {
  StepRequest step;
  owners.clear();
  std::int64_t room = max_rows;
  bool samples = false;
  bool finishes_a_prompt = false;
  const auto take = [&](std::size_t i, std::int64_t count) {
    const Reply& reply = replies[i];
    step.parts.push_back(
        {reply.sequence, std::span(reply.ids).subspan(static_cast<std::size_t>(reply.computed),
                                                      static_cast<std::size_t>(count))});
    step.draws.push_back({reply.request->sampling, reply.ids});
    owners.push_back(i);
    room -= count;
    samples = samples || reply.request->sampling.temperature > 0 ||
              reply.request->sampling.repetition_penalty != 1;
    finishes_a_prompt = finishes_a_prompt || count == reply.pending();
  };
  for (std::size_t i = 0; i < replies.size(); ++i) {
    if (!replies[i].done && replies[i].pending() == 1 && room > 0) take(i, 1);
  }
  for (std::size_t i = 0; i < replies.size(); ++i) {
    if (replies[i].done || replies[i].pending() == 1 || room == 0) continue;
    take(i, std::min(room, replies[i].pending()));
  }
  step.head = !finishes_a_prompt ? Head::kNone : samples ? Head::kSample : Head::kArgmax;
  return step;
}

}  // namespace

Generated generate(Decoder& decoder, const std::vector<GenerateRequest>& requests,
                   const OnToken& on_token, const BeforeStep& before_step) {
  using Clock = std::chrono::steady_clock;
  const auto start = Clock::now();
  const auto seconds = [&] { return std::chrono::duration<double>(Clock::now() - start).count(); };
  OwnSequences own(decoder);
  std::vector<Reply> replies(requests.size());
  Generated generated;
  for (const GenerateRequest& request : requests) check(decoder, request);
  for (std::size_t i = 0; i < requests.size(); ++i) {
    Reply& reply = replies[i];
    reply.request = &requests[i];
    reply.sequence = requests[i].sequence ? *requests[i].sequence : own.add();
    reply.ids = requests[i].ids;
    reply.computed = decoder.length(reply.sequence);
    require(reply.pending() >= 1, kGenerate, "at least one token that the sequence does not hold");
    reply.done = requests[i].max_new_tokens == 0;
    if (!reply.done) generated.times.prompt_tokens += reply.pending();
  }

  const std::int64_t limit = decoder.options().max_tokens;
  std::vector<std::size_t> owners;
  bool stopped = false;
  const auto alive = [](const Reply& reply) { return !reply.done; };
  while (!stopped && std::any_of(replies.begin(), replies.end(), alive)) {
    if (before_step != nullptr && before_step() == Continue::kStop) break;
    const StepRequest step = next_step(replies, decoder.options().max_rows, owners);
    const StepResult result = decoder.step(step);
    ++generated.times.steps;
    const bool first = generated.times.new_tokens == 0;
    for (std::size_t p = 0; p < owners.size(); ++p) {
      Reply& reply = replies[owners[p]];
      reply.computed += static_cast<std::int64_t>(step.parts[p].ids.size());
      if (reply.pending() > 0) continue;  // its prompt goes on
      const std::int32_t id = result.next_ids[p];
      reply.ids.push_back(id);
      reply.result.ids.push_back(id);
      ++generated.times.new_tokens;
      if (!first) ++generated.times.decode_tokens;
      const std::vector<std::int32_t>& stops = reply.request->stop_ids;
      const auto count = static_cast<std::int64_t>(reply.result.ids.size());
      reply.done = true;
      if (std::find(stops.begin(), stops.end(), id) != stops.end()) {
        reply.result.finish = Finish::kStopToken;
      } else if (count >= reply.request->max_new_tokens) {
        reply.result.finish = Finish::kMaxNewTokens;
      } else if (static_cast<std::int64_t>(reply.ids.size()) >= limit) {
        reply.result.finish = Finish::kContextFull;
      } else {
        reply.done = false;
      }
      if (on_token != nullptr && on_token(owners[p], id) == Continue::kStop) stopped = true;
    }
    if (first && generated.times.new_tokens > 0) generated.times.first_token_seconds = seconds();
  }
  generated.times.decode_seconds =
      generated.times.new_tokens > 0 ? seconds() - generated.times.first_token_seconds : 0;
  for (Reply& reply : replies) {
    if (!reply.done) reply.result.finish = Finish::kStopped;
    // What a stop has left of a prompt has not been computed.
    if (reply.result.ids.empty()) generated.times.prompt_tokens -= reply.done ? 0 : reply.pending();
    generated.results.push_back(std::move(reply.result));
  }
  return generated;
}

}  // namespace tileweave
