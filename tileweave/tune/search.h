// search: the fastest values of some knobs, found by measuring, one knob at a time.
//
// Coordinate descent from the default candidate (the first value of every knob), which is measured
// first: in turn every other value of a knob is tried, the fastest kept, until a whole round over
// the knobs changes nothing or the budget is spent. At the end the best and the default are
// measured once more, in turn, and the default stays unless the other is faster by more than
// `least_gain`. Nothing but the measurements decides. No device is needed to understand or test it.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

namespace tileweave {

struct TuneKnob {
  std::string name;
  std::vector<std::int64_t> values;  // the default's first
};

/// A value of every knob, in their order.
using TuneCandidate = std::vector<std::int64_t>;

/// Seconds of one measurement of a candidate that stands ready.
using TuneSample = std::function<double()>;
/// Makes a candidate ready to be measured as often as asked for; what it holds goes with the
/// returned function. Throws Error for a candidate that cannot be or that is wrong: passed over
/// unless it is the default.
using TunePrepare = std::function<TuneSample(const TuneCandidate&)>;

struct TuneProgress {
  std::int64_t measured = 0;  // candidates so far
  double best_seconds = 0;
  double spent_seconds = 0;
};

struct SearchOptions {
  std::int32_t repeats = 5;            // measurements of a candidate, of which the median counts
  double budget_seconds = 30;          // no new candidate after that
  double least_gain = 0.01;            // over the default
  std::int32_t most_rounds = 3;        // over all knobs
  std::function<double()> clock = {};  // seconds; nothing: the steady clock
  std::function<void(const TuneProgress&)> progress = {};
};

struct SearchResult {
  struct Refusal {
    TuneCandidate candidate;
    std::string why;
  };
  TuneCandidate best;
  double seconds = 0;          // of the best
  double default_seconds = 0;  // measured beside it
  std::int64_t measured = 0;   // candidates
  bool finished = true;        // false: the budget ended it
  std::vector<Refusal> refused = {};
};

SearchResult search(const std::vector<TuneKnob>& knobs, const TunePrepare& prepare,
                    const SearchOptions& options = {});

}  // namespace tileweave
