// Swap the producer, leave the consumer alone.
//
// Z = Y V reads Y by rows of 48. Y = X W is computed in six ways: other tile sizes, persistent
// blocks in another order, K split over several works, Stream-K shares that end in the middle of
// tiles. The consumer waits for data tiles of Y, so it is the same node every time; only the number
// of arrivals per data tile changes, and that is derived.
#include <cstdio>
#include <string>
#include <vector>

#include "examples/command_line.h"
#include "examples/matrices.h"
#include "tileweave/kernels/gemm/gemm.h"
#include "tileweave/runtime/program.h"

namespace {

using namespace examples;
using namespace tileweave;

constexpr std::int64_t kM = 192, kK = 128, kN = 160, kP = 80;

struct Producer {
  const char* what;
  GemmOptions options;
  int group;      // producers of one group split K alike: same bits
  int parts = 1;  // sums that K is split into at most
};

std::vector<Producer> producers() {
  return {
      {"64 x 64 tiles", {}, 0},
      {"32 x 160 tiles", {.tile_m = 32, .tile_n = 160}, 0},
      {"persistent, rotated",
       {.tile_m = 32, .tile_n = 32, .num_blocks = 4, .order = TileOrder::rotation(7)},
       0},
      {"split-K by 4", {.split = GemmSplit::kSplitK, .splits = 4}, 1, 4},
      {"Stream-K, 36 quarters", {.split = GemmSplit::kStreamK, .num_blocks = 36}, 1, 4},
      {"Stream-K, 7 shares", {.split = GemmSplit::kStreamK, .num_blocks = 7}, 2, 4},
  };
}

void run(const CommandLine& line) {
  const auto device = open(line);
  add_gemm(*device);
  const auto x_values = random_matrix(kM, kK, line.seed);
  const auto w_values = random_matrix(kK, kN, line.seed + 1);
  const auto v_values = random_matrix(kN, kP, line.seed + 2);
  std::vector<std::vector<float>> of_group(3);

  for (const Producer& producer : producers()) {
    Plan plan({.edge = {.start = StartRule::kWaitAll}});
    const auto constant = [&](const char* name, const Shape& shape) {
      return plan.tensor({.name = name, .shape = shape, .kind = TensorKind::kConstant});
    };
    const TensorId x = constant("X", {kM, kK});
    const TensorId w = constant("W", {kK, kN});
    const TensorId v = constant("V", {kN, kP});
    const TensorId y =
        plan.tensor({.name = "Y", .shape = {kM, kN}, .tiles = {48, kN}, .output = true});
    const TensorId z = plan.tensor({.name = "Z", .shape = {kM, kP}, .output = true});
    plan.add(gemm(plan.tensors(), producer.options, x, w, y));
    plan.add(gemm(plan.tensors(), {.name = "Z = Y V", .tile_m = 48, .tile_n = 40}, y, v, z));

    Program program(*device, plan, {.mode = line.mode, .submit = line.submit});
    program.write(x, x_values);
    program.write(w, w_values);
    program.write(v, v_values);
    program.run();
    program.synchronize();
    const auto y_values = program.read<float>(y);
    const auto z_values = program.read<float>(z);
    check_product("Y", {kM, kN, kK}, x_values, w_values, y_values, producer.parts);
    check_product("Z", {kM, kP, kN}, y_values, v_values, z_values);

    std::vector<float>& expected = of_group[static_cast<std::size_t>(producer.group)];
    const bool first = expected.empty();
    if (first) expected = z_values;
    if (expected != z_values) throw Error(producer.what, "the bits of its group", "others");
    std::string arrivals;
    for (const SemaphoreView& semaphore : program.semaphores(y)) {
      arrivals += " " + std::to_string(semaphore.count);
    }
    std::printf("%-22s arrivals per data tile:%-12s %s\n", producer.what, arrivals.c_str(),
                first ? "right within the derived bound" : "same bits as above");
  }
}

}  // namespace

int main(int argc, char** argv) {
  return run_example(argc, argv, run);
}
