#include "tileweave/tune/tune_skinny_gemm.h"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "tileweave/core/error.h"
#include "tileweave/runtime/program.h"

namespace tileweave {
namespace {

constexpr const char* kNames[] = {"blocks_per_sm", "strips_per_work", "split_k", "stages",
                                  "window"};
constexpr std::int64_t kUsualL2 = std::int64_t{16} << 20;  // where the device does not say
constexpr std::int64_t kMostWeights = 256;
constexpr std::int64_t kFewestNodes = 8;  // so that a run is a chain, whatever its weights
constexpr std::int64_t kMostRuns = 1000;

SkinnyGemmKnobs knobs_of(const TuneCandidate& values) {
  return {.blocks_per_sm = values[0],
          .strips_per_work = values[1],
          .split_k = values[2],
          .stages = values[3],
          .window = values[4]};
}

double now() {
  return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

/// Uniform in [-1, 1), the same for the same index.
float random_number(std::uint64_t index) {
  std::uint64_t bits = index * 0x9e3779b97f4a7c15ULL;
  bits = (bits ^ (bits >> 30)) * 0xbf58476d1ce4e5b9ULL;
  bits = (bits ^ (bits >> 27)) * 0x94d049bb133111ebULL;
  return static_cast<float>(bits >> 40) * 0x1p-23F - 1.0F;
}

/// The weights, and what is the same for every cut.
class Rig {
 public:
  Rig(Device& device, const SkinnyGemmProblem& problem, const SkinnyGemmTuning& tuning)
      : device_(device),
        p_(problem),
        tuning_(tuning),
        layout_{.n = problem.n,
                .k = problem.k,
                .order = problem.gated ? StripOrder::kPaired : StripOrder::kRows} {
    require(p_.m >= 1 && p_.n >= 1 && p_.k >= 1, "tune skinny_gemm", "at least one row and column");
    const std::int64_t l2 = device.limits().l2_bytes;
    const std::int64_t cold =
        tuning.cold_bytes > 0 ? tuning.cold_bytes : 4 * (l2 > 0 ? l2 : kUsualL2);
    num_weights_ = std::clamp<std::int64_t>(ceil_div(cold, layout_.bytes()), 1, kMostWeights);
    num_nodes_ = std::max(num_weights_, kFewestNodes);
    weights_ = static_cast<std::byte*>(
        device.allocate(static_cast<std::size_t>(num_weights_ * layout_.bytes())));
    try {
      fill();
    } catch (...) {
      device.release(weights_);
      throw;
    }
  }
  ~Rig() { device_.release(weights_); }
  Rig(const Rig&) = delete;
  Rig& operator=(const Rig&) = delete;

  /// A cut, ready to run; throws Error where its result is not the first one's.
  std::shared_ptr<Program> ready(const SkinnyGemmKnobs& knobs) {
    TensorId y = kNoTensor;
    std::shared_ptr<Program> program = chain(knobs, y);
    program->run();
    program->synchronize();
    const std::vector<std::uint32_t> bits = program->read<std::uint32_t>(y);
    if (result_.empty()) result_ = bits;
    require(bits == result_, "tune skinny_gemm",
            "the same result in every cut, to the bit (please report this)", "another");
    return program;
  }

  double seconds_of(Program& program, std::int64_t runs) const {
    const double start = now();
    for (std::int64_t i = 0; i < runs; ++i) program.run();
    program.synchronize();
    return (now() - start) / static_cast<double>(runs * num_nodes_);
  }

  std::int64_t runs_for(Program& program) const {
    const double once = seconds_of(program, 1) * static_cast<double>(num_nodes_);
    const double runs = std::ceil(tuning_.seconds_per_sample / std::max(once, 1e-9));
    return static_cast<std::int64_t>(std::clamp(runs, 1.0, static_cast<double>(kMostRuns)));
  }

 private:
  /// Weights of variance 1 / K, so that sums along the chain stay moderate.
  void fill() {
    const auto count = static_cast<std::size_t>(layout_.bytes()) / sizeof(BFloat16);
    const float spread = std::sqrt(3.0F / static_cast<float>(p_.k));
    std::vector<BFloat16> values(count);
    for (std::size_t i = 0; i < count; ++i) values[i] = to_bfloat16(spread * random_number(i));
    for (std::int64_t i = 0; i < num_weights_; ++i) {
      device_.upload(weights_ + i * layout_.bytes(), values.data(), count * sizeof(BFloat16));
    }
  }

  std::shared_ptr<Program> chain(const SkinnyGemmKnobs& knobs, TensorId& y) {
    Plan plan({.name = "tune", .num_streams = 1, .edge = {.kind = EdgeKind::kProgrammatic}});
    const auto constant = [&](const std::string& name, const Shape& shape, DType dtype, void* at) {
      return plan.tensor({.name = name,
                          .shape = shape,
                          .dtype = dtype,
                          .kind = TensorKind::kConstant,
                          .address = at});
    };
    const std::int64_t columns = p_.gated ? p_.n / 2 : p_.n;
    const TensorId x = constant("x", {p_.m, p_.k}, p_.norm ? DType::kF32 : DType::kBF16, nullptr);
    const TensorId first = constant("residual", {p_.m, columns}, DType::kF32, nullptr);
    const TensorId norm = p_.norm ? constant("norm", {p_.k}, DType::kBF16, nullptr) : kNoTensor;
    const SkinnyGemmOptions base{.gated = p_.gated,
                                 .kernel = p_.kernel,
                                 .shared_limit = device_.limits().shared_bytes_per_block};
    SkinnyGemmOptions cut =
        skinny_gemm_cut(p_.m, p_.n, p_.k, device_.limits().num_sms, base, knobs, p_.norm);
    std::vector<TensorId> weights;
    for (std::int64_t i = 0; i < num_weights_; ++i) {
      weights.push_back(constant("w" + std::to_string(i), {p_.n, p_.k}, DType::kBF16,
                                 weights_ + i * layout_.bytes()));
    }
    y = first;
    for (std::int64_t i = 0; i < num_nodes_; ++i) {
      const std::string at = std::to_string(i);
      SkinnyGemmTensors t{.x = x,
                          .w = weights[static_cast<std::size_t>(i % num_weights_)],
                          .norm_weight = norm,
                          .residual = y};
      t.y = y = plan.tensor({.name = "y" + at,
                             .shape = {p_.m, columns},
                             .tiles = {p_.m, columns},
                             .output = i + 1 == num_nodes_});
      cut.name = "product " + at;
      plan.add(skinny_gemm(plan.tensors(), cut, t));
    }
    auto program = std::make_shared<Program>(device_, std::move(plan));
    std::vector<float> values(static_cast<std::size_t>(p_.m * p_.k));
    for (std::size_t i = 0; i < values.size(); ++i) values[i] = random_number(~i);
    if (p_.norm) {
      program->write(x, values);
      program->write(norm, std::vector<BFloat16>(static_cast<std::size_t>(p_.k), to_bfloat16(1)));
    } else {
      std::vector<BFloat16> rounded;
      rounded.reserve(values.size());
      for (const float value : values) rounded.push_back(to_bfloat16(value));
      program->write(x, rounded);
    }
    program->write(first, std::vector<float>(static_cast<std::size_t>(p_.m * columns), 0.0F));
    return program;
  }

  Device& device_;
  SkinnyGemmProblem p_;
  SkinnyGemmTuning tuning_;
  PackedLayout layout_;
  std::int64_t num_weights_ = 0;
  std::int64_t num_nodes_ = 0;
  std::byte* weights_ = nullptr;
  std::vector<std::uint32_t> result_;  // of the first cut
};

/// What is worth trying; 0 is the cut's own choice. Cuts that a shape cannot have are refused when
/// their node is made.
std::vector<TuneKnob> knobs_for(const SkinnyGemmProblem& p) {
  std::vector<std::int64_t> strips = {0};
  for (const std::int64_t count : {1, 2, 3, 4, 6, 8, 12, 16}) {
    strips.push_back(p.gated ? 2 * count : count);
  }
  return {{kNames[0], {0, 2}},
          {kNames[1], strips},
          {kNames[2], {0, 1, 2, 3, 4, 6, 8}},
          {kNames[3], {0, 2, 3, 4, 5, 6}},
          {kNames[4], {0, 1, 2, 3, 4, 6}}};
}

}  // namespace

TuneTask skinny_gemm_task(Device& device, const SkinnyGemmProblem& problem,
                          const SkinnyGemmTuning& tuning) {
  TuneTask task{.op = "skinny_gemm",
                .shapes = std::to_string(problem.m) + "x" + std::to_string(problem.n) + "x" +
                          std::to_string(problem.k) + (problem.gated ? " gated" : "") +
                          (problem.norm ? " norm" : "") +
                          (problem.kernel == SkinnyKernel::kPortable ? " portable" : ""),
                .dtypes = std::string(name_of(problem.norm ? DType::kF32 : DType::kBF16)) + " " +
                          name_of(DType::kBF16) + " " + name_of(DType::kF32),
                .knobs = knobs_for(problem)};
  // Memory is taken when something is measured.
  task.prepare = [&device, problem, tuning, rig = std::shared_ptr<Rig>()](
                     const TuneCandidate& candidate) mutable -> TuneSample {
    if (rig == nullptr) rig = std::make_shared<Rig>(device, problem, tuning);
    const std::shared_ptr<Program> program = rig->ready(knobs_of(candidate));
    const std::int64_t runs = rig->runs_for(*program);
    return [rig = rig, program, runs] { return rig->seconds_of(*program, runs); };
  };
  return task;
}

SkinnyGemmKnobs skinny_gemm_knobs(const TunedConfig& tuned) {
  TuneCandidate values;
  for (const char* name : kNames) values.push_back(tuned.value(name));
  return knobs_of(values);
}

}  // namespace tileweave
