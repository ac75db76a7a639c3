// skinny_gemm_bench: decode products alone and in dependent chains, against a bare read of the same
// bytes, in one run. Every node has weights of its own, so that they are cold; arms alternate.
//
//   skinny_gemm_bench [--repeat R] [--rows LIST] [--json FILE]
#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <exception>
#include <memory>
#include <string>
#include <vector>

#include "bench/arms.h"
#include "bench/bare_read.cuh"
#include "bench/random_fill.cuh"
#include "tileweave/core/atomic_file.h"
#include "tileweave/core/error.h"
#include "tileweave/kernels/gemm/skinny_gemm.h"
#include "tileweave/models/device_memory.h"
#include "tileweave/runtime/program.h"

namespace {

using namespace tileweave;  // NOLINT: a program of its own
using bench::Arm;
using bench::median;
using bench::time_in_turn;

struct Case {
  std::string name;
  std::int64_t n, k;
  bool gated = false, norm = false, residual = false;
  bool chain = false;  // square: each product takes the one before
};

struct Bench {
  Device& device;
  Case c;
  std::int64_t m;
  int length;
  PackedLayout layout;
  DeviceMemory weights, x, norm, residual;

  Bench(Device& d, const Case& which, std::int64_t rows, std::int64_t most_bytes)
      : device(d),
        c(which),
        m(rows),
        length(0),
        layout{.n = which.n,
               .k = which.k,
               .order = which.gated ? StripOrder::kPaired : StripOrder::kRows},
        weights(d, static_cast<std::size_t>(count(most_bytes) * layout.bytes())),
        x(d, static_cast<std::size_t>(rows * which.k * 4)),
        norm(d, static_cast<std::size_t>(which.k * 2)),
        residual(d, static_cast<std::size_t>(rows * which.n * 4)) {
    length = static_cast<int>(count(most_bytes));
    const float amplitude = 1.7F / std::sqrt(static_cast<float>(c.k)) * 1.7F;
    bench::fill_random_bf16(weights.at(), layout.bytes() / 2 * length, amplitude, 7);
    bench::fill_random_bf16(x.at(), m * c.k * 2, 1.7F, 11);
    bench::fill_random_bf16(norm.at(), c.k, 1.0F, 13);
    bench::fill_random_bf16(residual.at(), m * c.n * 2, 1.0F, 17);
  }
  std::int64_t count(std::int64_t most_bytes) const {
    return std::clamp<std::int64_t>(most_bytes / layout.bytes(), 8, 128);
  }

  TensorId constant(Plan& plan, const std::string& name, const Shape& shape, DType dtype,
                    void* at) const {
    return plan.tensor({.name = name,
                        .shape = shape,
                        .dtype = dtype,
                        .kind = TensorKind::kConstant,
                        .address = at});
  }

  Arm products(const std::string& name, const SkinnyGemmOptions& options, const EdgePolicy& edge,
               std::int32_t streams) const {
    Plan plan({.name = name, .num_streams = streams, .edge = edge});
    TensorId input = constant(plan, "x", {m, c.k}, c.norm ? DType::kF32 : DType::kBF16, x.at());
    const std::int64_t columns = c.gated ? c.n / 2 : c.n;
    for (int i = 0; i < length; ++i) {
      const std::string at = std::to_string(i);
      SkinnyGemmTensors t{.x = input};
      t.w = constant(plan, "w" + at, {c.n, c.k}, DType::kBF16, weights.at() + i * layout.bytes());
      if (c.norm) t.norm_weight = constant(plan, "norm" + at, {c.k}, DType::kBF16, norm.at());
      if (c.residual) {
        t.residual = constant(plan, "residual" + at, {m, columns}, DType::kF32, residual.at());
      }
      t.y = plan.tensor({.name = "y" + at,
                         .shape = {m, columns},
                         .dtype = c.chain && !c.norm ? DType::kBF16 : DType::kF32,
                         .tiles = {m, columns},
                         .output = i + 1 == length});
      SkinnyGemmOptions own = options;
      own.name = "product " + at;
      plan.add(skinny_gemm(plan.tensors(), own, t));
      if (c.chain) input = t.y;
    }
    return {.name = name,
            .program = std::make_unique<Program>(
                device, std::move(plan), RunOptions{.launch_order = LaunchOrder::kTrusted})};
  }

