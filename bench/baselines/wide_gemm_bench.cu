// wide_gemm_bench: products of many rows, as prompts have them, against cuBLASLt (its fastest
// candidate, tuned in a graph) and against skinny_gemm 64 rows at a time, in one run. Every node
// has weights of its own, so that they come from memory; arms take turns; medians.
//
//   wide_gemm_bench [--repeat R] [--rows LIST] [--json FILE]
#include <cuda_runtime.h>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <exception>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "bench/baselines/graph_recorder.cuh"
#include "bench/baselines/tuned_product.cuh"
#include "bench/random_fill.cuh"
#include "tileweave/core/atomic_file.h"
#include "tileweave/core/error.h"
#include "tileweave/kernels/gemm/skinny_gemm.h"
#include "tileweave/kernels/gemm/wide_gemm.h"
#include "tileweave/runtime/cuda/cuda_status.cuh"
#include "tileweave/runtime/cuda/run_timer.h"
#include "tileweave/runtime/device_memory.h"
#include "tileweave/runtime/program.h"

namespace {

using namespace tileweave;  // NOLINT: a program of its own

constexpr std::int64_t kWeightBytes = std::int64_t{512} << 20;  // far more than the L2 holds
constexpr double kPeak = 989.4e12;                              // dense bf16, H100 and H200

struct Case {
  std::int64_t n, k;
};

double median(std::vector<double> values) {
  std::sort(values.begin(), values.end());
  return values[values.size() / 2];
}

/// Operands of one case: weights both row-major and packed, as many as kWeightBytes hold.
struct Operands {
  Case c;
  std::int64_t m;
  PackedLayout layout;
  int length;
  DeviceMemory row_major, packed, x, y;

  Operands(Device& device, const Case& which, std::int64_t rows)
      : c(which),
        m(rows),
        layout{.n = which.n, .k = which.k},
        length(static_cast<int>(std::max<std::int64_t>(4, kWeightBytes / layout.bytes()))),
        row_major(device, static_cast<std::size_t>(layout.bytes() * length)),
        packed(device, static_cast<std::size_t>(layout.bytes() * length)),
        x(device, static_cast<std::size_t>(rows * which.k * 2)),
        y(device, static_cast<std::size_t>(rows * which.n * 4)) {
    bench::fill_random_bf16(row_major.at(), c.n * c.k * length,
                            1.7F / std::sqrt(static_cast<float>(c.k)), 7);
    bench::fill_random_bf16(x.at(), m * c.k, 1.7F, 11);
    for (int i = 0; i < length; ++i) {
      pack_weights_on(device, reinterpret_cast<const BFloat16*>(row_major_at(i)), layout,
                      reinterpret_cast<BFloat16*>(packed.at() + i * layout.bytes()));
    }
  }
  const std::byte* row_major_at(int i) const { return row_major.at() + i * c.n * c.k * 2; }
};

struct Arm {
  std::string name;
  std::function<double()> seconds;  // of one replay
  std::vector<double> us = {};      // per product
};

/// A plan of all the products; they wait for nothing but each other (`edge`), as they read
/// constants. `split_k`: of wide_gemm; 0: skinny_gemm, as many rows at a time as it takes.
std::unique_ptr<Program> program_of(Device& device, const Operands& at, const EdgePolicy& edge,
                                    std::int64_t split_k) {
  const std::int64_t rows_per_node = split_k > 0 ? at.m : kSkinnyMostRows;
  Plan plan({.name = "products", .num_streams = 1, .edge = edge});
  const auto constant = [&](const std::string& name, const Shape& shape, void* address) {
    return plan.tensor({.name = name,
                        .shape = shape,
                        .dtype = DType::kBF16,
                        .kind = TensorKind::kConstant,
                        .address = address});
  };
  for (int i = 0; i < at.length; ++i) {
    const std::string name = std::to_string(i);
    const TensorId w =
        constant("w" + name, {at.c.n, at.c.k}, at.packed.at() + i * at.layout.bytes());
    for (std::int64_t row = 0; row < at.m; row += rows_per_node) {
      const std::int64_t rows = std::min(rows_per_node, at.m - row);
      const std::string part = name + " rows " + std::to_string(row);
      const TensorId x = constant("x" + part, {rows, at.c.k}, at.x.at() + row * at.c.k * 2);
      const TensorId y =
          plan.tensor({.name = "y" + part, .shape = {rows, at.c.n}, .tiles = {rows, at.c.n}});
      if (split_k > 0) {
        plan.add(wide_gemm(plan.tensors(), {.name = part, .split_k = split_k},
                           {.x = x, .w = w, .y = y}));
      } else {
        const SkinnyGemmOptions options =
            skinny_gemm_cut(rows, at.c.n, at.c.k, device.limits().num_sms, {.name = part});
        plan.add(skinny_gemm(plan.tensors(), options, {.x = x, .w = w, .y = y}));
      }
    }
  }
  return std::make_unique<Program>(device, std::move(plan));
}

/// Replays of a recorded graph between two events.
class GraphTimer {
 public:
  GraphTimer() {
    check_cuda(cudaStreamCreate(&stream_), "create a stream");
    check_cuda(cudaEventCreate(&begin_), "create an event");
    check_cuda(cudaEventCreate(&end_), "create an event");
  }
  GraphTimer(const GraphTimer&) = delete;
  GraphTimer& operator=(const GraphTimer&) = delete;
  ~GraphTimer() {
    cudaEventDestroy(begin_);
    cudaEventDestroy(end_);
    cudaStreamDestroy(stream_);
  }
  cudaStream_t stream() const { return stream_; }
  double seconds(const bench::GraphRecorder& recorder) const {
    check_cuda(cudaEventRecord(begin_, stream_), "record an event");
    recorder.replay(stream_);
    check_cuda(cudaEventRecord(end_, stream_), "record an event");
    check_cuda(cudaEventSynchronize(end_), "wait for a graph");
    float ms = 0;
    check_cuda(cudaEventElapsedTime(&ms, begin_, end_), "read a time");
    return static_cast<double>(ms) * 1e-3;
  }

