// Steps of attention on a GPU for its tests: bf16 operands, pools that the test owns.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "tests/kernels/attention/decode_step.h"
#include "tileweave/kernels/attention/decode_attention.h"
#include "tileweave/kernels/attention/paged_attention.h"
#include "tileweave/runtime/program.h"

namespace tileweave {

inline std::vector<BFloat16> to_bf16(const std::vector<float>& values) {
  std::vector<BFloat16> result;
  result.reserve(values.size());
  for (const float value : values) result.push_back(to_bfloat16(value));
  return result;
}

inline std::vector<std::uint16_t> bits_of(const std::vector<BFloat16>& values) {
  std::vector<std::uint16_t> bits;
  bits.reserve(values.size());
  for (const BFloat16 value : values) bits.push_back(value.bits);
  return bits;
}

/// The step with every number one that bf16 has.
inline AttentionStep rounded(AttentionStep step) {
  for (std::vector<float>* values :
       {&step.q, &step.k_step, &step.v_step, &step.k_pool, &step.v_pool}) {
    for (float& value : *values) value = to_float(to_bfloat16(value));
  }
  return step;
}

/// Device memory of one pool.
class GpuPool {
 public:
  GpuPool(Device& device, const std::vector<float>& values)
      : device_(device), count_(values.size()) {
    memory_ = device.allocate(count_ * sizeof(BFloat16));
    write(values);
  }
  ~GpuPool() { device_.release(memory_); }
  GpuPool(const GpuPool&) = delete;
  GpuPool& operator=(const GpuPool&) = delete;

  void write(const std::vector<float>& values) {
    const std::vector<BFloat16> rounded_values = to_bf16(values);
    device_.upload(memory_, rounded_values.data(), count_ * sizeof(BFloat16));
  }
  std::vector<BFloat16> read() const {
    std::vector<BFloat16> values(count_);
    device_.download(values.data(), memory_, count_ * sizeof(BFloat16));
    return values;
  }
  void* memory() const { return memory_; }

