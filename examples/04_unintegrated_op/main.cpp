// An operator that knows nothing of tiles in the middle of kernels that overlap.
//
// Y = X W, R = relu(Y), Z = R V, U = Z T through an AsyncStream. The GEMMs on both sides of relu
// stay as they are: relu starts when all before it has completed, what comes after starts when relu
// has; Z = R V and U = Z T overlap on row tiles of Z.
#include <cstdio>
#include <vector>

#include "examples/04_unintegrated_op/relu.h"
#include "examples/command_line.h"
#include "examples/matrices.h"
#include "tileweave/kernels/gemm/gemm.h"
#include "tileweave/runtime/async_stream.h"

namespace {

using namespace examples;
using namespace tileweave;

void run(const CommandLine& line) {
  const auto device = open(line);
  add_gemm(*device);
  const std::int64_t m = 200, k = 96, n = 130, p = 70, q = 50;
  AsyncStream stream(*device, {.edge = {.start = StartRule::kWaitAll},
                               .run = {.mode = line.mode, .submit = Submit::kEager}});
  const auto constant = [&](const char* name, const Shape& shape, const std::vector<float>& data) {
    StreamTensor tensor =
        stream.tensor({.name = name, .shape = shape, .kind = TensorKind::kConstant});
    stream.upload(tensor, data.data());
    return tensor;
  };
  const auto x_values = random_matrix(m, k, line.seed);
  const auto w_values = random_matrix(k, n, line.seed + 1);
  const auto v_values = random_matrix(n, p, line.seed + 2);
  const auto t_values = random_matrix(p, q, line.seed + 3);
  const StreamTensor x = constant("X", {m, k}, x_values);
  const StreamTensor w = constant("W", {k, n}, w_values);
  const StreamTensor v = constant("V", {n, p}, v_values);
  const StreamTensor t = constant("T", {p, q}, t_values);
  const StreamTensor y = stream.tensor({.name = "Y", .shape = {m, n}, .tiles = {64, n}});
  const StreamTensor r = stream.tensor({.name = "R", .shape = {m, n}});
  const StreamTensor z = stream.tensor({.name = "Z", .shape = {m, p}, .tiles = {64, p}});
  const StreamTensor u = stream.tensor({.name = "U", .shape = {m, q}});

  const auto relu = [&, on_gpu = line.on_gpu()](NativeStream native) {
    const auto* from = static_cast<const float*>(y.address());
    auto* to = static_cast<float*>(r.address());
    on_gpu ? enqueue_relu_cuda(from, to, m * n, native) : relu_cpu(from, to, m * n);
  };
  constexpr int kRuns = 3;
  for (int i = 0; i < kRuns; ++i) {
    stream.begin_run();
    stream.launch(gemm(stream.tensors(), {.name = "Y = X W"}, x.id(), w.id(), y.id()));
    stream.call("R = relu(Y)", {y.id()}, {r.id()}, relu);
    stream.launch(gemm(stream.tensors(), {.name = "Z = R V"}, r.id(), v.id(), z.id()));
    stream.launch(gemm(stream.tensors(), {.name = "U = Z T"}, z.id(), t.id(), u.id()));
    stream.end_run();
  }
  stream.synchronize();

  const auto values_of = [&](const StreamTensor& tensor) {
    std::vector<float> values(tensor.bytes() / sizeof(float));
    stream.download(tensor, values.data());
    return values;
  };
  const auto y_values = values_of(y);
  const auto r_values = values_of(r);
  const auto z_values = values_of(z);
  check_product("Y", {m, n, k}, x_values, w_values, y_values);
  std::vector<float> expected(y_values.size());
  relu_cpu(y_values.data(), expected.data(), m * n);
  if (r_values != expected) throw Error("check R", "relu(Y)", "other values");
  check_product("Z", {m, p, n}, r_values, v_values, z_values);
  check_product("U", {m, q, p}, z_values, t_values, values_of(u));
  std::printf("%d runs of gemm, relu, gemm, gemm in mode %s: right within the derived bound\n",
              kRuns, examples::name_of(line.mode));
}

}  // namespace

int main(int argc, char** argv) {
  return run_example(argc, argv, run);
}