 private:
  cudaStream_t stream_ = nullptr;
  cudaEvent_t begin_ = nullptr;
  cudaEvent_t end_ = nullptr;
};

/// ||a - b|| / ||b|| of the results of one product by both.
double difference(Device& device, const Operands& at, const bench::TunedProduct& product,
                  cudaStream_t stream) {
  Plan plan;
  const TensorId x = plan.tensor({.name = "x",
                                  .shape = {at.m, at.c.k},
                                  .dtype = DType::kBF16,
                                  .kind = TensorKind::kConstant,
                                  .address = at.x.at()});
  const TensorId w = plan.tensor({.name = "w",
                                  .shape = {at.c.n, at.c.k},
                                  .dtype = DType::kBF16,
                                  .kind = TensorKind::kConstant,
                                  .address = at.packed.at()});
  const TensorId y = plan.tensor({.name = "y", .shape = {at.m, at.c.n}, .output = true});
  plan.add(wide_gemm(plan.tensors(), {}, {.x = x, .w = w, .y = y}));
  Program program(device, std::move(plan));
  program.run();
  program.synchronize();
  const std::vector<float> ours = program.read<float>(y);
  product.enqueue(stream, at.row_major.at(), at.x.at(), at.y.at());
  check_cuda(cudaStreamSynchronize(stream), "multiply with cuBLASLt");
  std::vector<float> theirs(ours.size());
  device.download(theirs.data(), at.y.at(), theirs.size() * sizeof(float));
  double squares = 0;
  double errors = 0;
  for (std::size_t i = 0; i < ours.size(); ++i) {
    const double d = static_cast<double>(ours[i]) - static_cast<double>(theirs[i]);
    errors += d * d;
    squares += static_cast<double>(theirs[i]) * static_cast<double>(theirs[i]);
  }
  return std::sqrt(errors / squares);
}

void run_case(Device& device, const CublasLt& library, const Case& c, std::int64_t m, int repeat,
              std::string& json) {
  const Operands at(device, c, m);
  const GraphTimer timer;
  bench::TunedProduct product(library, {.m = m, .n = c.n, .k = c.k}, device);
  bench::TuneOperands tuned{.weights = {}, .x = at.x.at(), .y = at.y.at()};
  for (int i = 0; i < at.length; ++i) tuned.weights.push_back(at.row_major_at(i));
  product.tune(timer.stream(), tuned);
  const double off = difference(device, at, product, timer.stream());

  bench::GraphRecorder theirs(device);
  for (const void* w : tuned.weights) {
    theirs.add("product",
               [&, w](cudaStream_t stream) { product.enqueue(stream, w, at.x.at(), at.y.at()); });
  }
  theirs.record(timer.stream());
  RunTimer runs;
  std::vector<std::unique_ptr<Program>> programs;
  std::vector<Arm> arms;
  arms.push_back({.name = "cuBLASLt", .seconds = [&] { return timer.seconds(theirs); }});
  const auto add = [&](const std::string& name, const EdgePolicy& edge, std::int64_t split_k) {
    programs.push_back(program_of(device, at, edge, split_k));
    Program* program = programs.back().get();
    arms.push_back({.name = name, .seconds = [&runs, program] {
                      return runs.seconds(*program, [&] { program->run(); });
                    }});
  };
  const std::int64_t split = wide_gemm_split(m, c.n, c.k, device.limits().num_sms);
  add("wide_gemm, full, split " + std::to_string(split), {.kind = EdgeKind::kFull}, split);
  for (std::int64_t s = 1; s <= split; s *= 2) {
    add("wide_gemm, programmatic, split " + std::to_string(s), {.kind = EdgeKind::kProgrammatic},
        s);
  }
  add("skinny_gemm, 64 rows, programmatic", {.kind = EdgeKind::kProgrammatic}, 0);
  for (int r = -2; r < repeat; ++r) {
    for (Arm& arm : arms) {
      const double seconds = arm.seconds();
      if (r >= 0) arm.us.push_back(seconds * 1e6 / at.length);
    }
  }
  const double flops =
      2.0 * static_cast<double>(m) * static_cast<double>(c.n) * static_cast<double>(c.k);
  const double baseline = median(arms.front().us);
  std::printf("%lld rows, %lld x %lld, %d products; wide_gemm is %.1e off cuBLASLt\n",
              static_cast<long long>(m), static_cast<long long>(c.n), static_cast<long long>(c.k),
              at.length, off);
  for (const Arm& arm : arms) {
    const double us = median(arm.us);
    const double rate = flops / us * 1e6;
    std::printf("  %-36s %9.2f us  %6.1f TFLOP/s  %4.1f %% of dense bf16  %5.2f x cuBLASLt\n",
                arm.name.c_str(), us, rate * 1e-12, rate / kPeak * 100, baseline / us);
    json += (json.empty() ? "" : ",\n  ") + std::string("{\"rows\": ") + std::to_string(m) +
            ", \"n\": " + std::to_string(c.n) + ", \"k\": " + std::to_string(c.k) +
            ", \"arm\": \"" + arm.name + "\", \"us\": " + std::to_string(us) +
            ", \"tflops\": " + std::to_string(rate * 1e-12) + ", \"off\": " + std::to_string(off) +
            ", \"repeat\": " + std::to_string(repeat) + "}";
  }
}

int run(int argc, char** argv) {
  int repeat = 11;
  std::string json_file;
  std::vector<std::int64_t> rows = {128, 512, 2048};
  for (int i = 1; i + 1 < argc; i += 2) {
    if (std::strcmp(argv[i], "--repeat") == 0) repeat = std::atoi(argv[i + 1]);
    if (std::strcmp(argv[i], "--json") == 0) json_file = argv[i + 1];
    if (std::strcmp(argv[i], "--rows") == 0) {
      rows.clear();
      for (const char* from = argv[i + 1]; *from != 0;) {
        char* next = nullptr;
        rows.push_back(std::strtol(from, &next, 10));
        if (rows.back() < 1 || (*next != ',' && *next != 0)) {
          throw Error("read --rows", "a list of numbers, like 64,128,512", argv[i + 1]);
        }
        from = *next == ',' ? next + 1 : next;
      }
    }
  }
  const std::unique_ptr<Device> device = open_cuda_device();
  add_wide_gemm(*device);
  add_skinny_gemm(*device);
  if (!has_wide_gemm(*device)) throw Error("run wide_gemm", "a GPU of sm_90", "another");
  const CublasLt library;
  std::printf("%s, cuBLASLt %s\n", device->limits().name.c_str(), library.version().c_str());
  std::string json;
  for (const std::int64_t m : rows) {
    for (const Case& c : {Case{4096, 4096}, Case{14336, 4096}, Case{4096, 14336}}) {
      run_case(*device, library, c, m, repeat, json);
    }
  }
  if (!json_file.empty()) write_file_atomically(json_file, "[\n  " + json + "\n]\n");
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
