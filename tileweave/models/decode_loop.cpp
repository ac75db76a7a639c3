#include "tileweave/models/decode_loop.h"

#include <algorithm>
#include <string>
#include <utility>

#include "tileweave/core/error.h"
#include "tileweave/models/dense_model.h"
#include "tileweave/models/step_batch.h"

namespace tileweave {
namespace {

constexpr const char* kLoop = "decode in a loop";

}  // namespace

DecodeLoop::DecodeLoop(Decoder& decoder, std::vector<KvCache::SequenceId> sequences,
                       const DecodeLoopOptions& options)
    : decoder_(decoder), sequences_(std::move(sequences)), options_(options) {
  const auto count = static_cast<std::int64_t>(sequences_.size());
  require(count >= 1 && count <= decoder.options().max_rows, kLoop,
          "at least one sequence, and no more than a step has rows", std::to_string(count));
  require(options_.most_steps >= 1, kLoop, "at least one step",
          std::to_string(options_.most_steps));
  const std::int64_t rows = bucket_of(count);
  shape_ = {.rows = rows, .sequences = rows, .outputs = rows, .decode = true};
  StepBuilder builder(decoder.context(), shape_, options_.knobs.value_or(decoder.knobs_of(shape_)));
  outputs_ = dense_step(builder);
  inputs_ = builder.inputs();
  program_ = std::make_unique<Program>(decoder.device(), builder.plan(), options_.run);
}

DecodeLoop::~DecodeLoop() {
  program_.reset();  // waits for what runs
  release_unused();
}

void DecodeLoop::release_unused() {
  if (!started_) return;
  for (std::size_t i = 0; i < sequences_.size(); ++i) {
    decoder_.truncate(sequences_[i],
                      lengths_[i] + (options_.advance == Advance::kYes ? steps_ : 0));
  }
  started_ = false;
}

void DecodeLoop::rewind() {
  program_->synchronize();
  steps_ = 0;
  release_unused();
}

void DecodeLoop::start(std::span<const std::int32_t> ids) {
  require(ids.size() == sequences_.size(), kLoop, "one token per sequence",
          std::to_string(ids.size()));
  require_in_vocabulary(ids, decoder_.config());
  program_->synchronize();
  release_unused();
  KvCache& cache = decoder_.cache();
  lengths_.clear();
  std::size_t claimed = 0;
  try {
    for (const KvCache::SequenceId sequence : sequences_) {
      const std::int64_t length = cache.length(sequence);
      const std::int64_t limit = decoder_.options().max_tokens;
      if (length + options_.most_steps > limit) {
        throw Error(kLoop, "a sequence of at most " + std::to_string(limit) + " tokens",
                    std::to_string(length + options_.most_steps));
      }
      cache.extend(sequence, options_.most_steps);
      lengths_.push_back(length);
      ++claimed;
    }
  } catch (...) {
    for (std::size_t i = 0; i < claimed; ++i) cache.truncate(sequences_[i], lengths_[i]);
    throw;
  }
  started_ = true;
  steps_ = waited_ = 0;

  // The first step's rows, with the pages of all of them.
  const auto rows = static_cast<std::size_t>(shape_.rows);
  const auto max_pages = static_cast<std::size_t>(decoder_.context().max_pages);
  StepBatch batch;
  batch.ids.assign(ids.begin(), ids.end());
  batch.past.assign(rows, 0);
  batch.first_row.assign(rows, 0);
  batch.page_table.assign(rows * max_pages, 0);
  for (std::size_t s = 0; s < sequences_.size(); ++s) {
    const std::int64_t length = lengths_[s];
    batch.positions.push_back(static_cast<std::int32_t>(length));
    batch.slots.push_back(cache.row(sequences_[s], length));
    batch.sequence_of_row.push_back(static_cast<std::int32_t>(s));
    batch.first_row[s] = static_cast<std::int32_t>(s);
    batch.past[s] = static_cast<std::int32_t>(length);
    const std::span<const std::int32_t> pages = cache.pages(sequences_[s]);
    std::copy(pages.begin(), pages.end(),
              batch.page_table.begin() + static_cast<std::ptrdiff_t>(s * max_pages));
  }
  batch.ids.resize(rows, 0);
  batch.positions.resize(rows, 0);
  batch.slots.resize(rows, -1);
  batch.sequence_of_row.resize(rows, -1);
  program_->write(inputs_.ids, batch.ids);
  program_->write(inputs_.positions, batch.positions);
  program_->write(inputs_.slots, batch.slots);
  program_->write(inputs_.sequence_of_row, batch.sequence_of_row);
  program_->write(inputs_.first_row, batch.first_row);
  program_->write(inputs_.past, batch.past);
  program_->write(inputs_.page_table, batch.page_table);
}

void DecodeLoop::enqueue(std::int64_t steps) {
  require(started_, kLoop, "start() before the first step");
  const bool advances = options_.advance == Advance::kYes;
  require(steps >= 0 && (!advances || steps_ + steps <= options_.most_steps), kLoop,
          "no more steps than the loop was made for", std::to_string(steps_ + steps));
  for (std::int64_t i = 0; i < steps; ++i) program_->run();
  steps_ += steps;
}

std::vector<std::int32_t> DecodeLoop::wait() {
  try {
    program_->synchronize();
  } catch (...) {
    steps_ = 0;
    release_unused();
    if (program_->poisoned()) program_->recover();
    throw;
  }
  std::vector<std::int32_t> ids = program_->read<std::int32_t>(outputs_.next_ids);
  ids.resize(sequences_.size());
  waited_ = steps_;
  return ids;
}

}  // namespace tileweave
