#include "examples/01_two_gemms/two_gemms.h"
#include "examples/added_lines.h"

namespace examples {

using namespace tileweave;

TwoGemms derived_form(const Figure& figure) {
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

  g.plan.add(gemm(g.plan.tensors(), figure.gemm("Y = X W"), g.x, g.w, g.y));
  g.plan.add(gemm(g.plan.tensors(), figure.gemm("Z = Y V"), g.y, g.v, g.z));
  return g;
}

std::string added_lines_of_derived_form() {
  return added_lines("examples/01_two_gemms/derived_form.cpp", __FILE__);
}

}  // namespace examples
