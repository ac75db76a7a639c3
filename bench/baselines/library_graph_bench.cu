// library_graph_bench: baseline (iii) of decoding, random-weight models through cuBLASLt and our
// small kernels, one CUDA graph per step. Checks its logits against our own decoder's, then prints
// a table and writes JSON, with the streaming rate of the same run.
//
//   library_graph_bench [--model LIST] [--batch LIST] [--context C] [--steps S] [--repeat R]
//                       [--check on|off] [--json FILE]
#include <cuda_runtime.h>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <exception>
#include <memory>
#include <string>
#include <vector>

#include "bench/baselines/library_step.cuh"
#include "bench/baselines/tuned_product.cuh"
#include "tileweave/core/atomic_file.h"
#include "tileweave/core/error.h"
#include "tileweave/models/decoder.h"
#include "tileweave/models/presets.h"
#include "tileweave/runtime/cuda/cuda_status.cuh"
#include "tileweave/runtime/cuda/run_timer.h"

namespace {

using namespace tileweave;  // NOLINT: a program of its own

constexpr std::uint64_t kSeed = 1;
/// Operands are rounded to bf16 at the same places on both sides; only sums differ in their order,
/// which moves some roundings by one unit of 2^-9.
constexpr double kMostError = 0.05;

enum class Check { kOn, kOff };

struct Options {
  std::vector<std::string> models = {"llama-3.2-1b"};
  std::vector<std::int64_t> batches = {1, 8};
  std::int64_t context = 128;
  std::int64_t steps = 32;
  std::int64_t repeat = 12;
  Check check = Check::kOn;
  std::string json;
};

std::vector<std::string> split(const std::string& text) {
  std::vector<std::string> parts(1);
  for (const char c : text) c == ',' ? (void)parts.emplace_back() : parts.back().push_back(c);
  return parts;
}

std::int64_t number(const std::string& name, const std::string& text) {
  char* end = nullptr;
  const long long value = std::strtoll(text.c_str(), &end, 10);
  if (end == text.c_str() || *end != 0 || value < 1) {
    throw Error("read " + name, "a number from 1 on", "`" + text + "`");
  }
  return value;
}

Options parse(int argc, char** argv) {
  Options options;
  for (int i = 1; i < argc; i += 2) {
    const std::string name = argv[i];
    if (i + 1 == argc) throw Error("read the command line", "a value for `" + name + "`", "none");
    const std::string value = argv[i + 1];
    if (name == "--model") {
      options.models = split(value);
    } else if (name == "--batch") {
      options.batches.clear();
      for (const std::string& part : split(value)) options.batches.push_back(number(name, part));
    } else if (name == "--context") {
      options.context = number(name, value);
    } else if (name == "--steps") {
      options.steps = number(name, value);
    } else if (name == "--repeat") {
      options.repeat = number(name, value);
    } else if (name == "--check" && (value == "on" || value == "off")) {
      options.check = value == "on" ? Check::kOn : Check::kOff;
    } else if (name == "--json") {
      options.json = value;
    } else {
      throw Error("read the command line", "an option of library_graph_bench", "`" + name + "`");
    }
  }
  for (const std::string& model : options.models) {
    if (preset_config(model)) continue;
    std::string names;
    for (const std::string& name : preset_names()) names += (names.empty() ? "" : ", ") + name;
    throw Error("read --model", "one of " + names, "`" + model + "`");
  }
  return options;
}

std::string hardware_line(const Device& device, const CublasLt& library) {
  int driver = 0;
  int runtime = 0;
  check_cuda(cudaDriverGetVersion(&driver), "ask for the driver's version");
  check_cuda(cudaRuntimeGetVersion(&runtime), "ask for the runtime's version");
  const auto text = [](int version) {
    return std::to_string(version / 1000) + "." + std::to_string(version % 1000 / 10);
  };
  return device.limits().name + ", " + std::to_string(device.limits().num_sms) +
         " SMs, driver CUDA " + text(driver) + ", runtime CUDA " + text(runtime) + ", cuBLASLt " +
         library.version();
}

/// Logits (batch, V) of the first token of every sequence, by our decoder with the same weights.
std::vector<float> our_logits(Device& device, const ModelConfig& config,
                              const std::vector<std::int32_t>& ids) {
  const auto batch = static_cast<std::int64_t>(ids.size());
  Decoder decoder(device, config, random_weights(device, config, kSeed, Granularity::kOps),
                  {.max_tokens = 32, .cache_tokens = 32 * batch, .loops = LoopUse::kNever});
  StepRequest request{.parts = {}, .head = Head::kLogits};
  for (const std::int32_t& id : ids) {
    request.parts.push_back({decoder.add_sequence(), std::span(&id, 1)});
  }
  return decoder.step(request).logits;
}

/// Length of the difference over that of `expected`, the worst row's.
double worst_row_error(const std::vector<float>& got, const std::vector<float>& expected,
                       std::size_t columns) {
  double worst = 0;
  for (std::size_t row = 0; row < got.size() / columns; ++row) {
    double error = 0;
    double norm = 0;
    for (std::size_t i = row * columns; i < (row + 1) * columns; ++i) {
      const double difference = static_cast<double>(got[i]) - static_cast<double>(expected[i]);
      error += difference * difference;
      norm += static_cast<double>(expected[i]) * static_cast<double>(expected[i]);
    }
    const double relative = std::sqrt(error / norm);
    if (!(relative <= worst)) worst = relative;  // NaN too
  }
  return worst;
}

class Events {
 public:
  Events() {
    check_cuda(cudaEventCreate(&begin_), "create an event");
    check_cuda(cudaEventCreate(&end_), "create an event");
  }
  ~Events() {
    cudaEventDestroy(begin_);
    cudaEventDestroy(end_);
  }
  Events(const Events&) = delete;
  Events& operator=(const Events&) = delete;

