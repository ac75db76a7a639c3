#include "cli/bench_gemm.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <memory>

#include "cli/bench_nodes.h"
#include "cli/command_line.h"
#include "cli/cuda_machine.h"
#include "cli/hop_report.h"
#include "cli/kernel_report.h"
#include "cli/progress_bar.h"
#include "cli/timed_arms.h"
#include "tileweave/kernels/gemm/skinny_gemm.h"
#include "tileweave/models/random_fill.h"
#include "tileweave/runtime/device_memory.h"
#include "tileweave/runtime/program.h"

namespace tileweave::cli {
namespace {

/// Of all nodes of an arm: far more than the L2 holds.
constexpr std::int64_t kBytesOfWeights = std::int64_t{3} << 30;

enum class Feature : std::uint8_t { kNo, kYes };

struct Case {
  const char* name;
  std::int64_t n, k;
  Feature gated = Feature::kNo, norm = Feature::kNo, residual = Feature::kNo;
  Feature chain = Feature::kNo;  // square: each product takes the one before
};

constexpr bool has(Feature feature) {
  return feature == Feature::kYes;
}

constexpr Feature kYes = Feature::kYes;

constexpr Case kCases[] = {
    {.name = "square 8 MB", .n = 2048, .k = 2048, .chain = kYes},
    {.name = "square 34 MB", .n = 4096, .k = 4096, .chain = kYes},
    {.name = "square 77 MB", .n = 6144, .k = 6144, .chain = kYes},
    {.name = "square 136 MB", .n = 8192, .k = 8192, .chain = kYes},
    {.name = "square 8 MB, norm", .n = 2048, .k = 2048, .norm = kYes, .chain = kYes},
    {.name = "square 34 MB, norm", .n = 4096, .k = 4096, .norm = kYes, .chain = kYes},
    {.name = "qkv 1B, norm", .n = 3072, .k = 2048, .norm = kYes},
    {.name = "gate-up 1B, norm", .n = 16384, .k = 2048, .gated = kYes, .norm = kYes},
    {.name = "down 1B", .n = 2048, .k = 8192, .residual = kYes},
    {.name = "down 8B", .n = 4096, .k = 12288, .residual = kYes},
};

/// How a product is cut for a block; rings and windows differ in how much they fetch ahead.
struct Cut {
  std::int32_t per_sm;
  std::int64_t window;
};

constexpr Cut kCuts[] = {{1, 2}, {1, 3}, {1, 6}, {2, 1}, {2, 2}};

class Products {
 public:
  Products(Device& device, const Case& which, std::int64_t rows)
      : device_(device),
        case_(which),
        rows_(rows),
        layout_{.n = which.n,
                .k = which.k,
                .order = has(which.gated) ? StripOrder::kPaired : StripOrder::kRows},
        nodes_(std::clamp<std::int64_t>(kBytesOfWeights / layout_.bytes(), 8, 128)),
        weights_(device, static_cast<std::size_t>(nodes_ * layout_.bytes())),
        x_(device, static_cast<std::size_t>(rows * which.k * 4)),
        norm_(device, static_cast<std::size_t>(which.k * 2)),
        residual_(device, static_cast<std::size_t>(rows * which.n * 4)) {
    const float spread = 1.7F / std::sqrt(static_cast<float>(which.k)) * 1.7F;
    fill(weights_, layout_.bytes() / 2 * nodes_, spread, 7);
    // Two bf16 numbers are an f32 of the size of the second.
    fill(x_, rows * which.k * 2, 1.7F, 11);
    fill(norm_, which.k, 1.0F, 13);
    fill(residual_, rows * which.n * 2, 1.0F, 17);
  }

  std::int64_t nodes() const { return nodes_; }
  double mb() const { return static_cast<double>(layout_.bytes()) * 1e-6; }

  TimedArm products(const std::string& name, const SkinnyGemmOptions& options,
                    const EdgePolicy& edge, std::int32_t streams) const {
    Plan plan({.name = name, .num_streams = streams, .edge = edge});
    const bool norm = has(case_.norm), chain = has(case_.chain);
    TensorId input =
        constant(plan, "x", {rows_, case_.k}, norm ? DType::kF32 : DType::kBF16, x_.at());
    const std::int64_t columns = has(case_.gated) ? case_.n / 2 : case_.n;
    for (std::int64_t i = 0; i < nodes_; ++i) {
      const std::string at = std::to_string(i);
      SkinnyGemmTensors t{.x = input};
      t.w = constant(plan, "w" + at, {case_.n, case_.k}, DType::kBF16, weights_of(i));
      if (norm) t.norm_weight = constant(plan, "norm" + at, {case_.k}, DType::kBF16, norm_.at());
      if (has(case_.residual)) {
        t.residual = constant(plan, "residual" + at, {rows_, columns}, DType::kF32, residual_.at());
      }
      t.y = plan.tensor({.name = "y" + at,
                         .shape = {rows_, columns},
                         .dtype = chain && !norm ? DType::kBF16 : DType::kF32,
                         .tiles = {rows_, columns},
                         .output = i + 1 == nodes_});
      SkinnyGemmOptions own = options;
      own.name = "product " + at;
      plan.add(skinny_gemm(plan.tensors(), own, t));
      if (chain) input = t.y;
    }
    return {.name = name,
            .program = std::make_unique<Program>(
                device_, std::move(plan), RunOptions{.launch_order = LaunchOrder::kTrusted})};
  }

