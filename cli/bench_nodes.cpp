#include "cli/bench_nodes.h"

#include <utility>

#include "cli/bench_nodes_args.h"
#include "tileweave/core/error.h"

namespace tileweave::cli {
namespace {

TileSet rows_of(const Shape& shape, std::int64_t rows) {
  return TileSet::plain({shape, {rows, shape[1]}});
}

bool is_attention(const NodeSpec& node) {
  return node.kernel.starts_with("decode_attention") || node.kernel.starts_with("paged_attention");
}

void require_row(std::int64_t columns, const std::string& node) {
  if (columns <= kRowMostColumns && columns % 4 == 0) return;
  throw Error("make node `" + node + "`",
              "rows of at most " + std::to_string(kRowMostColumns) + " columns, a multiple of 4",
              std::to_string(columns));
}

/// A copy of the query of an attention node to its result.
NodeSpec copy_of_query(const TensorTable& tensors, const NodeSpec& attention) {
  const TensorId from = attention.operands.front().tensor;  // q, or qkv
  TensorId to = kNoTensor;
  for (const OperandSpec& operand : attention.operands) {
    if (operand.access == Access::kWrite) to = operand.tensor;  // keys and values come before it
  }
  const TensorSpec& source = tensors[from].spec;
  const Shape shape = tensors[to].spec.shape;
  require_row(shape[1], attention.name);
  NodeSpec node{
      .name = attention.name + ", a copy",
      .kernel = kCopyQueryKernel,
      .num_works = shape[0],
      .operands = {{.tensor = from, .kernel_tiles = rows_of(source.shape, 1), .sync_slot = 0},
                   {.tensor = to,
                    .access = Access::kWrite,
                    .kernel_tiles = rows_of(shape, 1),
                    .sync_slot = 1}},
      .resources = {.threads = kRowThreads, .registers_per_thread = 64},
      .cost = {},
      .edge = attention.edge};
  const bool fused = source.dtype == DType::kF32;
  node.make_args = [fused, from_columns = source.shape[1],
                    columns = shape[1]](const Addresses& at) {
    const void* const x = at.operands[0];
    return to_bytes(CopyQueryArgs{.qkv = {fused ? static_cast<const float*>(x) : nullptr},
                                  .q = {fused ? nullptr : static_cast<const BFloat16*>(x)},
                                  .to = {static_cast<BFloat16*>(at.operands[1])},
                                  .from_columns = static_cast<std::int32_t>(from_columns),
                                  .columns = static_cast<std::int32_t>(columns)});
  };
  return node;
}

}  // namespace

NodeSpec bare_read_node(const std::string& name, TensorId from, std::int64_t bytes,
                        std::int64_t blocks, void* never) {
  NodeSpec node{.name = name,
                .kernel = kReadKernel,
                .num_works = blocks,
                .operands = {{.tensor = from, .when = ReadTime::kPrologue}},
                .resources = {.threads = kReadThreads, .registers_per_thread = 64},
                .cost = {}};
  node.make_args = [bytes, never](const Addresses& at) {
    return to_bytes(ReadArgs{.from = static_cast<const std::byte*>(at.operands[0]),
                             .vectors = bytes / 16,
                             .never = static_cast<std::uint32_t*>(never)});
  };
  return node;
}

NodeSpec next_row_node(const TensorTable& tensors, const std::string& name, TensorId from,
                       TensorId base, TensorId to) {
  const TensorSpec& source = tensors[from].spec;
  const Shape shape = tensors[to].spec.shape;
  require_row(shape[1], name);
  NodeSpec node{.name = name,
                .kernel = kNextRowKernel,
                .operands = {{.tensor = from,
                              .kernel_tiles = rows_of(source.shape, source.shape[0]),
                              .sync_slot = 0},
                             {.tensor = to,
                              .access = Access::kWrite,
                              .kernel_tiles = rows_of(shape, shape[0]),
                              .sync_slot = 1},
                             {.tensor = base, .when = ReadTime::kPrologue}},
                .resources = {.threads = kRowThreads, .registers_per_thread = 64},
                .cost = {}};
  const bool attended = source.dtype == DType::kBF16;
  node.make_args = [attended, attended_columns = source.shape[1],
                    columns = shape[1]](const Addresses& at) {
    const void* const x = at.operands[0];
    return to_bytes(NextRowArgs{.attended = {attended ? static_cast<const BFloat16*>(x) : nullptr},
                                .before = {attended ? nullptr : static_cast<const float*>(x)},
                                .base = {static_cast<const float*>(at.operands[2])},
                                .to = {static_cast<float*>(at.operands[1])},
                                .attended_columns = static_cast<std::int32_t>(attended_columns),
                                .columns = static_cast<std::int32_t>(columns)});
  };
  return node;
}

std::int64_t replace_attention(Plan& plan) {
  std::int64_t replaced = 0;
  for (NodeSpec& node : plan.nodes()) {
    if (!is_attention(node)) continue;
    NodeSpec copy = copy_of_query(plan.tensors(), node);
    copy.rank = node.rank;
    copy.position = node.position;
    check_node(copy, plan.tensors());
    node = std::move(copy);
    ++replaced;
  }
  return replaced;
}

}  // namespace tileweave::cli
