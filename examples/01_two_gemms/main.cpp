// Figure 1 of the idea: Z = (X W) V as two separately launched GEMMs that overlap on row tiles of
// Y.
//
// On the emulated device a virtual clock shows what the hand count says: with 3 SMs and 2 x 2 tiles
// of unit time, one kernel after the other takes 4, overlap takes 3. On a GPU, Y has 4/3 as many
// tiles as there are SMs, so that its second wave leaves two thirds of the GPU idle unless the
// second GEMM starts on the first row tile.
#include <algorithm>
#include <chrono>
#include <cstdio>
#include <filesystem>
#include <vector>

#include "examples/01_two_gemms/two_gemms.h"
#include "examples/command_line.h"
#include "examples/matrices.h"
#include "tileweave/runtime/program.h"
#include "tileweave/trace/perfetto.h"
#include "tileweave/trace/timeline_html.h"

namespace {

using namespace examples;
using namespace tileweave;

struct Inputs {
  std::vector<float> x, w, v;
};

struct Results {
  std::vector<float> y, z;
  bool operator==(const Results&) const = default;
};

void write_inputs(Program& program, const TwoGemms& g, const Inputs& in) {
  program.write(g.x, in.x);
  program.write(g.w, in.w);
  program.write(g.v, in.v);
}

Results run_once(Program& program, const TwoGemms& g) {
  program.run();
  program.synchronize();
  return {program.read<float>(g.y), program.read<float>(g.z)};
}

void check(const Figure& figure, const Inputs& in, const Results& out) {
  const GemmShape shape{figure.m(), figure.n(), figure.n()};
  check_product("Y", shape, in.x, in.w, out.y);
  check_product("Z", shape, out.y, in.v, out.z);
}

void expect_same(const Results& a, const Results& b, const char* what) {
  if (!(a == b)) throw Error("compare results", what, "different bits");
}

void write_traces(const CommandLine& line, const Trace& trace) {
  for (const std::string& path : {line.timeline, line.trace}) {
    const auto folder = std::filesystem::path(path).parent_path();
    if (!folder.empty()) std::filesystem::create_directories(folder);
  }
  if (!line.timeline.empty()) {
    write_timeline_html(trace, line.timeline);
    std::printf("timeline written to %s\n", line.timeline.c_str());
  }
  if (!line.trace.empty()) {
    write_perfetto(trace, line.trace);
    std::printf("trace written to %s\n", line.trace.c_str());
  }
}

/// Serial and overlap under the virtual clock.
void show_model(const Figure& figure, const Inputs& in, const CommandLine& line) {
  const auto device = open_cpu_device({.way = CpuWay::kModel, .num_sms = 3});
  add_gemm(*device);
  const TwoGemms g = derived_form(figure);
  std::vector<Results> results;
  for (const Mode mode : {Mode::kSerial, Mode::kOverlap}) {
    Program program(*device, g.plan, {.mode = mode, .tracing = Tracing::kOn});
    write_inputs(program, g, in);
    results.push_back(run_once(program, g));
    std::printf("%-8s %g ticks (modelled)\n", examples::name_of(mode), program.model_ticks());
    if (mode == Mode::kOverlap) write_traces(line, program.take_trace());
  }
  expect_same(results[0], results[1], "modelled overlap and serial give the same bits");
  check(figure, in, results[1]);
}

double microseconds_per_run(Program& program) {
  constexpr int kRuns = 5;
  const auto start = std::chrono::steady_clock::now();
  for (int i = 0; i < kRuns; ++i) program.run();
  program.synchronize();
  const std::chrono::duration<double, std::micro> spent = std::chrono::steady_clock::now() - start;
  return spent.count() / kRuns;
}

/// Serial and overlap on a GPU: medians of alternating arms.
void show_measured(Device& device, const TwoGemms& g, const Inputs& in, const CommandLine& line) {
  Program serial(device, g.plan, {.mode = Mode::kSerial, .submit = line.submit});
  Program overlap(device, g.plan, {.mode = Mode::kOverlap, .submit = line.submit});
  write_inputs(serial, g, in);
  write_inputs(overlap, g, in);
  expect_same(run_once(serial, g), run_once(overlap, g), "overlap and serial give the same bits");
  std::vector<double> times[2];
  for (int i = 0; i < 11; ++i) {
    times[0].push_back(microseconds_per_run(serial));
    times[1].push_back(microseconds_per_run(overlap));
  }
  for (std::vector<double>& arm : times) std::nth_element(arm.begin(), arm.begin() + 5, arm.end());
  std::printf("serial   %.1f us a run (measured, median of 11)\n", times[0][5]);
  std::printf("overlap  %.1f us a run (measured, median of 11)\n", times[1][5]);
}

/// Y has ceil(4/3 SMs) tiles in two rows, and a block fills an SM.
Figure figure_for(const DeviceLimits& gpu) {
  const std::int64_t tiles = ceil_div(4 * gpu.num_sms, 3);
  return {
      .tiles_n = ceil_div(tiles, 2), .tile_n = 16, .shared_padding = gpu.shared_bytes_per_sm / 2};
}

void run(const CommandLine& line) {
  const auto device = open(line);
  add_gemm(*device);
  const Figure figure = line.on_gpu() ? figure_for(device->limits()) : Figure{};
  std::printf("Y = X W, Z = Y V: %lld x %lld tiles each, Y tiled by rows\n",
              static_cast<long long>(figure.tiles_m), static_cast<long long>(figure.tiles_n));
  const Inputs in{random_matrix(figure.m(), figure.n(), line.seed),
                  random_matrix(figure.n(), figure.n(), line.seed + 1),
                  random_matrix(figure.n(), figure.n(), line.seed + 2)};
  if (!line.on_gpu()) show_model(figure, in, line);

  const RunOptions options{.mode = line.mode, .submit = line.submit, .tracing = Tracing::kOn};
  const TwoGemms derived = derived_form(figure);
  Program program(*device, derived.plan, options);
  write_inputs(program, derived, in);
  const Results out = run_once(program, derived);
  check(figure, in, out);
  std::printf("%s: right within the derived bound\n", examples::name_of(line.mode));
  if (line.on_gpu()) write_traces(line, program.take_trace());

  const TwoGemms raw = raw_form(figure);
  Program by_hand(*device, raw.plan, options);
  write_inputs(by_hand, raw, in);
  expect_same(run_once(by_hand, raw), out, "raw and derived form give the same bits");
  if (line.on_gpu() && line.mode == Mode::kOverlap) show_measured(*device, derived, in, line);
  std::printf("raw and derived form: same bits\n");
  std::printf("lines added for overlap: derived %s, raw %s\n",
              added_lines_of_derived_form().c_str(), added_lines_of_raw_form().c_str());
}

}  // namespace

int main(int argc, char** argv) {
  return run_example(argc, argv, run, Traces::kWritten);
}
