// DecodeLoop: one new token per sequence and step, step after step, without the host between them.
//
//   DecodeLoop loop(decoder, {.rows = 4});
//   loop.start(sequences, last_ids, 256);   // tokens that the sequences do not hold yet
//   loop.enqueue(64);                       // asynchronous
//   const auto ids = loop.wait();           // (64, sequences): the likeliest tokens
//   loop.finish(64);                        // the sequences now hold 64 tokens more
//
// The plan is made once, inputs are written once per start(); between steps the device moves them
// on (kernels/sampling/advance.h) and puts the tokens into a ring that the host reads. start()
// claims pages for most_steps tokens, finish() gives back what was not used. Throws Error as
// Decoder does; after a failed run the sequences are as they were at start(). One host thread at a
// time; the decoder must outlive the loop and runs no step of these sequences in between.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "tileweave/models/decoder.h"

namespace tileweave {

struct DecodeLoopOptions {
  RunOptions run = {};
  std::optional<StepKnobs> knobs = std::nullopt;  // nothing: the decoder's
  std::int64_t rows = 1;                          // sequences at most
  std::int64_t max_tokens = 0;                    // of a sequence; 0: the decoder's limit
  std::int64_t ring_length = 1024;                // steps that may be enqueued and not read yet
  /// Changes the step's plan before it is verified; for measurements of steps that lack a part.
  std::function<void(Plan&)> rewrite = nullptr;
};

class DecodeLoop {
 public:
  DecodeLoop(Decoder& decoder, const DecodeLoopOptions& options);
  ~DecodeLoop();
  DecodeLoop(const DecodeLoop&) = delete;
  DecodeLoop& operator=(const DecodeLoop&) = delete;

  /// The next steps begin with `ids[i]` for sequence i.
  void start(std::span<const KvCache::SequenceId> sequences, std::span<const std::int32_t> ids,
             std::int64_t most_steps);
  void enqueue(std::int64_t steps);
  std::int64_t steps_enqueued() const { return steps_; }
  /// Tokens of the earliest step that was not read yet; waits for that step alone.
  std::vector<std::int32_t> next();
  /// Tokens of all enqueued steps that were not read yet, (steps, sequences); nothing runs any
  /// more.
  std::vector<std::int32_t> wait();
  /// Waits, and leaves the sequences as after `steps` of the enqueued steps.
  void finish(std::int64_t steps);

  Program& program() { return *program_; }
  const StepOutputs& outputs() const { return outputs_; }

 private:
  class Ring;

  void synchronize();
  void read_step(std::vector<std::int32_t>& to);
  std::vector<std::int32_t> wait_for_step();
  void give_up();
  void truncate(std::int64_t steps);

  Decoder& decoder_;
  DecodeLoopOptions options_;
  std::int64_t max_pages_ = 0;
  StepShape shape_;
  StepInputs inputs_;
  StepOutputs outputs_;
  std::unique_ptr<Ring> ring_;
  std::unique_ptr<Program> program_;
  std::vector<KvCache::SequenceId> sequences_;
  std::vector<std::int64_t> lengths_;  // at start()
  std::int64_t most_steps_ = 0;
  std::int64_t steps_ = 0;       // enqueued since start()
  std::int64_t steps_read_ = 0;  // of these
  std::uint32_t first_ = 0;      // the ring's count at start()
};

}  // namespace tileweave