  TimedArm bare(std::int64_t blocks) const {
    Plan plan({.name = "bare", .edge = {.kind = EdgeKind::kFull}});
    for (std::int64_t i = 0; i < nodes_; ++i) {
      const TensorId w =
          constant(plan, "w" + std::to_string(i), {layout_.bytes()}, DType::kU8, weights_of(i));
      plan.add(bare_read_node("read " + std::to_string(i), w, layout_.bytes(), blocks, norm_.at()));
    }
    return {.name = fmt::format("bare read, {} blocks", blocks),
            .program = std::make_unique<Program>(device_, std::move(plan))};
  }

 private:
  void fill(const DeviceMemory& to, std::int64_t count, float spread, std::uint64_t seed) const {
    fill_random_on(device_, reinterpret_cast<BFloat16*>(to.at()),
                   {.seed = seed, .count = count, .spread = spread});
  }
  std::byte* weights_of(std::int64_t node) const {
    return weights_.at(static_cast<std::size_t>(node * layout_.bytes()));
  }
  static TensorId constant(Plan& plan, const std::string& name, const Shape& shape, DType dtype,
                           void* at) {
    return plan.tensor({.name = name,
                        .shape = shape,
                        .dtype = dtype,
                        .kind = TensorKind::kConstant,
                        .address = at});
  }

  Device& device_;
  const Case& case_;
  std::int64_t rows_;
  PackedLayout layout_;
  std::int64_t nodes_;
  DeviceMemory weights_, x_, norm_, residual_;
};

std::string edge_name(const EdgePolicy& edge) {
  return edge.kind == EdgeKind::kTile ? std::string("tile ") + name_of(edge.start)
                                      : name_of(edge.kind);
}

void measure(Device& device, const Case& which, std::int64_t rows, KernelReport& report) {
  const Products bench(device, which, rows);
  std::vector<TimedArm> arms;
  for (const std::int64_t blocks : {1, 2, 4}) {
    arms.push_back(bench.bare(blocks * device.limits().num_sms));
  }
  const std::size_t num_bare = arms.size();
  std::vector<EdgePolicy> edges = {{.kind = EdgeKind::kFull}};
  if (has(which.chain)) {
    edges.push_back({.kind = EdgeKind::kProgrammatic});
    edges.push_back({.kind = EdgeKind::kTile, .start = StartRule::kLaunchCompletion});
  }
  for (const Cut& cut : kCuts) {
    for (const EdgePolicy& edge : edges) {
      const SkinnyGemmOptions options =
          skinny_gemm_cut(rows, which.n, which.k, device.limits().num_sms,
                          {.gated = has(which.gated),
                           .window = cut.window,
                           .shared_limit = device.limits().shared_bytes_per_block},
                          cut.per_sm, has(which.norm));
      const std::string name = fmt::format("{}, {}/SM, ring {}, window {}, {} strips, split {}",
                                           edge_name(edge), cut.per_sm, options.stages, cut.window,
                                           options.strips_per_work, options.split_k);
      arms.push_back(bench.products(name, options, edge, edge.kind == EdgeKind::kTile ? 3 : 2));
    }
  }
  time_in_turn(arms, bench.nodes(), report.repeat);
  double bare = median(arms[0].us);
  for (std::size_t i = 1; i < num_bare; ++i) bare = std::min(bare, median(arms[i].us));
  for (std::size_t i = num_bare; i < arms.size(); ++i) {
    report.rows.push_back(
        {.name = which.name,
         .kind = has(which.chain) && !arms[i].name.starts_with("full") ? "chain" : "alone",
         .rows = rows,
         .mb = bench.mb(),
         .arm = arms[i].name,
         .us = median(arms[i].us),
         .beside = bare});
  }
}

}  // namespace

int bench_gemm(const BenchGemmOptions& options, std::ostream& out, std::ostream& err) {
  const std::unique_ptr<Device> device = open_cuda_device();  // or says why there is none
  add_skinny_gemm(*device);
  add_bench_kernels(*device);
  KernelReport report{.verb = "bench gemm",
                      .beside = "bare read",
                      .machine = device->limits().name,
                      .sms = device->limits().num_sms,
                      .streaming_rate = measure_cuda_read_rate().best,
                      .repeat = options.repeat};
  {
    ProgressBar bar(err, "measuring");
    std::size_t done = 0;
    for (const std::int64_t rows : options.rows) {
      for (const Case& which : kCases) {
        measure(*device, which, rows, report);
        bar.update(++done, options.rows.size() * std::size(kCases));
      }
    }
  }
  write_report(report, options.form, options.json_file, out);
  return kSuccess;
}

}  // namespace tileweave::cli
