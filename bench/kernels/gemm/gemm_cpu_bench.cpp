// gemm_cpu_bench: y = x · Wᵀ on the CPU for the shapes of text models, decode (one row) and prefill
// (64 rows), beside what the cores can do at most in the same run: a plain sequential read of the
// same bytes, and multiply-adds in registers, by as many threads. Weights are cold (every arm
// streams far more than the caches), arms alternate, medians. Prints a table and writes JSON.
//
//   gemm_cpu_bench [--repeat R] [--megabytes M] [--tile-n N] [--json FILE]
#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <ctime>
#include <exception>
#include <functional>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "bench/kernels/gemm/cpu_ceilings.h"
#include "tileweave/core/atomic_file.h"
#include "tileweave/kernels/gemm/gemm.h"
#include "tileweave/runtime/program.h"

namespace {

using namespace tileweave;  // NOLINT: a program of its own

struct Options {
  int repeat = 10;
  std::int64_t megabytes = 512;  // weights per decode arm
  std::int64_t tile_n = 0;       // 0: chosen by shape
  std::string json_file;
};

struct Shape {
  std::int64_t m, n, k;
  DType weights;
};

struct Arm {
  std::string name;
  std::function<void()> run;
  double bytes = 0;  // of weights, read once
  double flops = 0;
  Shape shape{};
  std::int64_t tile_n = 0;
  std::vector<double> seconds = {};
  std::vector<double> cpu_seconds = {};  // of all threads: what a busy machine leaves comparable
};

/// Enough weights per work to hide a block's launch, and enough works for every thread.
std::int64_t tile_n_for(const Shape& s, int threads) {
  const std::int64_t by_bytes =
      (std::int64_t{1} << 17) / (s.k * static_cast<std::int64_t>(size_of(s.weights)));
  const std::int64_t by_works = ceil_div(s.n, 4 * std::int64_t{threads});
  return std::max<std::int64_t>(std::min(by_bytes, by_works) / 16 * 16, 16);
}

/// Products of one x with as many matrices as `bytes` hold, one node each.
Arm product_arm(Device& device, const Shape& s, std::byte* weights, std::size_t bytes,
                const Options& options, int threads) {
  const auto of_one = static_cast<std::size_t>(s.n * s.k) * size_of(s.weights);
  const std::size_t count = std::max<std::size_t>(bytes / of_one, 1);
  const std::int64_t tile_n = options.tile_n > 0 ? options.tile_n : tile_n_for(s, threads);
  Plan plan({.name = "products"});
  const TensorId x = plan.tensor({.name = "x", .shape = {s.m, s.k}, .kind = TensorKind::kConstant});
  for (std::size_t i = 0; i < count; ++i) {
    const TensorId w = plan.tensor({.name = "W" + std::to_string(i),
                                    .shape = {s.n, s.k},
                                    .dtype = s.weights,
                                    .kind = TensorKind::kConstant,
                                    .address = weights + i * of_one});
    const TensorId y = plan.tensor({.name = "y" + std::to_string(i), .shape = {s.m, s.n}});
    plan.add(gemm(plan.tensors(),
                  {.name = "product " + std::to_string(i),
                   .tile_m = 64,
                   .tile_n = tile_n,
                   .b_layout = BLayout::kNxK},
                  x, w, y));
  }
  auto program = std::make_shared<Program>(device, std::move(plan));
  program->write(x, std::vector<float>(static_cast<std::size_t>(s.m * s.k), 0.25F));
  Arm arm;
  arm.name = std::to_string(s.m) + " x " + std::to_string(s.n) + " x " + std::to_string(s.k) + " " +
             name_of(s.weights);
  arm.run = [program] {
    program->run();
    program->synchronize();
  };
  arm.bytes = static_cast<double>(of_one * count);
  arm.flops = 2.0 * static_cast<double>(s.m * s.n * s.k) * static_cast<double>(count);
  arm.shape = s;
  arm.tile_n = tile_n;
  return arm;
}

/// Runs work(thread) on `threads` threads.
void on_threads(int threads, const std::function<void(int)>& work) {
  std::vector<std::thread> others;
  for (int t = 1; t < threads; ++t) others.emplace_back(work, t);
  work(0);
  for (std::thread& other : others) other.join();
}

Arm read_arm(const std::byte* weights, std::size_t bytes, int threads) {
  Arm arm;
  arm.name = "sequential read";
  arm.bytes = static_cast<double>(bytes);
  arm.run = [=] {
    on_threads(threads, [=](int t) {
      const std::size_t share = bytes / static_cast<std::size_t>(threads) / 256 * 256;
      const volatile std::uint32_t sum =
          bench::read_all(weights + static_cast<std::size_t>(t) * share, share);
      static_cast<void>(sum);
    });
  };
  return arm;
}

Arm multiply_add_arm(int threads) {
  constexpr std::int64_t kRounds = 20'000'000;
  float result = 0;
  Arm arm;
  arm.name = "multiply-adds in registers";
  arm.flops = static_cast<double>(bench::multiply_add_rounds(1, &result)) * kRounds * threads;
  arm.run = [=] {
    on_threads(threads, [](int) {
      float sum = 0;
      bench::multiply_add_rounds(kRounds, &sum);
      const volatile float kept = sum;
      static_cast<void>(kept);
    });
  };
  return arm;
}

double median(std::vector<double> values) {
  std::sort(values.begin(), values.end());
  return values[values.size() / 2];
}

void fill_weights(std::byte* weights, std::size_t bytes) {
  // Halfwords with the exponent of small numbers, in bf16 as in f16; the same bits serve f32.
  auto* words = reinterpret_cast<std::uint16_t*>(weights);
  std::uint32_t state = 7;
  for (std::size_t i = 0; i < bytes / 2; ++i) {
    state = state * 1664525U + 1013904223U;
    words[i] = static_cast<std::uint16_t>(0x3c00U | (state >> 25) | ((state >> 9) & 0x8000U));
  }
}

int run(int argc, char** argv) {
  Options options;
  for (int i = 1; i + 1 < argc; i += 2) {
    if (std::strcmp(argv[i], "--repeat") == 0) options.repeat = std::atoi(argv[i + 1]);
    if (std::strcmp(argv[i], "--megabytes") == 0) options.megabytes = std::atoll(argv[i + 1]);
    if (std::strcmp(argv[i], "--tile-n") == 0) options.tile_n = std::atoll(argv[i + 1]);
    if (std::strcmp(argv[i], "--json") == 0) options.json_file = argv[i + 1];
  }
  const std::unique_ptr<Device> device = open_cpu_device();
  add_gemm(*device);
  const int threads = static_cast<int>(device->limits().num_sms);
  const auto bytes = static_cast<std::size_t>(options.megabytes) << 20U;
  auto* const weights = static_cast<std::byte*>(device->allocate(bytes));
  fill_weights(weights, bytes);

  std::vector<Arm> arms;
  arms.push_back(read_arm(weights, bytes, threads));
  arms.push_back(multiply_add_arm(threads));
  const std::vector<std::pair<std::int64_t, std::int64_t>> matrices = {
      {1536, 576}, {576, 1536}, {49152, 576}, {4096, 4096}};
  for (const auto& [n, k] : matrices) {
    arms.push_back(product_arm(*device, {1, n, k, DType::kBF16}, weights, bytes, options, threads));
  }
  arms.push_back(
      product_arm(*device, {1, 4096, 4096, DType::kF16}, weights, bytes, options, threads));
  arms.push_back(
      product_arm(*device, {1, 4096, 4096, DType::kF32}, weights, bytes, options, threads));
  arms.push_back(
      product_arm(*device, {4, 4096, 4096, DType::kBF16}, weights, bytes, options, threads));
  for (const auto& [n, k] : matrices) {
    arms.push_back(
        product_arm(*device, {64, n, k, DType::kBF16}, weights, bytes / 16, options, threads));
  }
  arms.push_back(
      product_arm(*device, {64, 4096, 4096, DType::kF32}, weights, bytes / 16, options, threads));

  for (int r = -1; r < options.repeat; ++r) {
    for (Arm& arm : arms) {
      const std::clock_t cpu_begin = std::clock();
      const auto begin = std::chrono::steady_clock::now();
      arm.run();
      const std::chrono::duration<double> took = std::chrono::steady_clock::now() - begin;
      if (r < 0) continue;
      arm.seconds.push_back(took.count());
      arm.cpu_seconds.push_back(static_cast<double>(std::clock() - cpu_begin) / CLOCKS_PER_SEC);
    }
  }

  const double read_rate = arms[0].bytes / median(arms[0].seconds);
  const double read_cpu_rate = arms[0].bytes / median(arms[0].cpu_seconds);
  const double peak = arms[1].flops / median(arms[1].seconds);
  const double peak_cpu = arms[1].flops / median(arms[1].cpu_seconds);
  std::printf("%d threads, %d runs, medians; shares by the clock and by processor time\n", threads,
              options.repeat);
  std::string json;
  for (const Arm& arm : arms) {
    const double seconds = median(arm.seconds);
    const double cpu = median(arm.cpu_seconds);
    const double rate = arm.bytes / seconds;
    const double flops = arm.flops / seconds;
    std::printf(
        "  %-26s tile_n %4lld %8.2f ms %6.2f GB/s, of the read %4.2f %4.2f %7.1f GFLOP/s, of the "
        "peak %4.2f %4.2f\n",
        arm.name.c_str(), static_cast<long long>(arm.tile_n), seconds * 1e3, rate * 1e-9,
        rate / read_rate, arm.bytes / cpu / read_cpu_rate, flops * 1e-9, flops / peak,
        arm.flops / cpu / peak_cpu);
    json += (json.empty() ? "" : ",\n  ") + std::string("{\"arm\": \"") + arm.name +
            "\", \"tile_n\": " + std::to_string(arm.tile_n) +
            ", \"ms\": " + std::to_string(seconds * 1e3) +
            ", \"cpu_ms\": " + std::to_string(cpu * 1e3) +
            ", \"gb_per_s\": " + std::to_string(rate * 1e-9) +
            ", \"share_of_read\": " + std::to_string(rate / read_rate) +
            ", \"gflop_per_s\": " + std::to_string(flops * 1e-9) +
            ", \"share_of_peak\": " + std::to_string(flops / peak) +
            ", \"repeat\": " + std::to_string(arm.seconds.size()) + "}";
  }
  if (!options.json_file.empty()) {
    write_file_atomically(options.json_file, "[\n  " + json + "\n]\n");
  }
  arms.clear();
  device->release(weights);
  return 0;
}

}  // namespace

int main(int argc, char** argv) {
  try {
    return run(argc, argv);
  } catch (const std::exception& error) {
    std::fprintf(stderr, "gemm_cpu_bench: %s\n", error.what());
    return 1;
  }
}
