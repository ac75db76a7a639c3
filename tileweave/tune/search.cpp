#include "tileweave/tune/search.h"

#include <algorithm>
#include <chrono>
#include <limits>
#include <map>
#include <optional>

#include "tileweave/core/error.h"

namespace tileweave {
namespace {

constexpr const char* kSearch = "tune";
constexpr double kNever = std::numeric_limits<double>::infinity();

double steady_seconds() {
  return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

double median_of(std::vector<double> values) {
  std::sort(values.begin(), values.end());
  return values[values.size() / 2];
}

class Search {
 public:
  Search(const std::vector<TuneKnob>& knobs, const TunePrepare& prepare,
         const SearchOptions& options)
      : knobs_(knobs), prepare_(prepare), options_(options) {
    require(options.repeats >= 1 && options.most_rounds >= 1, kSearch,
            "at least one measurement and one round");
    for (const TuneKnob& knob : knobs) {
      if (knob.values.empty()) throw Error(kSearch, "a value of knob `" + knob.name + "`", "none");
      default_.push_back(knob.values[0]);
    }
    if (!options_.clock) options_.clock = steady_seconds;
    start_ = options_.clock();
  }

  SearchResult run() {
    measure_default();
    for (std::int32_t round = 0; round < options_.most_rounds && result_.finished; ++round) {
      const TuneCandidate before = result_.best;
      for (std::size_t knob = 0; knob < knobs_.size(); ++knob) try_values_of(knob);
      if (result_.best == before) break;
    }
    if (result_.best != default_) compare_with_default();
    return result_;
  }

 private:
  void measure_default() {
    result_.best = default_;
    result_.seconds = median_of(samples(prepare_(default_)));  // an error here ends the search
    result_.default_seconds = known_[default_] = result_.seconds;
    tell();
  }

  std::vector<double> samples(const TuneSample& sample) const {
    std::vector<double> all;
    all.reserve(static_cast<std::size_t>(options_.repeats));
    for (std::int32_t i = 0; i < options_.repeats; ++i) all.push_back(sample());
    return all;
  }

  void try_values_of(std::size_t knob) {
    TuneCandidate candidate = result_.best;
    for (const std::int64_t value : knobs_[knob].values) {
      candidate[knob] = value;
      if (known_.contains(candidate)) continue;
      if (options_.clock() - start_ >= options_.budget_seconds) {
        result_.finished = false;
        return;
      }
      const double seconds = measure(candidate);
      if (seconds < result_.seconds) {
        result_.seconds = seconds;
        result_.best = candidate;
      }
      tell();
    }
  }

  double measure(const TuneCandidate& candidate) {
    double& seconds = known_[candidate];
    try {
      seconds = median_of(samples(prepare_(candidate)));
    } catch (const Error& error) {
      seconds = kNever;
      result_.refused.push_back({candidate, error.what()});
    }
    return seconds;
  }

  /// Side by side: the machine may have changed since the default was measured.
  void compare_with_default() {
    try {
      const TuneSample usual = prepare_(default_);
      const TuneSample best = prepare_(result_.best);
      std::vector<double> usual_seconds, best_seconds;
      for (std::int32_t i = 0; i < options_.repeats; ++i) {
        usual_seconds.push_back(usual());
        best_seconds.push_back(best());
      }
      result_.default_seconds = median_of(usual_seconds);
      result_.seconds = median_of(best_seconds);
      if (result_.seconds < result_.default_seconds * (1 - options_.least_gain)) return;
    } catch (const Error& error) {
      result_.refused.push_back({result_.best, error.what()});
    }
    result_.best = default_;
    result_.seconds = result_.default_seconds;
  }

  void tell() {
    result_.measured = static_cast<std::int64_t>(known_.size());
    if (!options_.progress) return;
    options_.progress({.measured = result_.measured,
                       .best_seconds = result_.seconds,
                       .spent_seconds = options_.clock() - start_});
  }

  const std::vector<TuneKnob>& knobs_;
  const TunePrepare& prepare_;
  SearchOptions options_;
  double start_ = 0;
  TuneCandidate default_;
  std::map<TuneCandidate, double> known_;
  SearchResult result_;
};

}  // namespace

SearchResult search(const std::vector<TuneKnob>& knobs, const TunePrepare& prepare,
                    const SearchOptions& options) {
  return Search(knobs, prepare, options).run();
}

}  // namespace tileweave
