#include "tileweave/models/step_builder.h"

#include <algorithm>

#include "tileweave/core/error.h"

namespace tileweave {
namespace {

constexpr std::int64_t kMostRowsPerTile = 32;
constexpr std::int64_t kWideRowsPerTile = 4;  // fewer works to verify, still some for every SM
constexpr std::int64_t kColumnUnit = 16;
constexpr std::int64_t kWideColumnUnit = 2048;  // two 16-byte loads per thread and more
constexpr std::int64_t kWorksPerSm = 8;   // of a wide product: fine enough to overlap and balance
constexpr std::int64_t kBlocksPerSm = 4;  // persistent; three kernels in flight still fit an SM

}  // namespace

StepBuilder::StepBuilder(const StepContext& context, const StepShape& shape, const StepKnobs& knobs)
    : context_(context),
      shape_(shape),
      knobs_(knobs),
      plan_({.name = "step",
             .num_streams = knobs.num_streams > 0 ? knobs.num_streams : context.num_streams}) {
  const std::int64_t t = shape.rows;
  const std::int64_t s = shape.sequences;
  const std::int64_t l = shape.outputs;
  require(t >= 1 && s >= 1 && l >= 1 && l <= std::max(t, s), "build a step",
          "at least one row, sequence and output, and no more outputs than rows or sequences");
  inputs_.ids = input("ids", {t});
  inputs_.positions = input("positions", {t});
  inputs_.slots = input("slots", {t});
  inputs_.sequence_of_row = input("sequence of row", {t});
  inputs_.first_row = input("first row", {s});
  inputs_.past = input("past", {s});
  inputs_.page_table = input("page table", {s, context.max_pages});
  if (shape.head != Head::kNone && l != t) inputs_.output_rows = input("output rows", {l});
  if (shape.head == Head::kSample) {
    inputs_.temperature = input("temperature", {l}, DType::kF32);
    inputs_.top_p = input("top-p", {l}, DType::kF32);
    inputs_.min_p = input("min-p", {l}, DType::kF32);
    inputs_.repetition_penalty = input("repetition penalty", {l}, DType::kF32);
    inputs_.top_k = input("top-k", {l});
    inputs_.seed = input("seed", {l, 2});
    inputs_.draw_position = input("draw position", {l});
    inputs_.history = input("history", {l, context.max_history});
    inputs_.history_length = input("history length", {l});
  }
}

TensorId StepBuilder::input(const std::string& name, const Shape& shape, DType dtype) {
  return plan_.tensor(
      {.name = name, .shape = shape, .dtype = dtype, .kind = TensorKind::kConstant});
}

SkinnyKernel StepBuilder::products() const {
  const SkinnyKernel best = best_products(context_.limits);
  const SkinnyKernel products = knobs_.products.value_or(best);
  require(products == best || products == SkinnyKernel::kPortable, "build a step",
          "compute capability 9.0 or later for products `bulk` (on this GPU: `portable`)",
          std::to_string(context_.limits.compute_capability / 10) + "." +
              std::to_string(context_.limits.compute_capability % 10));
  return products;
}

std::string StepBuilder::name(const std::string& op) const {
  return layer_ < 0 ? op : "layer " + std::to_string(layer_) + " " + op;
}

TensorId StepBuilder::value(const std::string& op, std::int64_t rows, std::int64_t columns,
                            DType dtype) {
  return plan_.tensor({.name = name(op), .shape = {rows, columns}, .dtype = dtype});
}

void StepBuilder::tile(TensorId value, StepOp op, std::int64_t columns) {
  const Shape& shape = plan_.tensors()[value].spec.shape;
  const bool whole = form().data_tiles == DataTiles::kWhole;
  if (whole) columns = shape[1];
  if (knobs(op).tile_columns > 0) columns = knobs(op).tile_columns;
  const std::int64_t rows = whole ? std::min(shape_.rows, kWideTokens) : tile_m();
  plan_.tile(value, {std::min(shape[0], rows), std::min(shape[1], columns)});
}

TensorId StepBuilder::output(const std::string& op, const Shape& shape, DType dtype) {
  return plan_.tensor({.name = name(op), .shape = shape, .dtype = dtype, .output = true});
}

TensorId StepBuilder::weight(const Weight& weight, const std::string& op) {
  if (!weight) return kNoTensor;
  const auto known = weights_.find(weight.address);
  if (known != weights_.end()) return known->second;
  const TensorId id = plan_.tensor({.name = name(op) + " weight",
                                    .shape = weight.shape,
                                    .dtype = weight.dtype,
                                    .kind = TensorKind::kConstant,
                                    .address = weight.address});
  weights_.emplace(weight.address, id);
  return id;
}

TensorId StepBuilder::row_major_weight(const Weight& weight, const std::string& op) {
  require(weight.row_major != nullptr, "build a step",
          "weights that were loaded for wide products of the vendor",
          "others for `" + name(op) + "`");
  return this->weight({.address = weight.row_major, .shape = weight.shape, .dtype = weight.dtype},
                      op);
}

KvTensors StepBuilder::kv() {
  const KvCache& cache = *context_.cache;
  const Shape pool{cache.pool_rows(), cache.shape().row_elements};
  const Shape step{shape_.rows, cache.shape().row_elements};
  void* keys = cache.keys(layer_);
  void* values = cache.values(layer_);
  const auto past = [&](const char* op, void* address) {
    return plan_.tensor({.name = name(op),
                         .shape = pool,
                         .dtype = cache.shape().dtype,
                         .kind = TensorKind::kState,
                         .address = address});
  };
  const auto rows = [&](const char* op, void* address) {
    return plan_.tensor(
        {.name = name(op), .shape = step, .dtype = cache.shape().dtype, .address = address});
  };
  return {.k_past = past("past keys", keys),
          .v_past = past("past values", values),
          .k_step = rows("keys", keys),
          .v_step = rows("values", values)};
}

std::int64_t StepBuilder::tile_m() const {
  if (form().data_tiles == DataTiles::kWhole) return 1;  // a row is latency, not work
  return std::min(shape_.rows, kMostRowsPerTile);
}

std::int64_t StepBuilder::tile_m_of_heads() const {
  return is_wide() ? kWideRowsPerTile : tile_m();
}

std::int64_t StepBuilder::tile_n(std::int64_t columns) const {
  if (form().data_tiles == DataTiles::kWhole) {  // about one wave of blocks
    const std::int64_t works = std::max<std::int64_t>(1, context_.limits.num_sms / shape_.rows);
    return std::min(columns, ceil_div(ceil_div(columns, works), kWideColumnUnit) * kWideColumnUnit);
  }
  const std::int64_t works = kWorksPerSm * context_.limits.num_sms;
  return std::min(columns, ceil_div(ceil_div(columns, works), kColumnUnit) * kColumnUnit);
}

std::int64_t StepBuilder::num_blocks() const {
  return form().data_tiles == DataTiles::kWhole ? 0 : kBlocksPerSm * context_.limits.num_sms;
}

}  // namespace tileweave
