// chain_bench: a chain of dependent weight-streaming products, every launch policy with the same
// code, in one run: bare read, serial, pdl, tile, and one persistent kernel. Prints a table and
// writes JSON. Weights are cold (each size streams far more than the L2), inputs random, arms
// alternate, medians.
//
//   chain_bench [--repeat R] [--json FILE]
#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <exception>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "bench/random_fill.cuh"
#include "bench/runtime/weight_stream.h"
#include "tileweave/core/atomic_file.h"
#include "tileweave/core/dtype.h"
#include "tileweave/runtime/cuda/run_timer.h"
#include "tileweave/runtime/program.h"

namespace {

using namespace tileweave;  // NOLINT: a program of its own

double median(std::vector<double> values) {
  std::sort(values.begin(), values.end());
  return values[values.size() / 2];
}

struct Arm {
  std::string name;
  std::unique_ptr<Program> program;
  TensorId output = kNoTensor;
  std::vector<double> ms;
  bool computes = true;
};

struct Case {
  bench::StreamShape shape;
  int length;
};

/// Device memory of one case: weights of all products, and the input.
class Weights {
 public:
  Weights(Device& device, const Case& c)
      : device_(device), bytes_(bench::packed_bytes(c.shape.n, c.shape.n)) {
    w_ = static_cast<std::byte*>(device.allocate(static_cast<std::size_t>(bytes_) * c.length));
    x_ = device.allocate(static_cast<std::size_t>(c.shape.n) * 2);
    // Uniform in ±a has variance a²/3: a = sqrt(3 / K) keeps activations of unit size.
    const float amplitude = std::sqrt(3.0F / static_cast<float>(c.shape.n));
    bench::fill_random_bf16(w_, bytes_ / 2 * c.length, amplitude, 7);
    bench::fill_random_bf16(x_, c.shape.n, 1.7F, 11);
  }
  ~Weights() {
    device_.release(w_);
    device_.release(x_);
  }
  Weights(const Weights&) = delete;
  Weights& operator=(const Weights&) = delete;

  void* of_product(int i) const { return w_ + i * bytes_; }
  void* x() const { return x_; }
  std::int64_t bytes() const { return bytes_; }

