// Options that several verbs have, defined in one way.
#pragma once

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <charconv>
#include <cstdint>
#include <limits>
#include <map>
#include <optional>
#include <string>

#include "cli/model_choice.h"
#include "cli/verb_host.h"
#include "tileweave/core/error.h"

namespace tileweave::cli {

inline constexpr const char* kModelHelp =
    "Directory of a Hugging Face model, or org/name in the Hugging Face cache, or a preset";

inline void add_model(CLI::App* verb, std::string& model) {
  verb->add_option("--model", model, kModelHelp)->required()->type_name("DIR");
}

template <class T>
void add_words(CLI::App* verb, const char* name, T& value, const std::map<std::string, T>& words,
               const std::string& help) {
  std::string names, usual;
  for (const auto& [word, meaning] : words) {
    names += (names.empty() ? "" : "|") + word;
    if (meaning == value) usual = word;
  }
  verb->add_option_function<std::string>(
          name, [&value, words](const std::string& word) { value = words.at(word); }, help)
      ->check(CLI::IsMember(words))
      ->type_name(names)
      ->default_str(usual);
}

/// A whole number in decimal digits from `low` to `high`. The parser's own numbers would be octal
/// after a 0 and become the nearest possible one where they are too large.
template <class T>
CLI::Option* add_integer(CLI::App* verb, const char* name, T& value, T low, T high,
                         const std::string& help) {
  const auto read = [](const std::string& text, T& to) {
    const char* const end = text.data() + text.size();
    const auto [next, error] = std::from_chars(text.data(), end, to);
    return error == std::errc() && next == end;
  };
  return verb
      ->add_option_function<std::string>(
          name, [&value, read](const std::string& text) { read(text, value); }, help)
      ->check(CLI::Validator(
          [=](std::string& text) {
            T to{};
            if (read(text, to) && to >= low && to <= high) return std::string();
            return fmt::format("expected a whole number from {} to {}, got `{}`", low, high, text);
          },
          ""))
      ->type_name("N")
      ->default_str(std::to_string(value));
}

template <class T>
CLI::Option* add_integer(CLI::App* verb, const char* name, T& value, T low,
                         const std::string& help) {
  return add_integer(verb, name, value, low, std::numeric_limits<T>::max(), help);
}

/// What `read` finds wrong is about the arguments of `verb`.
template <class Read>
auto of_arguments(const char* verb, Read&& read) {
  try {
    return read();
  } catch (const Error& error) {
    throw UsageError(error.what(), verb);
  }
}

/// Positions of a sequence, as many as any model allows; sums and products of such keep to 64 bits.
inline constexpr std::int64_t kMostTokens = std::numeric_limits<std::int32_t>::max();

inline void add_choice(CLI::App* verb, ModelChoice& choice) {
  add_model(verb, choice.model);
  verb->add_option("--device", choice.device,
                   "cpu or cuda; unless given, cuda where it can be used, else cpu")
      ->check(CLI::IsMember({"cpu", "cuda"}));
  add_words<Mode>(verb, "--mode", choice.mode,
                  {{"serial", Mode::kSerial}, {"overlap", Mode::kOverlap}},
                  "How kernels follow one another");
  add_words<Submit>(verb, "--submit", choice.submit,
                    {{"eager", Submit::kEager}, {"graph", Submit::kGraph}},
                    "Launch by launch, or a recorded plan");
  add_words<std::optional<Granularity>>(
      verb, "--granularity", choice.granularity,
      {{"ops", Granularity::kOps}, {"stages", Granularity::kStages}},
      "Every operator a kernel, or small ones inside large ones; unless given, ops on the CPU and "
      "stages on a GPU");
  add_integer(verb, "--streams", choice.num_streams, 1, 8,
              "Internal streams of the plan; unless given, as the knobs say")
      ->default_str("");
  add_words<WideProducts>(verb, "--wide-products", choice.wide_products,
                          {{"own", WideProducts::kOwn}, {"vendor", WideProducts::kVendor}},
                          "On a GPU, what multiplies the rows of a prompt: vendor is cuBLASLt, "
                          "which needs a second copy "
                          "of the weights");
  verb->add_option("--knobs", choice.knobs, "Knobs of the plan, as JSON")->type_name("FILE");
  verb->add_option("--cache", choice.cache, "Folder of what `tileweave tune` measured")
      ->type_name("FOLDER");
  verb->add_flag_callback(
      "--no-cache", [&choice] { choice.tuned = TunedUse::kNo; },
      "As if nothing had been measured by `tileweave tune`");
}

}  // namespace tileweave::cli
