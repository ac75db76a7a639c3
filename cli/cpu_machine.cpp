#include "cli/cpu_machine.h"

#include <fmt/format.h>
#include <hwy/targets.h>

#include <cstddef>
#include <cstdint>
#include <exception>
#include <functional>
#include <memory>
#include <string>
#include <thread>

#include "tileweave/core/error.h"
#include "tileweave/kernels/gemm/gemm.h"
#include "tileweave/plan/plan.h"
#include "tileweave/runtime/device.h"
#include "tileweave/runtime/program.h"

namespace tileweave::cli {
namespace {

constexpr std::int64_t kSize = 16;  // all matrices are kSize x kSize
constexpr std::int64_t kTile = kSize / 2;
constexpr std::int32_t kSms = 3;
constexpr std::uint64_t kSeeds = 10;
// Two products of 2 x 2 tiles on three SMs, a unit of time a tile: one after the other takes two
// waves each; with the second released as the last tile of the first begins, three in all.
constexpr double kSerialTicks = 4;
constexpr double kOverlapTicks = 3;

std::vector<float> small_integers(std::uint32_t seed) {
  std::vector<float> values(kSize * kSize);
  for (std::size_t i = 0; i < values.size(); ++i) {
    values[i] = static_cast<float>((i * (2 * seed + 3) + seed) % 5) - 2;
  }
  return values;
}

/// Exact: sums of small integers fit fp32.
std::vector<float> product(const std::vector<float>& a, const std::vector<float>& b) {
  std::vector<float> c(kSize * kSize);
  for (std::size_t m = 0; m < kSize; ++m) {
    for (std::size_t n = 0; n < kSize; ++n) {
      for (std::size_t k = 0; k < kSize; ++k)
        c[m * kSize + n] += a[m * kSize + k] * b[k * kSize + n];
    }
  }
  return c;
}

/// Z = (X V) W on `options`' device. Returns the ticks of the virtual clock (model), else -1;
/// throws Error when Z is wrong.
double run_two_products(const CpuOptions& options, Mode mode) {
  const std::unique_ptr<Device> device = open_cpu_device(options);
  add_gemm_cpu(device->kernels());
  Plan plan({.name = "two products",
             .num_streams = 2,
             .edge = {.kind = EdgeKind::kTile, .start = StartRule::kWaitAll}});
  const Shape shape = {kSize, kSize};
  const TensorId x = plan.tensor({.name = "X", .shape = shape, .kind = TensorKind::kConstant});
  const TensorId v = plan.tensor({.name = "V", .shape = shape, .kind = TensorKind::kConstant});
  const TensorId w = plan.tensor({.name = "W", .shape = shape, .kind = TensorKind::kConstant});
  const TensorId y = plan.tensor({.name = "Y", .shape = shape, .tiles = {kTile, kSize}});
  const TensorId z = plan.tensor({.name = "Z", .shape = shape, .output = true});
  const GemmOptions tiles = {.tile_m = kTile, .tile_n = kTile};
  plan.add(gemm(plan.tensors(), tiles, x, v, y));
  plan.add(gemm(plan.tensors(), tiles, y, w, z));

  const auto values_x = small_integers(1);
  const auto values_v = small_integers(2);
  const auto values_w = small_integers(3);
  Program program(*device, std::move(plan), {.mode = mode});
  program.write(x, values_x);
  program.write(v, values_v);
  program.write(w, values_w);
  program.run();
  program.synchronize();
  if (program.read<float>(z) != product(product(values_x, values_v), values_w)) {
    throw Error("multiply two small matrices", "the exact product", "another one");
  }
  return program.model_ticks();
}

std::string check_throughput() {
  for (const Mode mode : {Mode::kSerial, Mode::kOverlap}) run_two_products({}, mode);
  return "two products, serial and overlap, exact";
}

std::string check_explore() {
  for (std::uint64_t seed = 1; seed <= kSeeds; ++seed) {
    run_two_products({.way = CpuWay::kExplore,
                      .num_sms = kSms,
                      .seed = seed,
                      .delay_probability = 0.2,
                      .check_views = CheckViews::kOn},
                     Mode::kOverlap);
  }
  return fmt::format("two products on {} SMs, {} seeds with delays and checking views, exact", kSms,
                     kSeeds);
}

std::string check_model() {
  const CpuOptions options = {.way = CpuWay::kModel, .num_sms = kSms};
  const double serial = run_two_products(options, Mode::kSerial);
  const double overlap = run_two_products(options, Mode::kOverlap);
  if (serial != kSerialTicks || overlap != kOverlapTicks) {
    throw Error("model two products",
                fmt::format("{} ticks serial and {} overlap", kSerialTicks, kOverlapTicks),
                fmt::format("{} and {}", serial, overlap));
  }
  return fmt::format("two products on {} SMs: serial {} ticks, overlap {}, as counted by hand",
                     kSms, serial, overlap);
}

Finding self_check(const char* name, const std::function<std::string()>& check, const char* means) {
  try {
    return {"cpu", name, FindingStatus::kOk, check(), means};
  } catch (const std::exception& error) {
    return {"cpu", name, FindingStatus::kFailed, error.what(),
            "this installation gives wrong results or none: rebuild it and run its tests"};
  }
}

Finding describe_cores() {
  const unsigned cores = std::thread::hardware_concurrency();
  if (cores == 0) {
    return {"cpu", "cores", FindingStatus::kAttention, "the system does not say how many",
            "throughput emulates one SM"};
  }
  return {"cpu", "cores", FindingStatus::kOk, fmt::format("{}", cores), ""};
}

Finding describe_simd() {
  const std::int64_t supported = hwy::SupportedTargets();
  // The best target is the lowest bit.
  const std::int64_t best = supported & -supported;
  const std::string name = hwy::TargetName(best);
  if (best == HWY_SCALAR || best == HWY_EMU128) {
    return {"cpu", "SIMD", FindingStatus::kAttention, name,
            "operators run without vector instructions: right, but slow"};
  }
  return {"cpu", "SIMD", FindingStatus::kOk, name, ""};
}

Finding describe_sms() {
  const std::unique_ptr<Device> device = open_cpu_device();
  return {"cpu", "emulated SMs", FindingStatus::kOk,
          fmt::format("{} in throughput, one thread each", device->limits().num_sms),
          "explore and model emulate any number on one thread"};
}

}  // namespace

std::vector<Finding> inspect_cpu() {
  return {describe_cores(),
          describe_simd(),
          describe_sms(),
          self_check("throughput", check_throughput, "plans run here as they would on a GPU"),
          self_check("explore", check_explore, "orders are searched and deadlocks named"),
          self_check("model", check_model, "schedules are ranked; modelled, never a measurement")};
}

}  // namespace tileweave::cli