  Arm bare(std::int64_t blocks) const {
    Plan plan({.name = "bare", .edge = {.kind = EdgeKind::kFull}});
    for (int i = 0; i < length; ++i) {
      const TensorId w = constant(plan, "w" + std::to_string(i), {layout.bytes()}, DType::kU8,
                                  weights.at() + i * layout.bytes());
      plan.add(
          bench::bare_read_node("read " + std::to_string(i), w, layout.bytes(), blocks, norm.at()));
    }
    return {.name = "bare read, " + std::to_string(blocks) + " blocks",
            .program = std::make_unique<Program>(device, std::move(plan))};
  }
};

std::string edge_name(const EdgePolicy& edge) {
  return edge.kind == EdgeKind::kTile ? std::string("tile ") + name_of(edge.start)
                                      : name_of(edge.kind);
}

void run_case(Device& device, const Case& c, std::int64_t m, int repeat, std::string& json) {
  const Bench bench(device, c, m, std::int64_t{3} << 30);
  std::vector<Arm> arms;
  for (const std::int64_t blocks : {132, 264, 528}) arms.push_back(bench.bare(blocks));
  const auto num_bare = arms.size();
  struct Cut {
    std::int32_t per_sm;
    std::int64_t window;
  };
  std::vector<EdgePolicy> edges = {{.kind = EdgeKind::kFull}};
  if (c.chain) {
    edges.push_back({.kind = EdgeKind::kProgrammatic});
    edges.push_back({.kind = EdgeKind::kTile, .start = StartRule::kLaunchCompletion});
  }
  for (const Cut& cut : {Cut{1, 2}, Cut{1, 3}, Cut{1, 6}, Cut{2, 1}, Cut{2, 2}}) {
    for (const EdgePolicy& edge : edges) {
      const SkinnyGemmOptions options =
          skinny_gemm_cut(m, c.n, c.k, device.limits().num_sms,
                          {.gated = c.gated, .window = cut.window}, cut.per_sm, c.norm);
      arms.push_back(bench.products(edge_name(edge) + ", " + std::to_string(cut.per_sm) +
                                        "/SM, ring " + std::to_string(options.stages) +
                                        ", window " + std::to_string(cut.window) + ", " +
                                        std::to_string(options.strips_per_work) +
                                        " strips, split " + std::to_string(options.split_k),
                                    options, edge, edge.kind == EdgeKind::kTile ? 3 : 2));
    }
  }
  time_in_turn(arms, bench.length, repeat, [] {});
  double bare = 1e30;
  for (std::size_t i = 0; i < num_bare; ++i) bare = std::min(bare, median(arms[i].us));
  const double mb = static_cast<double>(bench.layout.bytes()) * 1e-6;
  std::printf("%s: %lld x %lld, %lld rows, %.1f MB, %d nodes; bare read %.2f us\n", c.name.c_str(),
              static_cast<long long>(c.n), static_cast<long long>(c.k), static_cast<long long>(m),
              mb, bench.length, bare);
  for (std::size_t i = num_bare; i < arms.size(); ++i) {
    const double us = median(arms[i].us);
    std::printf("  %-62s %8.2f us  bare %+6.2f  %5.2f TB/s\n", arms[i].name.c_str(), us, us - bare,
                mb / us);
    json += (json.empty() ? "" : ",\n  ") + std::string("{\"case\": \"") + c.name +
            "\", \"rows\": " + std::to_string(m) + ", \"mb\": " + std::to_string(mb) +
            ", \"arm\": \"" + arms[i].name + "\", \"us\": " + std::to_string(us) +
            ", \"bare_us\": " + std::to_string(bare) + ", \"repeat\": " + std::to_string(repeat) +
            "}";
  }
}

int run(int argc, char** argv) {
  int repeat = 11;
  std::string json_file;
  std::vector<std::int64_t> rows = {1, 8, 16};
  for (int i = 1; i + 1 < argc; i += 2) {
    if (std::strcmp(argv[i], "--repeat") == 0) repeat = std::atoi(argv[i + 1]);
    if (std::strcmp(argv[i], "--json") == 0) json_file = argv[i + 1];
    if (std::strcmp(argv[i], "--rows") == 0) {
      rows.clear();
      for (const char* at = argv[i + 1]; *at != 0;) {
        char* next = nullptr;
        rows.push_back(std::strtol(at, &next, 10));
        at = *next == ',' ? next + 1 : next;
        if (*next != ',' && *next != 0)
          throw Error("read --rows", "a list like 1,8,16", argv[i + 1]);
      }
    }
  }
  const std::unique_ptr<Device> device = open_cuda_device();
  add_skinny_gemm(*device);
  bench::add_bare_read(device->kernels());
  std::printf("%s\n", device->limits().name.c_str());
  const std::vector<Case> cases = {
      {.name = "square 8 MB", .n = 2048, .k = 2048, .chain = true},
      {.name = "square 34 MB", .n = 4096, .k = 4096, .chain = true},
      {.name = "square 77 MB", .n = 6144, .k = 6144, .chain = true},
      {.name = "square 136 MB", .n = 8192, .k = 8192, .chain = true},
      {.name = "square 8 MB, norm", .n = 2048, .k = 2048, .norm = true, .chain = true},
      {.name = "square 34 MB, norm", .n = 4096, .k = 4096, .norm = true, .chain = true},
      {.name = "qkv 1B, norm", .n = 3072, .k = 2048, .norm = true},
      {.name = "gate-up 1B, norm", .n = 16384, .k = 2048, .gated = true, .norm = true},
      {.name = "down 1B", .n = 2048, .k = 8192, .residual = true},
      {.name = "down 8B", .n = 4096, .k = 12288, .residual = true},
  };
  std::string json;
  for (const std::int64_t m : rows) {
    for (const Case& c : cases) run_case(*device, c, m, repeat, json);
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
