// What fixes a step's plan: how many rows, sequences and outputs, and what its head gives.
//
// A step runs T rows (tokens) of up to S sequences through the model, prompt rows and decode rows
// side by side. Shapes are buckets: a plan is made once per shape, rows and sequences beyond the
// real ones are padding. Plain values.
#pragma once

#include <compare>
#include <cstdint>

namespace tileweave {

/// `ops`: every operator its own kernel; `stages`: residual sums, SiLU-mul and QK-norm inside the
/// kernels next to them.
enum class Granularity : std::uint8_t { kOps, kStages };

constexpr const char* name_of(Granularity granularity) {
  return granularity == Granularity::kOps ? "ops" : "stages";
}

/// What a step leaves for the host.
enum class Head : std::uint8_t {
  kNone,    // nothing: rows of a prompt that goes on
  kArgmax,  // next ids, most likely token
  kSample,  // next ids, drawn with each sequence's parameters
  kLogits,  // logits
};

struct StepShape {
  std::int64_t rows = 1;       // T
  std::int64_t sequences = 1;  // S
  std::int64_t outputs = 1;    // rows that the head sees; equal to `rows`: all of them, in order
  Head head = Head::kArgmax;
  bool decode = false;  // one row per sequence: row r is that of sequence r

  friend auto operator<=>(const StepShape&, const StepShape&) = default;
};

/// The smallest bucket (a power of two) that holds `count`.
constexpr std::int64_t bucket_of(std::int64_t count) {
  std::int64_t bucket = 1;
  while (bucket < count) bucket *= 2;
  return bucket;
}

/// The bucket of a step's rows: powers of two up to 128, then multiples of 128, so that few of a
/// long prompt's rows are padding.
constexpr std::int64_t row_bucket_of(std::int64_t count) {
  constexpr std::int64_t kUnit = 128;
  return count <= kUnit ? bucket_of(count) : (count + kUnit - 1) / kUnit * kUnit;
}

/// The decode step of that many sequences.
constexpr StepShape decode_shape(std::int64_t sequences) {
  const std::int64_t rows = bucket_of(sequences);
  return {.rows = rows, .sequences = rows, .outputs = rows, .decode = true};
}

}  // namespace tileweave