 private:
  Device& device_;
  std::size_t count_;
  void* memory_ = nullptr;
};

inline TensorId add_tensor(Plan& plan, const char* name, const Shape& shape, DType type,
                           TensorKind kind = TensorKind::kConstant, void* address = nullptr) {
  return plan.tensor(
      {.name = name, .shape = shape, .dtype = type, .kind = kind, .address = address});
}

/// Paged attention over a step whose keys and values all lie in the pool.
inline std::vector<BFloat16> run_paged(Device& device, const AttentionStep& s,
                                       PagedAttentionOptions options, const RunOptions& run = {}) {
  const GpuPool k(device, s.k_pool), v(device, s.v_pool);
  const Shape q{s.rows, s.q_width()}, step{s.rows, s.kv_width()}, pool{s.pool_rows, s.kv_width()};
  const auto sequences = static_cast<std::int64_t>(s.past.size());
  Plan plan;
  PagedAttentionTensors at;
  at.q = add_tensor(plan, "q", q, DType::kBF16);
  at.k_step = add_tensor(plan, "k_step", step, DType::kBF16, TensorKind::kConstant, k.memory());
  at.v_step = add_tensor(plan, "v_step", step, DType::kBF16, TensorKind::kConstant, v.memory());
  at.k_past = add_tensor(plan, "k_past", pool, DType::kBF16, TensorKind::kState, k.memory());
  at.v_past = add_tensor(plan, "v_past", pool, DType::kBF16, TensorKind::kState, v.memory());
  at.positions = add_tensor(plan, "positions", {s.rows}, DType::kI32);
  at.slots = add_tensor(plan, "slots", {s.rows}, DType::kI32);
  at.sequence_of_row = add_tensor(plan, "sequences", {s.rows}, DType::kI32);
  at.first_row = add_tensor(plan, "first_row", {sequences}, DType::kI32);
  at.past = add_tensor(plan, "past", {sequences}, DType::kI32);
  at.page_table = add_tensor(plan, "pages", {sequences, s.max_pages}, DType::kI32);
  at.out = plan.tensor({.name = "out", .shape = q, .dtype = DType::kBF16, .output = true});
  options.head_dim = s.heads.head_dim;
  options.page_size = s.page_size;
  plan.add(paged_attention(plan.tensors(), options, at));
  Program program(device, plan, run);
  program.write(at.q, to_bf16(s.q));
  program.write(at.positions, s.positions);
  program.write(at.slots, s.slots);
  program.write(at.sequence_of_row, s.sequence_of_row);
  program.write(at.first_row, s.first_row);
  program.write(at.past, s.past);
  program.write(at.page_table, s.page_table);
  for (int i = 0; i < 2; ++i) program.run();  // counters go on from where they stand
  program.synchronize();
  return program.read<BFloat16>(at.out);
}

/// A plan of one decode attention, to be run again and again over one pool.
class DecodeRuns {
 public:
  /// Shapes, pool and weights of `d`; its numbers until others are written.
  DecodeRuns(Device& device, const DecodeStep& d, DecodeAttentionOptions options,
             const RunOptions& run = {})
      : k(device, d.step.k_pool), v(device, d.step.v_pool) {
    const AttentionStep& s = d.step;
    const Shape pool{s.pool_rows, s.kv_width()}, step{s.rows, s.kv_width()};
    const auto value = [&](const char* name, const Shape& shape, void* address) {
      return plan_.tensor({.name = name,
                           .shape = shape,
                           .dtype = DType::kBF16,
                           .output = true,
                           .address = address});
    };
    at_.qkv = add_tensor(plan_, "qkv", {s.rows, s.q_width() + 2 * s.kv_width()}, DType::kF32);
    at_.positions = add_tensor(plan_, "positions", {s.rows}, DType::kI32);
    at_.slots = add_tensor(plan_, "slots", {s.rows}, DType::kI32);
    at_.sequence_of_row = add_tensor(plan_, "sequences", {s.rows}, DType::kI32);
    at_.page_table = add_tensor(
        plan_, "pages", {static_cast<std::int64_t>(s.past.size()), s.max_pages}, DType::kI32);
    at_.inv_freq = add_tensor(plan_, "inv_freq", {s.heads.head_dim / 2}, DType::kF32);
    at_.k_past = add_tensor(plan_, "k_past", pool, DType::kBF16, TensorKind::kState, k.memory());
    at_.v_past = add_tensor(plan_, "v_past", pool, DType::kBF16, TensorKind::kState, v.memory());
    at_.k_step = value("k_step", step, k.memory());
    at_.v_step = value("v_step", step, v.memory());
    at_.out = value("out", {s.rows, s.q_width()}, nullptr);
    if (!d.q_norm.empty()) {
      at_.q_norm = add_tensor(plan_, "q_norm", {s.heads.head_dim}, DType::kBF16);
      at_.k_norm = add_tensor(plan_, "k_norm", {s.heads.head_dim}, DType::kBF16);
    }
    options.heads = s.heads.heads;
    options.kv_heads = s.heads.kv_heads;
    options.page_size = s.page_size;
    options.attention_factor = d.attention_factor;
    plan_.add(decode_attention(plan_.tensors(), options, at_));
    program_ = std::make_unique<Program>(device, plan_, run);
    program_->write(at_.inv_freq, d.inv_freq);
    if (!d.q_norm.empty()) {
      program_->write(at_.q_norm, to_bf16(d.q_norm));
      program_->write(at_.k_norm, to_bf16(d.k_norm));
    }
    write(d);
  }

  void write(const DecodeStep& d) {
    program_->write(at_.qkv, d.qkv);
    program_->write(at_.positions, d.step.positions);
    program_->write(at_.slots, d.step.slots);
    program_->write(at_.sequence_of_row, d.step.sequence_of_row);
    program_->write(at_.page_table, d.step.page_table);
  }

  std::vector<BFloat16> run() {
    program_->run();
    program_->synchronize();
    return program_->read<BFloat16>(at_.out);
  }

  GpuPool k, v;

 private:
  Plan plan_;
  DecodeAttentionTensors at_;
  std::unique_ptr<Program> program_;
};

}  // namespace tileweave
