#include "tests/runtime/tile_mix.h"

#include <memory>
#include <utility>

#include "tests/runtime/tile_mix_kernel.h"
#include "tileweave/core/error.h"
#include "tileweave/sync/atomics_cpu.h"

namespace tileweave {
namespace {

struct CheckerMixViews {
  AccessChecker* checker;
  void read(int operand, const Box& box) const {
    if (checker != nullptr) checker->on_read(operand, box);
  }
  void write(int operand, const Box& box) const {
    if (checker != nullptr) checker->on_write(operand, box);
  }
};

template <int kNumOperands, class Maps = ContextMaps>
void tile_mix_cpu(CpuLane& lane, const std::byte* args, const std::byte* context) {
  TileMix<kNumOperands, AtomicsCpu, CheckerMixViews, Maps>(
      *reinterpret_cast<const MixArgs*>(args),
      *reinterpret_cast<const SyncContext<kNumOperands>*>(context), AtomicsCpu(lane),
      CheckerMixViews{lane.checker()})
      .run_block();
}

template <int kNumOperands>
void add(KernelLibrary& kernels) {
  for (const int lanes : {1, 2}) {
    kernels.add({.name = mix_kernel_name(kNumOperands, lanes),
                 .num_sync_slots = kNumOperands,
                 .cpu = tile_mix_cpu<kNumOperands>,
                 .cpu_lanes = lanes});
  }
}

OperandSpec operand_spec(const MixOperandSpec& mix, Access access, std::int32_t slot) {
  OperandSpec spec{.tensor = mix.tensor,
                   .access = access,
                   .when = mix.when,
                   .kernel_tiles = mix.kernel_tiles,
                   .map = mix.map,
                   .target = mix.target,
                   .assumed_tiles = mix.assumed_tiles,
                   .view = mix.view,
                   .sync_slot = slot};
  if (!mix.tiles_of_work.empty()) {
    spec.tiles_of_work = [tiles = mix.tiles_of_work](std::int64_t work) {
      return tiles.at(static_cast<std::size_t>(work));
    };
  }
  return spec;
}

/// Appends the section of one operand to the tables.
void append_section(std::vector<std::int32_t>& tables, const OperandSpec& operand,
                    const Tensor& tensor, std::int64_t num_works) {
  const TileSet kernel = kernel_tiles_of(operand, tensor);
  std::vector<std::int32_t> entries;
  tables.push_back(0);
  for (std::int64_t w = 0; w < num_works; ++w) {
    for (const std::int64_t k : kernel_tiles_of_work(operand, tensor, w)) {
      const Coord coord = kernel.coord(k);
      const Box box = kernel.box(k);
      entries.push_back(coord.num_axes);
      for (const Coord* c : {&coord, &box.begin, &box.size}) {
        for (int a = 0; a < kMaxAxes; ++a) entries.push_back(static_cast<std::int32_t>(c->v[a]));
      }
    }
    tables.push_back(static_cast<std::int32_t>(entries.size()) / kMixEntryWords);
  }
  tables.insert(tables.end(), entries.begin(), entries.end());
}

std::vector<std::uint32_t> noise(std::int64_t count, std::uint32_t seed) {
  std::vector<std::uint32_t> values;
  for (std::int64_t i = 0; i < count; ++i) {
    values.push_back(mix32(seed, static_cast<std::uint32_t>(i)));
  }
  return values;
}

}  // namespace

void add_tile_mix_cpu(KernelLibrary& kernels) {
  add<2>(kernels);
  add<3>(kernels);
  add<4>(kernels);
  add<5>(kernels);
  add<6>(kernels);
  kernels.add({.name = kMixRowsKernel,
               .num_sync_slots = 2,
               .cpu = tile_mix_cpu<2, FunctorMaps<MixRowMaps>>});
}

TensorId add_filled(MixPlan& mix, TensorSpec spec, std::uint32_t seed) {
  spec.dtype = DType::kU32;
  const TensorId id = mix.plan.tensor(spec);
  mix.uploads.push_back({id, noise(spec.shape.volume(), seed)});
  return id;
}

TensorId add_value(MixPlan& mix, TensorSpec spec) {
  spec.dtype = DType::kU32;
  return mix.plan.tensor(spec);
}

NodeId add_mix(MixPlan& mix, MixNode node) {
  const auto num_operands = static_cast<int>(node.inputs.size() + node.outputs.size());
  require(num_operands >= 2 && num_operands <= kMaxMixOperands, "tile mix", "2 to 6 operands",
          std::to_string(num_operands));
  const std::int64_t blocks = node.num_blocks == 0 ? node.num_works : node.num_blocks;
  NodeSpec spec{.name = node.name,
                .kernel = mix_kernel_name(num_operands, node.lanes),
                .rank = node.rank,
                .position = node.position,
                .num_works = node.num_works,
                .num_blocks = blocks,
                .order = node.order,
                .operands = {},
                .resources = node.resources,
                .cost = node.cost,
                .edge = node.edge};
  if (node.taking == MixOrder::kClaimed) {
    // Every work is claimed once, and every block once gets nothing.
    spec.counter.arrivals = {static_cast<std::uint32_t>(node.num_works + blocks)};
  }
  if (node.row_maps) {
    spec.kernel = kMixRowsKernel;
    spec.args = *node.row_maps;
  }
  MixArgs args{};
  std::vector<std::int32_t> tables;
  for (int i = 0; i < num_operands; ++i) {
    const auto index = static_cast<std::size_t>(i);
    const bool is_input = index < node.inputs.size();
    const MixOperandSpec& operand =
        is_input ? node.inputs[index] : node.outputs[index - node.inputs.size()];
    spec.operands.push_back(operand_spec(operand, is_input ? Access::kRead : Access::kWrite, i));
    const Tensor& tensor = mix.plan.tensors()[operand.tensor];
    MixOperand& arg = args.operands[i];
    arg.num_axes = tensor.spec.shape.num_axes;
    arg.table = static_cast<std::int32_t>(tables.size());
    std::int64_t stride = 1;
    for (int a = arg.num_axes - 1; a >= 0; --a) {
      arg.stride[a] = stride;
      stride *= tensor.spec.shape[a];
    }
    append_section(tables, spec.operands.back(), tensor, node.num_works);
  }
  args.num_inputs = static_cast<std::int32_t>(node.inputs.size());
  args.salt = node.salt;
  args.num_works = node.num_works;
  args.num_blocks = blocks;
  args.fault = node.fault;
  args.fault_work = node.fault_work;
  args.taking = node.taking;
  args.delay_seed = node.delay_seed;
  args.max_delay_ns = node.max_delay_ns;

  const TensorId described = mix.plan.tensor({.name = "tiles of " + node.name,
                                              .shape = {static_cast<std::int64_t>(tables.size())},
                                              .dtype = DType::kI32,
                                              .kind = TensorKind::kConstant});
  mix.uploads.push_back({described, {tables.begin(), tables.end()}});
  spec.operands.push_back({.tensor = described, .when = ReadTime::kPrologue});
  const bool has_switch = node.fault_switch != kNoTensor;
  if (has_switch) {
    spec.operands.push_back({.tensor = node.fault_switch, .when = ReadTime::kPrologue});
  }
  spec.make_args = [args, num_operands, has_switch](const Addresses& at) mutable {
    for (int i = 0; i < num_operands; ++i) {
      args.operands[i].ptr = static_cast<std::uint32_t*>(at.operands[static_cast<std::size_t>(i)]);
    }
    args.tables =
        static_cast<const std::int32_t*>(at.operands[static_cast<std::size_t>(num_operands)]);
    if (has_switch) args.fault_switch = static_cast<const std::uint32_t*>(at.operands.back());
    return to_bytes(args);
  };
  const NodeId id = mix.plan.add(std::move(spec));
  mix.nodes.push_back(std::move(node));
  return id;
}

void upload(Program& program, const MixPlan& mix) {
  const TensorTable& tensors = program.plan().tensors();
  for (TensorId id = 0; id < tensors.size(); ++id) {
    if (tensors[id].spec.kind != TensorKind::kValue) continue;
    program.write(id, noise(tensors[id].spec.shape.volume(), 0xdeadU + static_cast<unsigned>(id)));
  }
  for (const MixUpload& one : mix.uploads) program.write(one.tensor, one.values);
}

namespace {

/// Row-major positions of the elements of `box` in a tensor of `shape`.
std::vector<std::size_t> positions(const Shape& shape, const Box& box) {
  std::vector<std::size_t> found = {0};
  for (int a = 0; a < shape.num_axes; ++a) {
    std::vector<std::size_t> next;
    for (const std::size_t outer : found) {
      for (std::int64_t i = 0; i < box.size[a]; ++i) {
        next.push_back(outer * static_cast<std::size_t>(shape[a]) +
                       static_cast<std::size_t>(box.begin[a] + i));
      }
    }
    found = std::move(next);
  }
  return found;
}

}  // namespace

MixOracle::MixOracle(const MixPlan& mix) {
  const TensorTable& tensors = mix.plan.tensors();
  for (TensorId id = 0; id < tensors.size(); ++id) {
    values_.emplace_back(static_cast<std::size_t>(tensors[id].spec.shape.volume()), 0U);
  }
  for (const MixUpload& one : mix.uploads) write(one.tensor, one.values);
  for (std::size_t n = 0; n < mix.nodes.size(); ++n) {
    const NodeSpec& spec = mix.specs()[n];
    for (std::int64_t w = 0; w < spec.num_works; ++w) {
      Work work{mix32(mix.nodes[n].salt, static_cast<std::uint32_t>(w)), {}};
      for (std::size_t o = 0; o < spec.operands.size(); ++o) {
        const OperandSpec& operand = spec.operands[o];
        if (operand.sync_slot < 0) continue;  // tables and switches
        const Tensor& tensor = tensors[operand.tensor];
        const TileSet kernel = kernel_tiles_of(operand, tensor);
        std::uint32_t salt = static_cast<std::uint32_t>(o) * 1000;
        for (const std::int64_t k : kernel_tiles_of_work(operand, tensor, w)) {
          work.touches.push_back({operand.tensor, operand.access, salt++,
                                  positions(tensor.spec.shape, kernel.box(k))});
        }
      }
      works_.push_back(std::move(work));
    }
  }
}

void MixOracle::run() {
  for (const Work& work : works_) {
    std::uint32_t hash = work.salt;
    for (const Touch& touch : work.touches) {
      auto& values = values_[static_cast<std::size_t>(touch.tensor)];
      if (touch.access == Access::kRead) {
        for (const std::size_t e : touch.elements) hash = mix32(hash, values[e]);
        continue;
      }
      const std::uint32_t of_tile = mix32(hash, touch.salt);
      for (std::size_t e = 0; e < touch.elements.size(); ++e) {
        values[touch.elements[e]] = mix32(of_tile, static_cast<std::uint32_t>(e));
      }
    }
  }
}

}  // namespace tileweave
