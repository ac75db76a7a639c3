#include "tileweave/models/decode_loop.h"

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstring>
#include <string>
#include <thread>
#include <utility>

#include "tileweave/core/error.h"
#include "tileweave/kernels/sampling/advance.h"
#include "tileweave/models/step_batch.h"

namespace tileweave {
namespace {

constexpr const char* kLoop = "decode in a loop";
/// A step that takes longer is asked after: it may have failed.
constexpr std::chrono::milliseconds kPatience{500};

}  // namespace

/// Tokens of the last steps and how many there were, in memory that the host reads while steps run.
class DecodeLoop::Ring {
 public:
  Ring(Device& device, std::int64_t length, std::int64_t rows)
      : device_(device),
        length_(length),
        rows_(rows),
        bytes_(static_cast<std::size_t>(length * rows) * sizeof(std::int32_t)),
        shared_(static_cast<std::byte*>(device.allocate_shared(bytes_ + kLine))),
        step_(device, sizeof(std::uint32_t)) {
    std::memset(shared_, 0, bytes_ + kLine);
    device.fill(step_.at(), 0, sizeof(std::uint32_t));
  }
  ~Ring() { device_.release_shared(shared_); }
  Ring(const Ring&) = delete;
  Ring& operator=(const Ring&) = delete;

  std::int64_t length() const { return length_; }
  std::int32_t* tokens() const { return reinterpret_cast<std::int32_t*>(shared_ + kLine); }
  std::uint32_t* published() const { return reinterpret_cast<std::uint32_t*>(shared_); }
  std::uint32_t* step() const { return reinterpret_cast<std::uint32_t*>(step_.at()); }

  std::uint32_t count() const {
    return std::atomic_ref(*published()).load(std::memory_order_acquire);
  }
  const std::int32_t* row(std::uint32_t step) const {
    return tokens() + static_cast<std::int64_t>(step % static_cast<std::uint32_t>(length_)) * rows_;
  }

 private:
  static constexpr std::size_t kLine = 128;  // the count has a line of its own