  double ms_per_step(bench::LibraryStep& step, std::int64_t steps) const {
    check_cuda(cudaEventRecord(begin_, step.stream()), "record an event");
    for (std::int64_t i = 0; i < steps; ++i) step.run();
    check_cuda(cudaEventRecord(end_, step.stream()), "record an event");
    check_cuda(cudaEventSynchronize(end_), "run steps");
    float ms = 0;
    check_cuda(cudaEventElapsedTime(&ms, begin_, end_), "read a time");
    return static_cast<double>(ms) / static_cast<double>(steps);
  }

 private:
  cudaEvent_t begin_ = nullptr;
  cudaEvent_t end_ = nullptr;
};

double median(std::vector<double> values) {
  std::sort(values.begin(), values.end());
  return values[values.size() / 2];
}

/// Measures one model at one batch; returns its JSON object.
std::string measure(Device& device, const CublasLt& library, const Options& options,
                    const std::string& model, const ModelWeights& weights,
                    const ModelConfig& config, std::int64_t batch,
                    const std::vector<float>& expected, double rate) {
  bench::LibraryStep step(device, library, config, weights,
                          {.batch = batch, .max_tokens = options.context + options.steps + 1});
  double error = -1;
  if (!expected.empty()) {
    const auto columns = static_cast<std::size_t>(config.vocab_size);
    step.restart(0);
    step.run();
    error = worst_row_error(step.logits(), expected, columns);
    if (!(error < kMostError)) {
      throw Error("library_graph_bench",
                  "the logits of our decoder within " + std::to_string(kMostError) + " (" + model +
                      ", batch " + std::to_string(batch) + ")",
                  "an error of " + std::to_string(error));
    }
  }
  const Events events;
  std::vector<double> times;
  for (std::int64_t i = -2; i < options.repeat; ++i) {
    step.restart(options.context);
    const double ms = events.ms_per_step(step, options.steps);
    if (i >= 0) times.push_back(ms);
  }
  const double ms = median(times);
  const double least = *std::min_element(times.begin(), times.end());
  const double most = *std::max_element(times.begin(), times.end());
  const double bytes = static_cast<double>(weights.bytes_per_step()) +
                       static_cast<double>(step.kv_bytes(options.context + options.steps / 2));
  const double share = bytes / (ms * 1e-3) / rate;
  std::printf("%-14s %5lld %9.4f %8.4f %8.4f %7.3f %5.1f%% %6zu", model.c_str(),
              static_cast<long long>(batch), ms, least, most, bytes * 1e-9, share * 100,
              step.num_graph_nodes());
  if (error >= 0) std::printf("  logits off by %.1e", error);
  std::printf("\n");
  std::string products;
  for (const auto& [shape, product] : step.products()) {
    const double product_rate = static_cast<double>(shape.n) * static_cast<double>(shape.k) * 2e-6 /
                                product->best_us();  // TB/s
    std::printf("    product %lld x %lld x %lld: %.2f us, %.2f TB/s, best of %lld (%lld refused)\n",
                static_cast<long long>(shape.m), static_cast<long long>(shape.n),
                static_cast<long long>(shape.k), product->best_us(), product_rate,
                static_cast<long long>(product->num_candidates()),
                static_cast<long long>(product->num_refused()));
    products += (products.empty() ? "" : ", ") + std::string("{\"n\": ") + std::to_string(shape.n) +
                ", \"k\": " + std::to_string(shape.k) +
                ", \"us\": " + std::to_string(product->best_us()) +
                ", \"candidates\": " + std::to_string(product->num_candidates()) +
                ", \"refused\": " + std::to_string(product->num_refused()) + "}";
  }
  std::fflush(stdout);
  return "{\"model\": \"" + model + "\", \"batch\": " + std::to_string(batch) +
         ", \"context\": " + std::to_string(options.context) +
         ", \"steps\": " + std::to_string(options.steps) +
         ", \"repeats\": " + std::to_string(options.repeat) +
         ", \"ms_per_step\": " + std::to_string(ms) + ", \"ms_least\": " + std::to_string(least) +
         ", \"ms_most\": " + std::to_string(most) +
         ", \"bytes\": " + std::to_string(static_cast<std::int64_t>(bytes)) +
         ", \"share_of_streaming_rate\": " + std::to_string(share) +
         ", \"graph_nodes\": " + std::to_string(step.num_graph_nodes()) +
         ", \"logits_error\": " + (error < 0 ? "null" : std::to_string(error)) +
         ", \"products\": [" + products + "]}";
}

int run(int argc, char** argv) {
  const Options options = parse(argc, argv);
  const std::unique_ptr<Device> device = open_cuda_device();
  const CublasLt library;
  const std::string hardware = hardware_line(*device, library);
  const double rate = measure_read_rate().best();
  std::printf("cuBLASLt and small kernels in one CUDA graph: %s\n", hardware.c_str());
  std::printf("streaming rate: %.0f GB/s (best of several block counts of a bare read)\n",
              rate * 1e-9);
  std::printf("%-14s %5s %9s %8s %8s %7s %6s %6s\n", "model", "batch", "ms/step", "least", "most",
              "GB", "share", "nodes");
  std::string results;
  for (const std::string& model : options.models) {
    const ModelConfig config = *preset_config(model);
    std::vector<float> expected;
    if (options.check == Check::kOn) {
      std::vector<std::int32_t> ids;
      const std::int64_t most = *std::max_element(options.batches.begin(), options.batches.end());
      for (std::int64_t s = 0; s < most; ++s) {
        ids.push_back(bench::LibraryStep::first_id(s, config.vocab_size));
      }
      expected = our_logits(*device, config, ids);
    }
    const ModelWeights weights = random_weights(
        *device, config, kSeed,
        WeightForm{.matrices = MatrixLayout::kRowMajor, .gate_up = StripOrder::kRows});
    for (const std::int64_t batch : options.batches) {
      // A sequence's logits do not depend on the batch, so the first rows serve a smaller one.
      std::vector<float> rows = expected;
      if (!rows.empty()) rows.resize(static_cast<std::size_t>(batch * config.vocab_size));
      results += (results.empty() ? "" : ",\n  ") +
                 measure(*device, library, options, model, weights, config, batch, rows, rate);
    }
  }
  if (!options.json.empty()) {
    write_file_atomically(
        options.json,
        "{\"baseline\": \"cuBLASLt and small kernels, one CUDA graph\",\n \"hardware\": \"" +
            hardware + "\",\n \"streaming_rate_GB_per_s\": " + std::to_string(rate * 1e-9) +
            ",\n \"results\": [\n  " + results + "\n ]}\n");
  }
  return 0;
}

}  // namespace

int main(int argc, char** argv) {
  try {
    return run(argc, argv);
  } catch (const std::exception& error) {
    std::fprintf(stderr, "%s\n", error.what());
    return 1;
  }
}
