#include "examples/02_your_own_kernel/my_gemm.h"

namespace examples {

using namespace tileweave;

NodeSpec my_gemm(const TensorTable& tensors, const std::string& name, TensorId a, TensorId b,
                 TensorId c) {
  MyGemm g{};
  g.m = tensors[a].spec.shape[0];
  g.k = tensors[a].spec.shape[1];
  g.n = tensors[c].spec.shape[1];
  const std::int64_t cols = g.tiles_n();
  NodeSpec node;
  node.name = name;
  node.kernel = "my_gemm";
  node.num_works = g.tiles_m() * cols;
  node.operands = {
      {.tensor = a,
       .kernel_tiles = TileSet::plain({{g.m, g.k}, {MyGemm::kTile, g.k}}),
       .tiles_of_work = [cols](std::int64_t w) { return std::vector<std::int64_t>{w / cols}; },
       .sync_slot = 0},
      {.tensor = b,
       .kernel_tiles = TileSet::plain({{g.k, g.n}, {g.k, MyGemm::kTile}}),
       .tiles_of_work = [cols](std::int64_t w) { return std::vector<std::int64_t>{w % cols}; }},
      {.tensor = c,
       .access = Access::kWrite,
       .kernel_tiles = TileSet::plain({{g.m, g.n}, {MyGemm::kTile, MyGemm::kTile}}),
       .sync_slot = 1}};
  node.resources = {.threads = MyGemm::kTile * MyGemm::kTile};
  node.make_args = [g](const Addresses& at) {
    MyGemm args = g;
    args.a = static_cast<const float*>(at.operands[0]);
    args.b = static_cast<const float*>(at.operands[1]);
    args.c = static_cast<float*>(at.operands[2]);
    return to_bytes(args);
  };
  return node;
}

}  // namespace examples