  Device& device_;
  std::int64_t length_, rows_;
  std::size_t bytes_;
  std::byte* shared_;
  DeviceMemory step_;
};

DecodeLoop::DecodeLoop(Decoder& decoder, const DecodeLoopOptions& options)
    : decoder_(decoder), options_(options) {
  require(options_.rows >= 1 && bucket_of(options_.rows) <= decoder.options().max_rows, kLoop,
          "at least one sequence, and no more than a step has rows", std::to_string(options_.rows));
  require(options_.ring_length >= 1, kLoop, "room for at least one step in the ring",
          std::to_string(options_.ring_length));
  const std::int64_t rows = bucket_of(options_.rows);
  // A power of two, so that counting modulo 2^32 goes on in step.
  const std::int64_t ring_length = bucket_of(options_.ring_length);
  shape_ = {.rows = rows, .sequences = rows, .outputs = rows, .decode = true};
  const std::int64_t limit = decoder.options().max_tokens;
  if (options_.max_tokens == 0) options_.max_tokens = limit;
  require(options_.max_tokens >= 1 && options_.max_tokens <= limit, kLoop,
          "no longer sequences than the decoder's", std::to_string(options_.max_tokens));
  max_pages_ = ceil_div(options_.max_tokens, decoder.cache().shape().page_size);
  ring_ = std::make_unique<Ring>(decoder.device(), ring_length, rows);
  Decoder::Step step = decoder.make_step(shape_, {.run = options_.run,
                                                  .max_tokens = options_.max_tokens,
                                                  .knobs = options_.knobs,
                                                  .rewrite = options_.rewrite});
  inputs_ = step.inputs;
  outputs_ = step.outputs;
  program_ = std::move(step.program);
  const auto at = [&](TensorId id) { return static_cast<std::int32_t*>(program_->address(id)); };
  AdvanceArgs args;
  args.rows = rows;
  args.next = at(outputs_.next_ids);
  args.ids = at(inputs_.ids);
  args.positions = at(inputs_.positions);
  args.past = at(inputs_.past);
  args.slots = at(inputs_.slots);
  args.page_table = at(inputs_.page_table);
  args.max_pages = static_cast<std::int32_t>(max_pages_);
  args.page_size = static_cast<std::int32_t>(decoder.cache().shape().page_size);
  args.tokens = ring_->tokens();
  args.step = ring_->step();
  args.published = ring_->published();
  args.ring_length = static_cast<std::int32_t>(ring_length);
  program_->set_between_runs(make_advance(decoder.device(), args));
}

DecodeLoop::~DecodeLoop() {
  program_.reset();  // waits for what runs
  truncate(steps_);
}

void DecodeLoop::truncate(std::int64_t steps) {
  for (std::size_t i = 0; i < sequences_.size(); ++i) {
    decoder_.truncate(sequences_[i], lengths_[i] + steps);
  }
  sequences_.clear();
  lengths_.clear();
}

void DecodeLoop::start(std::span<const KvCache::SequenceId> sequences,
                       std::span<const std::int32_t> ids, std::int64_t most_steps) {
  require(sequences_.empty(), kLoop, "finish() before the next start()");
  const auto rows = static_cast<std::size_t>(shape_.rows);
  require(!sequences.empty() && sequences.size() <= rows && ids.size() == sequences.size(), kLoop,
          "one token for each of the sequences that the loop was made for",
          std::to_string(ids.size()));
  require(most_steps >= 1, kLoop, "at least one step", std::to_string(most_steps));
  require_in_vocabulary(ids, decoder_.config());
  program_->synchronize();
  KvCache& cache = decoder_.cache();
  const std::int64_t limit = options_.max_tokens;
  try {
    for (const KvCache::SequenceId sequence : sequences) {
      const std::int64_t length = cache.length(sequence);
      if (length + most_steps > limit) {
        throw Error(kLoop, "a sequence of at most " + std::to_string(limit) + " tokens",
                    std::to_string(length + most_steps));
      }
      cache.extend(sequence, most_steps);
      sequences_.push_back(sequence);
      lengths_.push_back(length);
    }
  } catch (...) {
    truncate(0);
    throw;
  }
  most_steps_ = most_steps;
  steps_ = steps_read_ = 0;
  first_ = ring_->count();

  // The first step's rows, with the pages of all of them; no page: -1, where a row becomes padding.
  const auto max_pages = static_cast<std::size_t>(max_pages_);
  StepBatch batch;
  batch.ids.assign(ids.begin(), ids.end());
  batch.past.assign(rows, 0);
  batch.first_row.assign(rows, 0);
  batch.page_table.assign(rows * max_pages, -1);
  for (std::size_t s = 0; s < sequences.size(); ++s) {
    const std::int64_t length = lengths_[s];
    batch.positions.push_back(static_cast<std::int32_t>(length));
    batch.slots.push_back(cache.row(sequences[s], length));
    batch.sequence_of_row.push_back(static_cast<std::int32_t>(s));
    batch.first_row[s] = static_cast<std::int32_t>(s);
    batch.past[s] = static_cast<std::int32_t>(length);
    const std::span<const std::int32_t> pages = cache.pages(sequences[s]);
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
  require(!sequences_.empty(), kLoop, "start() before the first step");
  require(steps >= 0 && steps_ + steps <= most_steps_, kLoop,
          "no more steps than start() was told of", std::to_string(steps_ + steps));
  require(steps_ + steps - steps_read_ <= ring_->length(), kLoop,
          "no more unread steps than the ring holds", std::to_string(steps_ + steps - steps_read_));
  for (std::int64_t i = 0; i < steps; ++i, ++steps_) program_->run();
}

void DecodeLoop::give_up() {
  if (program_->poisoned()) program_->recover();
  truncate(0);
}

void DecodeLoop::read_step(std::vector<std::int32_t>& to) {
  const std::int32_t* row = ring_->row(first_ + static_cast<std::uint32_t>(steps_read_));
  to.insert(to.end(), row, row + sequences_.size());
  ++steps_read_;
}

std::vector<std::int32_t> DecodeLoop::next() {
  require(steps_read_ < steps_, kLoop, "a step that was enqueued and not read");
  const auto wanted = static_cast<std::uint32_t>(steps_read_) + 1;
  const auto begin = std::chrono::steady_clock::now();
  while (ring_->count() - first_ < wanted) {
    if (std::chrono::steady_clock::now() - begin > kPatience) return wait_for_step();
    std::this_thread::yield();
  }
  if (program_->poisoned()) return wait_for_step();  // throws
  std::vector<std::int32_t> ids;
  read_step(ids);
  return ids;
}

std::vector<std::int32_t> DecodeLoop::wait_for_step() {
  synchronize();
  std::vector<std::int32_t> ids;
  read_step(ids);
  return ids;
}

void DecodeLoop::synchronize() {
  try {
    program_->synchronize();
  } catch (...) {
    give_up();
    throw;
  }
}

std::vector<std::int32_t> DecodeLoop::wait() {
  synchronize();
  std::vector<std::int32_t> ids;
  while (steps_read_ < steps_) read_step(ids);
  return ids;
}

void DecodeLoop::finish(std::int64_t steps) {
  require(steps >= 0 && steps <= steps_, kLoop, "no more steps than were enqueued",
          std::to_string(steps));
  synchronize();
  truncate(steps);
}

}  // namespace tileweave
