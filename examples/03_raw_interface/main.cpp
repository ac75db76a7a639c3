// The paper's raw interface: semaphores, maps, extents, targets, tile_config and cta_remap by hand.
//
// Listing 2, back-to-back matmul. Producer: the library's GEMM with a map listed in a table and its
// blocks remapped. Consumer: a kernel with map and target as functions compiled in (Listing 3). The
// derived form of the same plan gives the same bits.
#include <cstdio>
#include <memory>
#include <vector>

#include "examples/03_raw_interface/listing3.h"
#include "examples/command_line.h"
#include "examples/matrices.h"
#include "tileweave/kernels/gemm/gemm.h"
#include "tileweave/kernels/gemm/gemm_args.h"
#include "tileweave/runtime/program.h"

namespace {

using namespace examples;
using namespace tileweave;

constexpr std::int64_t kM = 256, kK = 96, kN = 192, kP = 40;
constexpr std::int64_t kDataRows = 64;      // data tiles of Y
constexpr std::int64_t kConsumerRows = 32;  // kernel tiles of the consumer

enum class Form { kDerived, kRaw };

struct BackToBack {
  Plan plan{{.edge = {.start = StartRule::kWaitAll}}};
  TensorId x, w, y, v, z;
};

NodeSpec row_matmul(const TensorTable& tensors, TensorId a, TensorId b, TensorId c) {
  RowMatmul g{};
  g.m = tensors[a].spec.shape[0];
  g.k = tensors[a].spec.shape[1];
  g.n = tensors[c].spec.shape[1];
  g.tile_m = kConsumerRows;
  NodeSpec node;
  node.name = "Z = Y V";
  node.kernel = "row_matmul.derived";
  node.num_works = ceil_div(g.m, g.tile_m);
  node.operands = {
      {.tensor = a, .kernel_tiles = TileSet::plain({{g.m, g.k}, {g.tile_m, g.k}}), .sync_slot = 0},
      {.tensor = b},
      {.tensor = c,
       .access = Access::kWrite,
       .kernel_tiles = TileSet::plain({{g.m, g.n}, {g.tile_m, g.n}})}};
  node.resources = {.threads = 256};
  node.make_args = [g](const Addresses& at) {
    RowMatmul args = g;
    args.a = static_cast<const float*>(at.operands[0]);
    args.b = static_cast<const float*>(at.operands[1]);
    args.c = static_cast<float*>(at.operands[2]);
    return to_bytes(args);
  };
  return node;
}

/// `y_sema`: one word per data tile of Y, in device memory that the caller owns.
BackToBack back_to_back(Form form, std::uint32_t* y_sema) {
  BackToBack p;
  p.x = p.plan.tensor({.name = "X", .shape = {kM, kK}, .kind = TensorKind::kConstant});
  p.w = p.plan.tensor({.name = "W", .shape = {kK, kN}, .kind = TensorKind::kConstant});
  p.v = p.plan.tensor({.name = "V", .shape = {kN, kP}, .kind = TensorKind::kConstant});
  p.z = p.plan.tensor({.name = "Z", .shape = {kM, kP}, .output = true});
  // One semaphore per 64 rows of Y.
  p.y = p.plan.tensor({.name = "Y",
                       .shape = {kM, kN},
                       .tiles = {kDataRows, kN},
                       .output = true,
                       .semaphores = form == Form::kRaw ? y_sema : nullptr});

  // Adapt the producer: tile_config, out_map with its extent, and cta_remap (last row tiles first).
  const GemmOptions tile_config{.name = "Y = X W", .tile_m = 128, .tile_n = 64, .tile_k = 32};
  NodeSpec producer = gemm(p.plan.tensors(), tile_config, p.x, p.w, p.y);
  const std::int64_t tiles_n = ceil_div(kN, tile_config.tile_n);
  if (form == Form::kRaw) {
    const std::int64_t ktile_m = tile_config.tile_m;
    OperandSpec& out = producer.operands[GemmOperands::kC];
    out.map = TileMap::table_from(out.kernel_tiles.grid(), [=](const Coord& ktile) {
      std::vector<std::int32_t> dtiles;
      const std::int64_t first = ktile[0] * ktile_m / kDataRows;
      const std::int64_t extent = ceil_div(ktile_m, kDataRows);
      for (std::int64_t i = first; i < first + extent; ++i) {
        dtiles.push_back(static_cast<std::int32_t>(i));
      }
      return dtiles;
    });
    std::vector<std::int32_t> remap;
    for (std::int64_t w = producer.num_works; w-- > 0;) {
      remap.push_back(static_cast<std::int32_t>(w));
    }
    producer.order = TileOrder::table(remap);
  }
  p.plan.add(producer);

  // Adapt the consumer: in_map, in_sema_extent and in_target as functions, their numbers at launch.
  NodeSpec consumer = row_matmul(p.plan.tensors(), p.y, p.v, p.z);
  if (form == Form::kRaw) {
    const RowNumbers numbers{.ktile_m = kConsumerRows,
                             .dtile_m = kDataRows,
                             .target = tiles_n * ceil_div(kDataRows, tile_config.tile_m)};
    consumer.kernel = "row_matmul.raw";
    consumer.args = {{numbers.ktile_m, numbers.dtile_m, numbers.target}};
    OperandSpec& in = consumer.operands[0];
    in.map = TileMap::functor(
        in.kernel_tiles.grid(), {{kM, kN}, {kDataRows, kN}},
        [](const Coord& ktile, const LaunchArgs& args) { return RowMaps::map(0, ktile, args); });
    in.target = TargetMap::functor([](const Coord& dtile, const LaunchArgs& args) {
      return std::int64_t{RowMaps::target(0, dtile, args)};
    });
  }
  p.plan.add(consumer);
  return p;
}

std::vector<float> run_form(Device& device, Form form, const CommandLine& line, int num_runs) {
  // y_sema = zeros(cdiv(m, dtile_m)): an ordinary tensor, the caller's to keep and to look at.
  std::vector<std::uint32_t> y_sema(kM / kDataRows, 0);
  const std::size_t sema_bytes = y_sema.size() * sizeof(std::uint32_t);
  const std::shared_ptr<void> memory(device.allocate(sema_bytes),
                                     [&device](void* pointer) { device.release(pointer); });
  device.upload(memory.get(), y_sema.data(), sema_bytes);
  const BackToBack p = back_to_back(form, static_cast<std::uint32_t*>(memory.get()));
  Program program(device, p.plan, {.mode = line.mode, .submit = line.submit});
  const auto x = random_matrix(kM, kK, line.seed);
  const auto w = random_matrix(kK, kN, line.seed + 1);
  const auto v = random_matrix(kN, kP, line.seed + 2);
  program.write(p.x, x);
  program.write(p.w, w);
  program.write(p.v, v);
  for (int i = 0; i < num_runs; ++i) program.run();
  program.synchronize();
  const auto y = program.read<float>(p.y);
  auto z = program.read<float>(p.z);
  check_product("Y", {kM, kN, kK}, x, w, y);
  check_product("Z", {kM, kP, kN}, y, v, z);
  if (form == Form::kRaw) {
    std::printf("semaphores of Y after %d runs:\n", num_runs);
    device.download(y_sema.data(), memory.get(), sema_bytes);
    const std::vector<SemaphoreView> views = program.semaphores(p.y);
    for (std::size_t tile = 0; tile < y_sema.size(); ++tile) {
      std::printf("  tile (%zu, 0): count %u, base %u, target %u\n", tile, y_sema[tile],
                  views[tile].base, views[tile].target);
    }
  }
  return z;
}

void run(const CommandLine& line) {
  const auto device = open(line);
  add_gemm(*device);
  line.on_gpu() ? add_row_matmul_cuda(device->kernels()) : add_row_matmul_cpu(device->kernels());
  const std::vector<float> raw = run_form(*device, Form::kRaw, line, 3);
  if (run_form(*device, Form::kDerived, line, 1) != raw) {
    throw Error("compare the raw with the derived form", "the same bits", "others");
  }
  std::printf("raw and derived form: right within the derived bound, same bits\n");
}

}  // namespace

int main(int argc, char** argv) {
  return run_example(argc, argv, run);
}
