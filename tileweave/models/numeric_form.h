// NumericForm: element types of a model on a device, and how its weights lie there.
//
// The emulated device computes in f32 from weights as they are stored. A GPU takes bf16 operands
// into tensor cores, with an f32 residual stream and f32 sums; matrices are packed
// (kernels/gemm/packed_weights.h). StepBuilder, KvCache and ModelWeights ask here; op sequences do
// not know the device. Pure.
#pragma once

#include <cstdint>
#include <string>

#include "tileweave/core/dtype.h"
#include "tileweave/kernels/gemm/packed_weights.h"
#include "tileweave/kernels/gemm/skinny_gemm.h"
#include "tileweave/kernels/gemm/wide_gemm.h"
#include "tileweave/models/step_shape.h"

namespace tileweave {

enum class MatrixLayout : std::uint8_t { kRowMajor, kPacked };

/// What multiplies packed matrices by more rows than decoding has: wide_gemm, or another library
/// (vendor_gemm), for which row-major copies of them are kept.
enum class WideProducts : std::uint8_t { kOwn, kVendor };

constexpr const char* name_of(WideProducts products) {
  return products == WideProducts::kOwn ? "own" : "vendor";
}

/// How finely values between kernels are cut into data tiles, unless the knobs say otherwise.
enum class DataTiles : std::uint8_t { kFine, kWhole };

struct NumericForm {
  DType operand = DType::kF32;  // what products and attention read: norms, q, attention, SiLU-mul
  DType cache = DType::kF32;    // keys and values
  MatrixLayout matrices = MatrixLayout::kRowMajor;
  DataTiles data_tiles = DataTiles::kFine;
  std::int64_t most_rows = 128;  // of a step, unless asked for otherwise
  std::int64_t row_limit = 0;    // that no step may pass, which bounds its memory; 0: none
};

inline NumericForm numeric_form(const std::string& device_name) {
  if (device_name != "cuda") return {};
  return {.operand = DType::kBF16,
          .cache = DType::kBF16,
          .matrices = MatrixLayout::kPacked,
          .data_tiles = DataTiles::kWhole,
          .most_rows = 4 * kWideTokens,
          .row_limit = 16 * kWideTokens};
}

/// What a model runs in where nobody says otherwise: the faster one.
constexpr Granularity usual_granularity(const NumericForm& form) {
  return form.matrices == MatrixLayout::kPacked ? Granularity::kStages : Granularity::kOps;
}

/// Strips of gate and up by turns where one kernel multiplies both halves.
constexpr StripOrder gate_up_order(Granularity granularity) {
  return granularity == Granularity::kStages ? StripOrder::kPaired : StripOrder::kRows;
}

}  // namespace tileweave
