// StepBuilder: the plan of one step while a model's op sequence fills it.
//
//   StepBuilder b(context, shape);
//   const TensorId x = b.value("hidden", config.hidden_size);
//   b.plan().add(gemm(b.tensors(), {.name = b.name("o"), ...}, a, b.weight(w.o), x));
//
// Holds what all models share: the step's inputs, weights and KV rows as tensors of the plan, names
// with their layer, and how finely work is cut for the device. Lives as long as the building.
#pragma once

#include <cstdint>
#include <map>
#include <string>

#include "tileweave/models/checkpoint/config.h"
#include "tileweave/models/kv_cache.h"
#include "tileweave/models/model_weights.h"
#include "tileweave/models/numeric_form.h"
#include "tileweave/models/step_knobs.h"
#include "tileweave/models/step_shape.h"
#include "tileweave/plan/plan.h"

namespace tileweave {

/// What all steps of a loaded model have in common.
struct StepContext {
  const ModelConfig* config = nullptr;
  const ModelWeights* weights = nullptr;
  const KvCache* cache = nullptr;
  std::int64_t max_pages = 0;    // of one sequence
  std::int64_t max_history = 0;  // tokens that the repetition penalty looks at
  DeviceLimits limits = {};
  std::int32_t num_streams = 2;
  Granularity granularity = Granularity::kOps;
  NumericForm form = {};
  /// Packed products of more rows are wide, of no more skinny_gemm.
  std::int64_t decode_rows = kSkinnyMostRows;
  WideProducts wide_products = WideProducts::kOwn;
};

/// Constants that the host writes before every run (T rows, S sequences, L outputs); i32 unless
/// said otherwise. kNoTensor: this shape has no such tensor.
struct StepInputs {
  TensorId ids = kNoTensor;              // (T)
  TensorId positions = kNoTensor;        // (T)
  TensorId slots = kNoTensor;            // (T) pool rows of this step's keys and values
  TensorId sequence_of_row = kNoTensor;  // (T)
  TensorId first_row = kNoTensor;        // (S)
  TensorId past = kNoTensor;             // (S)
  TensorId page_table = kNoTensor;       // (S, max_pages)
  TensorId output_rows = kNoTensor;      // (L), where L < T
  // Head::kSample, as SampleTensors
  TensorId temperature = kNoTensor, top_p = kNoTensor, min_p = kNoTensor;  // (L) f32
  TensorId repetition_penalty = kNoTensor;                                 // (L) f32
  TensorId top_k = kNoTensor;                                              // (L)
  TensorId seed = kNoTensor;                                               // (L, 2)
  TensorId draw_position = kNoTensor;                                      // (L)
  TensorId history = kNoTensor;                                            // (L, max_history)
  TensorId history_length = kNoTensor;                                     // (L)
};

/// What the host reads after a run; kNoTensor where the head leaves no such thing.
struct StepOutputs {
  TensorId next_ids = kNoTensor;  // (L) i32
  TensorId logits = kNoTensor;    // (L, V) f32
  TensorId scores = kNoTensor;    // (L, V) f32, the logits that next_ids were drawn from
};

/// Keys and values of one layer: all rows, and this step's.
struct KvTensors {
  TensorId k_past = kNoTensor, v_past = kNoTensor;  // (pool rows, kv_heads head_dim), state
  TensorId k_step = kNoTensor, v_step = kNoTensor;  // (T, kv_heads head_dim), value
};

class StepBuilder {
 public:
  StepBuilder(const StepContext& context, const StepShape& shape, const StepKnobs& knobs = {});

  Plan& plan() { return plan_; }
  const TensorTable& tensors() const { return plan_.tensors(); }
  const StepShape& shape() const { return shape_; }
  const StepContext& context() const { return context_; }
  const ModelConfig& config() const { return *context_.config; }
  const ModelWeights& weights() const { return *context_.weights; }
  const StepInputs& inputs() const { return inputs_; }
  float eps() const { return static_cast<float>(config().rms_norm_eps); }
  const NumericForm& form() const { return context_.form; }
  const OpKnobs& knobs(StepOp op) const { return knobs_.at(op); }
  /// Throws Error where the knobs ask for kernels that the device cannot run.
  SkinnyKernel products() const;
  std::optional<EdgePolicy> edge(StepOp op) const { return knobs_.at(op).edge; }
  bool fuses() const { return context_.granularity == Granularity::kStages; }
  /// Whether products take a norm in front of them, so that it needs no kernel of its own: those of
  /// few rows do.
  bool fuses_norms() const { return fuses() && is_packed() && !is_wide(); }
  /// Whether QK-norm, RoPE, KV write and attention are one kernel.
  bool fuses_attention() const { return fuses() && is_packed() && shape_.decode; }

  /// Names made from now on begin with "layer N "; -1: with nothing.
  void enter_layer(std::int64_t layer) { layer_ = layer; }
  std::string name(const std::string& op) const;

  /// (rows, columns) between two kernels; f32, or what products read (`operand`).
  TensorId value(const std::string& op, std::int64_t rows, std::int64_t columns,
                 DType dtype = DType::kF32);
  /// (T, columns) between two kernels.
  TensorId value(const std::string& op, std::int64_t columns, DType dtype = DType::kF32) {
    return value(op, shape_.rows, columns, dtype);
  }
  DType operand() const { return form().operand; }
  /// Data tiles of what an operator of this kind makes: whole rows of tiles `columns` wide, or as
  /// the numeric form and the knobs say.
  void tile(TensorId value, StepOp op, std::int64_t columns);
  /// A value that the host reads after the run.
  TensorId output(const std::string& op, const Shape& shape, DType dtype);
  /// The tensor of a weight, made at its first use; kNoTensor for a weight that the model lacks.
  TensorId weight(const Weight& weight, const std::string& op);
  /// That of its row-major copy. Throws Error where none was kept.
  TensorId row_major_weight(const Weight& weight, const std::string& op);
  KvTensors kv();

  /// Rows and columns of the work of one block, and how many blocks a kernel has at most; 0: one
  /// per work.
  std::int64_t tile_m() const;
  /// Rows where heads are cut apart too, which makes works enough.
  std::int64_t tile_m_of_heads() const;
  std::int64_t tile_n(std::int64_t columns) const;
  std::int64_t num_blocks() const;

 private:
  bool is_packed() const { return form().matrices == MatrixLayout::kPacked; }
  /// Whether the step has more rows than decoding.
  bool is_wide() const { return is_packed() && shape_.rows > context_.decode_rows; }
  TensorId input(const std::string& name, const Shape& shape, DType dtype = DType::kI32);

  StepContext context_;
  StepShape shape_;
  StepKnobs knobs_;
  Plan plan_;
  StepInputs inputs_;
  std::int64_t layer_ = -1;
  std::map<const void*, TensorId> weights_;  // by device address
};

}  // namespace tileweave
