// DecodeLoop: one new token per sequence and step, step after step, without the host between them.
//
//   DecodeLoop loop(decoder, sequences, {.most_steps = 256});
//   loop.start(last_ids);            // tokens that the sequences do not hold yet
//   loop.enqueue(64);                // asynchronous
//   const auto ids = loop.wait();    // (64, sequences): greedy choices, step by step
//
// The plan is made once, inputs are written once per start(); between steps the device moves them
// on. Pages for most_steps tokens are claimed at start() and what was not used is given back by the
// next start() or the destructor, so that afterwards a sequence holds the tokens of the steps that
// were run. Throws Error as Decoder does; a run that failed leaves the sequences as they were at
// start(). One host thread at a time; the decoder must outlive the loop and runs no step of these
// sequences meanwhile.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "tileweave/models/decoder.h"

namespace tileweave {

/// Whether positions move on between steps, or every step is the same one over again.
enum class Advance : std::uint8_t { kYes, kNo };

struct DecodeLoopOptions {
  RunOptions run = {};
  std::optional<StepKnobs> knobs = std::nullopt;  // nothing: the decoder's
  std::int64_t most_steps = 64;                   // from one start()
  Advance advance = Advance::kYes;
};

class DecodeLoop {
 public:
  DecodeLoop(Decoder& decoder, std::vector<KvCache::SequenceId> sequences,
             const DecodeLoopOptions& options);
  ~DecodeLoop();
  DecodeLoop(const DecodeLoop&) = delete;
  DecodeLoop& operator=(const DecodeLoop&) = delete;

  /// The next steps begin with `ids[i]` for sequence i.
  void start(std::span<const std::int32_t> ids);
  void enqueue(std::int64_t steps);
  /// Tokens that the enqueued steps chose since the last call, (steps, sequences). Without advance
  /// only those of the last step.
  std::vector<std::int32_t> wait();

  /// Forgets the steps since start(): the sequences are as they were before it.
  void rewind();

  std::int64_t steps_run() const { return steps_; }
  Program& program() { return *program_; }
  const StepOutputs& outputs() const { return outputs_; }

 private:
  void release_unused();

  Decoder& decoder_;
  std::vector<KvCache::SequenceId> sequences_;
  DecodeLoopOptions options_;
  StepShape shape_;
  StepInputs inputs_;
  StepOutputs outputs_;
  std::unique_ptr<Program> program_;
  std::vector<std::int64_t> lengths_;  // at start()
  bool started_ = false;
  std::int64_t steps_ = 0;   // enqueued since start()
  std::int64_t waited_ = 0;  // of these, given out
};

}  // namespace tileweave