 private:
  Device& device_;
  std::int64_t bytes_;
  std::byte* w_ = nullptr;
  void* x_ = nullptr;
};

TensorId weight_tensor(Plan& plan, const Weights& weights, int i, std::int64_t bytes) {
  return plan.tensor({.name = "W" + std::to_string(i),
                      .shape = {bytes},
                      .dtype = DType::kU8,
                      .kind = TensorKind::kConstant,
                      .address = weights.of_product(i)});
}

TensorId input_tensor(Plan& plan, const Weights& weights, const Case& c) {
  return plan.tensor({.name = "x",
                      .shape = {c.shape.n},
                      .dtype = DType::kBF16,
                      .kind = TensorKind::kConstant,
                      .address = weights.x()});
}

Arm chain_arm(Device& device, const Weights& weights, const Case& c, const std::string& name,
              const EdgePolicy& edge, int num_streams) {
  Plan plan({.name = name, .num_streams = num_streams, .edge = edge});
  TensorId x = input_tensor(plan, weights, c);
  for (int i = 0; i < c.length; ++i) {
    const TensorId w = weight_tensor(plan, weights, i, weights.bytes());
    const TensorId y = plan.tensor({.name = "y" + std::to_string(i),
                                    .shape = {c.shape.n},
                                    .dtype = DType::kBF16,
                                    .tiles = {c.shape.n},
                                    .output = i + 1 == c.length});
    NodeSpec node = bench::weight_stream(c.shape, plan.tensors(), w, x, y, edge);
    node.name = "product " + std::to_string(i);
    plan.add(std::move(node));
    x = y;
  }
  Arm arm;
  arm.name = name;
  arm.output = x;
  arm.program = std::make_unique<Program>(device, std::move(plan),
                                          RunOptions{.launch_order = LaunchOrder::kTrusted});
  for (const EdgeReport& report : arm.program->verdict().edges) {
    if (report.kind != report.requested) {
      arm.name += " (downgraded: " + report.why + ")";
      break;
    }
  }
  return arm;
}

Arm bare_arm(Device& device, const Weights& weights, const Case& c) {
  Plan plan({.name = "bare read", .edge = {.kind = EdgeKind::kFull}});
  for (int i = 0; i < c.length; ++i) {
    NodeSpec node = bench::bare_read(c.shape, weight_tensor(plan, weights, i, weights.bytes()));
    node.name = "read " + std::to_string(i);
    plan.add(std::move(node));
  }
  Arm arm;
  arm.name = "bare read";
  arm.computes = false;
  arm.program = std::make_unique<Program>(device, std::move(plan));
  return arm;
}

Arm persistent_arm(Device& device, const Weights& weights, const Case& c) {
  Plan plan({.name = "persistent", .edge = {.kind = EdgeKind::kFull}});
  const TensorId w = weight_tensor(plan, weights, 0, weights.bytes() * c.length);
  const TensorId x = input_tensor(plan, weights, c);
  const TensorId y = plan.tensor({.name = "y",
                                  .shape = {c.length, c.shape.blocks, c.shape.n / c.shape.blocks},
                                  .dtype = DType::kBF16,
                                  .output = true});
  plan.add(bench::persistent_chain(c.shape, c.length, plan.tensors(), w, x, y));
  Arm arm;
  arm.name = "persistent";
  arm.output = y;
  arm.program = std::make_unique<Program>(device, std::move(plan));
  return arm;
}

std::vector<BFloat16> result_of(Arm& arm, std::int64_t n) {
  std::vector<BFloat16> values = arm.program->read<BFloat16>(arm.output);
  return {values.end() - n, values.end()};
}

/// First product against plain loops over the unpacked weights.
double first_product_error(Device& device, const Weights& weights, const Case& c, Arm& arm) {
  std::vector<unsigned char> packed(static_cast<std::size_t>(weights.bytes()));
  std::vector<BFloat16> x(static_cast<std::size_t>(c.shape.n));
  device.download(packed.data(), weights.of_product(0), packed.size());
  device.download(x.data(), weights.x(), x.size() * 2);
  std::vector<BFloat16> y = arm.program->read<BFloat16>(arm.output);
  double error = 0;
  double norm = 0;
  const std::int64_t chunks = c.shape.n / bench::kColumnsPerChunk;
  for (std::int64_t row = 0; row < c.shape.n; ++row) {
    double sum = 0;
    for (std::int64_t k = 0; k < c.shape.n; ++k) {
      const std::int64_t chunk = row / bench::kRowsPerTile * chunks + k / bench::kColumnsPerChunk;
      BFloat16 value;
      std::memcpy(&value,
                  packed.data() + chunk * bench::kChunkBytes +
                      row % bench::kRowsPerTile * bench::kRowBytes +
                      k % bench::kColumnsPerChunk * 2,
                  2);
      sum += static_cast<double>(to_float(value)) *
             static_cast<double>(to_float(x[static_cast<std::size_t>(k)]));
    }
    const double got = static_cast<double>(to_float(y[static_cast<std::size_t>(row)]));
    error += (got - sum) * (got - sum);
    norm += sum * sum;
  }
  return std::sqrt(error / norm);
}

/// The least of each arm over the configurations of one size, and starts anew.
void print_best(std::map<std::string, double>& best) {
  std::printf("  best of each:");
  for (const auto& [arm, us] : best) {
    std::printf("  %s %.2f (saves %.2f)", arm.c_str(), us, best["serial"] - us);
  }
  std::printf("\n");
  best.clear();
}

void run_case(Device& device, const Case& c, int repeat, std::string& json,
              std::map<std::string, double>& best) {
  const Weights weights(device, c);
  const EdgePolicy full{.kind = EdgeKind::kFull};
  const EdgePolicy pdl{.kind = EdgeKind::kProgrammatic};
  const EdgePolicy tile{.kind = EdgeKind::kTile};
  const EdgePolicy tile_lc{.kind = EdgeKind::kTile, .start = StartRule::kLaunchCompletion};
  std::vector<Arm> arms;
  arms.push_back(bare_arm(device, weights, c));
  arms.push_back(chain_arm(device, weights, c, "serial", full, 1));
  arms.push_back(chain_arm(device, weights, c, "pdl", pdl, 2));
  arms.push_back(chain_arm(device, weights, c, "tile", tile, 2));
  arms.push_back(chain_arm(device, weights, c, "tile launch_completion", tile_lc, 2));
  arms.push_back(chain_arm(device, weights, c, "tile launch_completion, 3 streams", tile_lc, 3));
  arms.push_back(chain_arm(device, weights, c, "tile launch_completion, 4 streams", tile_lc, 4));
  arms.push_back(persistent_arm(device, weights, c));

  RunTimer timer;
  for (int r = -2; r < repeat; ++r) {
    for (Arm& arm : arms) {
      const double seconds = timer.seconds(*arm.program, [&] { arm.program->run(); });
      if (r >= 0) arm.ms.push_back(seconds * 1e3);
    }
  }
  std::vector<BFloat16> expected;
  std::string verdict = "same bits";
  for (Arm& arm : arms) {
    if (!arm.computes) continue;
    const std::vector<BFloat16> got = result_of(arm, c.shape.n);
    if (expected.empty()) expected = got;
    if (std::memcmp(expected.data(), got.data(), got.size() * 2) != 0) {
      verdict = "`" + arm.name + "` DIFFERS";
      break;
    }
  }
  Case one = c;
  one.length = 1;
  Arm first = chain_arm(device, weights, one, "first", full, 1);
  first.program->run();
  first.program->synchronize();
  const double error = first_product_error(device, weights, one, first);

  const double mb = static_cast<double>(weights.bytes()) * 1e-6;
  std::printf(
      "%.1f MB a node, ring of %d, window %d, %d blocks, chain of %d; results: %s; first product "
      "off by %.1e\n",
      mb, c.shape.stages, c.shape.window, c.shape.blocks, c.length, verdict.c_str(), error);
  const double serial_us = median(arms[1].ms) * 1e3 / c.length;
  for (Arm& arm : arms) {
    const double us = median(arm.ms) * 1e3 / c.length;
    const std::string kind = arm.name.substr(0, arm.name.find(' '));  // of tile arms: "tile"
    const auto [least, is_first] = best.try_emplace(kind, us);
    if (!is_first) least->second = std::min(least->second, us);
    std::printf("  %-34s %8.2f us/node  %6.2f TB/s  saves %6.2f us\n", arm.name.c_str(), us,
                mb / us, serial_us - us);
    json += (json.empty() ? "" : ",\n  ") + std::string("{\"mb\": ") + std::to_string(mb) +
            ", \"stages\": " + std::to_string(c.shape.stages) +
            ", \"window\": " + std::to_string(c.shape.window) +
            ", \"blocks\": " + std::to_string(c.shape.blocks) + ", \"arm\": \"" + arm.name +
            "\", \"us_per_node\": " + std::to_string(us) +
            ", \"repeat\": " + std::to_string(arm.ms.size()) + "}";
  }
  if (verdict != "same bits" || !(error < 1e-2))
    throw Error("chain_bench", "right results", verdict);
}

int run(int argc, char** argv) {
  int repeat = 20;
  std::string json_file;
  for (int i = 1; i + 1 < argc; i += 2) {
    if (std::strcmp(argv[i], "--repeat") == 0) repeat = std::atoi(argv[i + 1]);
    if (std::strcmp(argv[i], "--json") == 0) json_file = argv[i + 1];
  }
  const std::unique_ptr<Device> device = open_cuda_device();
  bench::add_weight_stream(device->kernels());
  std::printf("%s\n", device->limits().name.c_str());
  std::string json;
  std::map<std::string, double> best;
  // Rings for three blocks an SM (4 stages), two (5) and one (10, 11); 128 blocks, or 64, so that
  // two kernels lie side by side; copies in flight without limit, or as few as keep the memory
  // busy.
  const std::vector<Case> cases = {
      {{.n = 2048, .stages = 4, .window = 1}, 128},
      {{.n = 2048, .stages = 4, .window = 2}, 128},
      {{.n = 2048, .stages = 5}, 128},
      {{.n = 2048, .stages = 5, .window = 1}, 128},
      {{.n = 2048, .stages = 11}, 128},
      {{.n = 2048, .stages = 11, .window = 2}, 128},
      {{.n = 2048, .stages = 11, .blocks = 64}, 128},
      {{.n = 4096, .stages = 4, .window = 2}, 64},
      {{.n = 4096, .stages = 5}, 64},
      {{.n = 4096, .stages = 5, .window = 3}, 64},
      {{.n = 4096, .stages = 11}, 64},
      {{.n = 4096, .stages = 11, .window = 3}, 64},
      {{.n = 6144, .stages = 11}, 32},
      {{.n = 6144, .stages = 11, .window = 3}, 32},
      {{.n = 8192, .stages = 10}, 32},
      {{.n = 8192, .stages = 10, .window = 3}, 32},
  };
  for (const Case& c : cases) {
    run_case(*device, c, repeat, json, best);
    if (&c == &cases.back() || (&c + 1)->shape.n != c.shape.n) print_best(best);
  }
  if (!json_file.empty()) {
    write_file_atomically(json_file, "[\n  " + json + "\n]\n");
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
