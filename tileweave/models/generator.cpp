#include "tileweave/models/generator.h"

#include <algorithm>
#include <chrono>
#include <span>
#include <string>

#include "tileweave/core/error.h"
#include "tileweave/models/decode_loop.h"

namespace tileweave {
namespace {

constexpr const char* kGenerate = "generate";
constexpr std::int64_t kLoopSteps = 256;  // pages of so many are claimed at a time
constexpr std::int64_t kStepsAhead = 2;   // that the device may be ahead of the host

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

bool is_greedy(const SamplingParams& sampling) {
  return sampling.temperature == 0 && sampling.repetition_penalty == 1;
}

/// Everything that a call of generate() keeps.
class Generation {
 public:
  Generation(Decoder& decoder, const std::vector<GenerateRequest>& requests,
             const OnToken& on_token, const BeforeStep& before_step)
      : decoder_(decoder), on_token_(on_token), before_step_(before_step), own_(decoder) {
    for (const GenerateRequest& request : requests) check(decoder, request);
    replies_.resize(requests.size());
    for (std::size_t i = 0; i < requests.size(); ++i) {
      Reply& reply = replies_[i];
      reply.request = &requests[i];
      reply.sequence = requests[i].sequence ? *requests[i].sequence : own_.add();
      reply.ids = requests[i].ids;
      reply.computed = decoder.length(reply.sequence);
      require(reply.pending() >= 1, kGenerate,
              "at least one token that the sequence does not hold");
      reply.done = requests[i].max_new_tokens == 0;
      if (!reply.done) times_.prompt_tokens += reply.pending();
    }
  }

  Generated run() {
    const auto alive = [](const Reply& reply) { return !reply.done; };
    while (!stopped_ && std::any_of(replies_.begin(), replies_.end(), alive)) {
      const std::int64_t steps = steps_in_loop();
      if (steps > 0 ? !run_loop(steps) : !run_step()) break;
    }
    times_.decode_seconds = times_.new_tokens > 0 ? seconds() - times_.first_token_seconds : 0;
    Generated generated{.results = {}, .times = times_};
    for (Reply& reply : replies_) {
      if (!reply.done) reply.result.finish = Finish::kStopped;
      // What a stop has left of a prompt has not been computed.
      if (reply.result.ids.empty()) {
        generated.times.prompt_tokens -= reply.done ? 0 : reply.pending();
      }
      generated.results.push_back(std::move(reply.result));
    }
    return generated;
  }

 private:
  using Clock = std::chrono::steady_clock;

  double seconds() const { return std::chrono::duration<double>(Clock::now() - start_).count(); }
  bool may_go_on() const { return before_step_ == nullptr || before_step_() == Continue::kGoOn; }

  /// False: the caller wants to stop.
  bool run_step() {
    if (!may_go_on()) return false;
    const StepRequest step = next_step(replies_, decoder_.options().max_rows, owners_);
    const StepResult result = decoder_.step(step);
    ++times_.steps;
    const bool first = times_.new_tokens == 0;
    for (std::size_t p = 0; p < owners_.size(); ++p) {
      Reply& reply = replies_[owners_[p]];
      reply.computed += static_cast<std::int64_t>(step.parts[p].ids.size());
      if (reply.pending() == 0) accept(owners_[p], result.next_ids[p], first);  // else it goes on
    }
    if (first && times_.new_tokens > 0) times_.first_token_seconds = seconds();
    return true;
  }

  /// How many steps a DecodeLoop may make for all replies that are not done; 0: none.
  std::int64_t steps_in_loop() const {
    if (!decoder_.uses_loops()) return 0;
    std::int64_t steps = kLoopSteps;
    std::int64_t count = 0;
    for (const Reply& reply : replies_) {
      if (reply.done) continue;
      if (reply.pending() != 1 || !is_greedy(reply.request->sampling)) return 0;
      ++count;
      steps = std::min(
          {steps,
           reply.request->max_new_tokens - static_cast<std::int64_t>(reply.result.ids.size()),
           decoder_.options().max_tokens - reply.computed});
    }
    const std::int64_t page = decoder_.options().page_size;
    const std::int64_t room = decoder_.cache().free_tokens() / count / page * page;
    return count > decoder_.options().max_rows || room < steps ? 0 : steps;
  }

  /// False: the caller wants to stop.
  bool run_loop(std::int64_t steps) {
    std::vector<KvCache::SequenceId> sequences;
    std::vector<std::int32_t> ids;
    owners_.clear();
    for (std::size_t i = 0; i < replies_.size(); ++i) {
      if (replies_[i].done) continue;
      owners_.push_back(i);
      sequences.push_back(replies_[i].sequence);
      ids.push_back(replies_[i].ids.back());
    }
    DecodeLoop& loop = decoder_.decode_loop(static_cast<std::int64_t>(owners_.size()));
    loop.start(sequences, ids, steps);
    std::int64_t made = 0;
    try {
      const bool goes_on = follow(loop, steps, made);
      loop.finish(made);  // forgets what was computed ahead
      return goes_on;
    } catch (...) {
      loop.finish(made);
      throw;
    }
  }

  /// Counts in `made` the steps whose tokens were taken.
  bool follow(DecodeLoop& loop, std::int64_t steps, std::int64_t& made) {
    loop.enqueue(std::min(steps, kStepsAhead));
    bool someone_done = false;
    while (made < steps && !someone_done && !stopped_) {
      if (!may_go_on()) return false;
      if (loop.steps_enqueued() < steps) loop.enqueue(1);
      const std::vector<std::int32_t> tokens = loop.next();
      ++made;
      ++times_.steps;
      const bool first = times_.new_tokens == 0;
      for (std::size_t p = 0; p < owners_.size(); ++p) {
        ++replies_[owners_[p]].computed;
        accept(owners_[p], tokens[p], first);
        someone_done = someone_done || replies_[owners_[p]].done;
      }
      if (first) times_.first_token_seconds = seconds();
    }
    return true;
  }

  void accept(std::size_t index, std::int32_t id, bool first) {
    Reply& reply = replies_[index];
    reply.ids.push_back(id);
    reply.result.ids.push_back(id);
    ++times_.new_tokens;
    if (!first) ++times_.decode_tokens;
    const std::vector<std::int32_t>& stops = reply.request->stop_ids;
    const auto count = static_cast<std::int64_t>(reply.result.ids.size());
    reply.done = true;
    if (std::find(stops.begin(), stops.end(), id) != stops.end()) {
      reply.result.finish = Finish::kStopToken;
    } else if (count >= reply.request->max_new_tokens) {
      reply.result.finish = Finish::kMaxNewTokens;
    } else if (static_cast<std::int64_t>(reply.ids.size()) >= decoder_.options().max_tokens) {
      reply.result.finish = Finish::kContextFull;
    } else {
      reply.done = false;
    }
    if (on_token_ != nullptr && on_token_(index, id) == Continue::kStop) stopped_ = true;
  }

  Clock::time_point start_ = Clock::now();
  Decoder& decoder_;
  const OnToken& on_token_;
  const BeforeStep& before_step_;
  OwnSequences own_;
  std::vector<Reply> replies_;
  std::vector<std::size_t> owners_;  // of a step's parts
  GenerateTimes times_;
  bool stopped_ = false;
};

}  // namespace

Generated generate(Decoder& decoder, const std::vector<GenerateRequest>& requests,
                   const OnToken& on_token, const BeforeStep& before_step) {
  return Generation(decoder, requests, on_token, before_step).run();
}

}  // namespace tileweave
