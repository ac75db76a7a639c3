#include "examples/01_two_gemms/two_gemms.h"
#include "examples/added_lines.h"
#include "tileweave/kernels/gemm/gemm_args.h"

namespace examples {

using namespace tileweave;

TwoGemms raw_form(const Figure& figure) {
  const std::int64_t m = figure.m();
  const std::int64_t n = figure.n();
  TwoGemms g;
  g.x = g.plan.tensor({.name = "X", .shape = {m, n}, .kind = TensorKind::kConstant});
  g.w = g.plan.tensor({.name = "W", .shape = {n, n}, .kind = TensorKind::kConstant});
  g.y = g.plan.tensor({.name = "Y", .shape = {m, n}, .output = true});
  g.v = g.plan.tensor({.name = "V", .shape = {n, n}, .kind = TensorKind::kConstant});
  g.z = g.plan.tensor({.name = "Z", .shape = {m, n}, .output = true});
  g.plan.tile(g.y, {figure.tile_m, n});               // +
  g.plan.options().edge.start = StartRule::kWaitAll;  // +

  const std::int64_t ktile_m = figure.tile_m;                                         // +
  const std::int64_t dtile_m = figure.tile_m;                                         // +
  const std::int64_t extent = ceil_div(ktile_m, dtile_m);                             // +
  const auto rows = [=](const Coord& ktile) {                                         // +
    std::vector<std::int32_t> dtiles;                                                 // +
    for (std::int64_t i = 0; i < extent; ++i) {                                       // +
      dtiles.push_back(static_cast<std::int32_t>(ktile[0] * ktile_m / dtile_m + i));  // +
    }                                                                                 // +
    return dtiles;                                                                    // +
  };                                                                                  // +
  NodeSpec first = gemm(g.plan.tensors(), figure.gemm("Y = X W"), g.x, g.w, g.y);
  OperandSpec& out = first.operands[GemmOperands::kC];           // +
  out.map = TileMap::table_from(out.kernel_tiles.grid(), rows);  // +
  g.plan.add(first);
  const std::int64_t y_target =                                 // +
      ceil_div(n, figure.tile_n) * ceil_div(dtile_m, ktile_m);  // +

  NodeSpec second = gemm(g.plan.tensors(), figure.gemm("Z = Y V"), g.y, g.v, g.z);
  OperandSpec& in = second.operands[GemmOperands::kA];         // +
  in.map = TileMap::table_from(in.kernel_tiles.grid(), rows);  // +
  in.target = TargetMap::constant(y_target);                   // +
  g.plan.add(second);
  return g;
}

std::string added_lines_of_raw_form() {
  return added_lines("examples/01_two_gemms/raw_form.cpp", __FILE__);
}

}  // namespace examples
