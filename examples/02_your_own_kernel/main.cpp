// A GEMM of one's own, made to overlap by six lines, in front of the library's GEMM.
//
// my_gemm cuts Y into 16 x 16 tiles, the library's GEMM reads 48 rows at a time, and Y is tiled by
// 40 rows: nobody divides anybody, and neither kernel knows of the other.
#include <cstdio>
#include <vector>

#include "examples/02_your_own_kernel/my_gemm.h"
#include "examples/added_lines.h"
#include "examples/command_line.h"
#include "examples/matrices.h"
#include "tileweave/kernels/gemm/gemm.h"
#include "tileweave/runtime/program.h"

namespace {

using namespace examples;
using namespace tileweave;

void run(const CommandLine& line) {
  const auto device = open(line);
  add_gemm(*device);
  line.on_gpu() ? add_my_gemm_cuda(device->kernels()) : add_my_gemm_cpu(device->kernels());

  const std::int64_t m = 150, k = 100, n = 130, p = 90;
  Plan plan({.edge = {.start = StartRule::kWaitAll}});
  const TensorId x = plan.tensor({.name = "X", .shape = {m, k}, .kind = TensorKind::kConstant});
  const TensorId w = plan.tensor({.name = "W", .shape = {k, n}, .kind = TensorKind::kConstant});
  const TensorId y = plan.tensor({.name = "Y", .shape = {m, n}, .tiles = {40, n}, .output = true});
  const TensorId v = plan.tensor({.name = "V", .shape = {n, p}, .kind = TensorKind::kConstant});
  const TensorId z = plan.tensor({.name = "Z", .shape = {m, p}, .output = true});
  plan.add(my_gemm(plan.tensors(), "my_gemm", x, w, y));
  plan.add(gemm(plan.tensors(), {.tile_m = 48, .tile_n = 32}, y, v, z));

  const auto x_values = random_matrix(m, k, line.seed);
  const auto w_values = random_matrix(k, n, line.seed + 1);
  const auto v_values = random_matrix(n, p, line.seed + 2);
  const auto run_in = [&](Mode mode) {
    Program program(*device, plan, {.mode = mode, .submit = line.submit});
    program.write(x, x_values);
    program.write(w, w_values);
    program.write(v, v_values);
    for (int i = 0; i < 3; ++i) program.run();
    program.synchronize();
    const auto y_values = program.read<float>(y);
    auto z_values = program.read<float>(z);
    check_product("Y", {m, n, k}, x_values, w_values, y_values);
    check_product("Z", {m, p, n}, y_values, v_values, z_values);
    return z_values;
  };
  const std::vector<float> serial = run_in(Mode::kSerial);
  std::printf("serial: right within the derived bound\n");
  if (line.mode == Mode::kOverlap) {
    if (run_in(Mode::kOverlap) != serial) {
      throw Error("compare overlap with serial", "the same bits", "others");
    }
    std::printf("overlap: the same bits\n");
  }
  const auto count = [](const char* file) {
    return added_lines(std::string("examples/02_your_own_kernel/") + file, __FILE__);
  };
  std::printf("lines added to my_gemm: cpu %s, cuda %s\n", count("my_gemm_cpu.cpp").c_str(),
              count("my_gemm_cuda.cu").c_str());
}

}  // namespace

int main(int argc, char** argv) {
  return run_example(argc, argv, run);
}
