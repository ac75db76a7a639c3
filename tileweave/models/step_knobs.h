// StepKnobs: what may be chosen for speed in a step's plan; no kernel chooses any of it.
//
// One OpKnobs for every kind of operator, the same in all layers. 0 and nothing mean: the
// operator's own default for the shape and device. Results do not depend on knobs, to the bit.
// JSON: {"num_streams": 2, "products": "bulk", "ops": {"qkv": {"edge": "tile", "start": "none",
// "split_k": 2}}}.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "tileweave/kernels/gemm/skinny_gemm.h"
#include "tileweave/models/checkpoint/config.h"
#include "tileweave/plan/node.h"

namespace tileweave {

enum class StepOp : std::uint8_t {
  kEmbedding,
  kNorm,
  kQkv,
  kQkNorm,
  kRope,
  kAttention,
  kO,
  kGateUp,
  kSiluMul,
  kDown,
  kHead,
  kDraw,  // argmax or sampling
};
inline constexpr std::size_t kNumStepOps = 12;

const char* name_of(StepOp op);  // "gate_up"

struct OpKnobs {
  std::optional<EdgePolicy> edge = std::nullopt;  // nothing: the plan's
  std::int64_t blocks_per_sm = 0;                 // products: blocks that are to fit one SM
  std::int64_t strips_per_work = 0;               // products, as SkinnyGemmOptions
  std::int64_t split_k = 0;                       //
  std::int64_t stages = 0;                        //
  std::int64_t window = 0;                        //
  std::int64_t wait_k = 0;                        //
  std::int64_t shared_padding = 0;                //
  std::int64_t splits = 0;                        // attention: parts of a sequence's keys
  std::int64_t buffers = 0;                       // attention, as DecodeAttentionOptions
  std::int64_t tile_columns = 0;  // of the data tiles of its result; 0: as the numeric form says

  friend bool operator==(const OpKnobs& a, const OpKnobs& b);
};

struct StepKnobs {
  std::int32_t num_streams = 0;  // 0: the decoder's
  /// Which kernels multiply packed weights; nothing: bulk where the device has it.
  std::optional<SkinnyKernel> products = std::nullopt;
  std::array<OpKnobs, kNumStepOps> ops = {};

  OpKnobs& at(StepOp op) { return ops[static_cast<std::size_t>(op)]; }
  const OpKnobs& at(StepOp op) const { return ops[static_cast<std::size_t>(op)]; }
  friend bool operator==(const StepKnobs&, const StepKnobs&) = default;
};

/// The same with one edge policy everywhere.
StepKnobs with_edges(StepKnobs knobs, const EdgePolicy& edge);

/// The kernels that a device multiplies packed weights with unless told otherwise.
SkinnyKernel best_products(const DeviceLimits& limits);
/// Whether the device can multiply more rows at once than these kernels take (wide_gemm, which goes
/// with `bulk`).
bool has_wide_products(const DeviceLimits& limits, SkinnyKernel products);

/// What a GPU runs a step of `rows` rows with.
StepKnobs default_knobs(const ModelConfig& config, std::int64_t rows, const DeviceLimits& limits);

std::string to_json(const StepKnobs& knobs);
/// `name` stands for the file in errors. What the text does not name is left at its default; throws
/// Error naming a key or value that is not known.
StepKnobs parse_knobs(std::string_view text, const std::string& name);
StepKnobs read_knobs(const std::string& path);

}  // namespace tileweave
