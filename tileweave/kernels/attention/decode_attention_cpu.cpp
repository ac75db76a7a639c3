// Decode attention on the emulated device: plain loops in the shape of the CUDA kernel, f32.
#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <vector>

#include "tileweave/kernels/attention/decode_attention.h"
#include "tileweave/kernels/attention/decode_attention_args.h"
#include "tileweave/runtime/cpu/tile_view.h"
#include "tileweave/sync/atomics_cpu.h"
#include "tileweave/sync/sync_cta.h"

namespace tileweave {
namespace {

using Operands = DecodeAttentionOperands;
using Sync = SyncCta<AtomicsCpu, Operands::kSlots>;

template <class W>
class DecodeAttentionBlock {
 public:
  DecodeAttentionBlock(const DecodeAttentionArgs<float, W>& args, Sync& sync,
                       AccessChecker* checker)
      : args_(args), s_(args.schedule), sync_(sync), checker_(checker), dim_(s_.head_dim) {}

  /// False: the run is aborted.
  bool run(std::uint32_t work) {
    t_ = s_.row_of(work);
    group_ = s_.group_of(work);
    prepare();
    const Ready ready = sync_.wait_input(Operands::kSlotQkv, {t_});
    if (!ready) return false;
    const MatrixView<const float> qkv(args_.qkv.get(ready), s_.all_heads() * dim_, Operands::kQkv,
                                      checker_);
    const MatrixView<float> out(args_.out.get(), heads() * s_.kv_heads * dim_, Operands::kOut,
                                checker_);
    float* to = out.row(t_, group_ * heads() * dim_, heads() * dim_);
    if (sequence_ < 0) {
      std::fill_n(to, heads() * dim_, 0.0F);
    } else {
      attend(qkv, to);
    }
    sync_.signal_output(Operands::kSlotOut, {t_, group_});
    sync_.signal_output(Operands::kSlotKStep, {t_, group_});
    sync_.signal_output(Operands::kSlotVStep, {t_, group_});
    return true;
  }

 private:
  std::int64_t heads() const { return s_.heads_per_kv; }

  std::int32_t number(const Stable<std::int32_t>& tensor, int operand) const {
    return *TensorView<const std::int32_t>(tensor.get(), {s_.rows}, operand, checker_).run({t_}, 1);
  }

  /// Everything that constants decide: comes before the wait.
  void prepare() {
    sequence_ = number(args_.sequence_of_row, Operands::kSequenceOfRow);
    position_ = number(args_.positions, Operands::kPositions);
    slot_ = number(args_.slots, Operands::kSlotsOfRows);
    const bool real = sequence_ >= 0 && sequence_ < args_.num_sequences && slot_ >= 0 &&
                      slot_ < args_.pool_rows && position_ >= 0 &&
                      position_ < args_.max_pages * args_.page_size;
    if (!real) sequence_ = -1;
    const float* inv_freq =
        TensorView<const float>(args_.inv_freq.get(), {dim_ / 2}, Operands::kInvFreq, checker_)
            .run({0}, dim_ / 2);
    cosines_.clear();
    sines_.clear();
    for (std::int64_t j = 0; j < dim_ / 2; ++j) {
      const float angle = static_cast<float>(position_) * inv_freq[j];
      cosines_.push_back(std::cos(angle) * args_.attention_factor);
      sines_.push_back(std::sin(angle) * args_.attention_factor);
    }
    q_weight_ = weight(args_.q_norm, Operands::kQNorm);
    k_weight_ = weight(args_.k_norm, Operands::kKNorm);
  }

  std::vector<float> weight(const Stable<W>& norm, int operand) const {
    std::vector<float> result;
    if (norm.get() == nullptr) return result;
    const W* from = TensorView<const W>(norm.get(), {dim_}, operand, checker_).run({0}, dim_);
    for (std::int64_t j = 0; j < dim_; ++j) result.push_back(to_float(from[j]));
    return result;
  }

  std::vector<float> turned(const float* head, const std::vector<float>& norm) const {
    std::vector<float> x(head, head + dim_);
    if (!norm.empty()) {
      float squares = 0;
      for (const float value : x) squares += value * value;
      const float scale = 1.0F / std::sqrt(squares / static_cast<float>(dim_) + args_.eps);
      for (std::size_t j = 0; j < x.size(); ++j) x[j] = x[j] * scale * norm[j];
    }
    const std::size_t half = x.size() / 2;
    for (std::size_t j = 0; j < half; ++j) {
      const float a = x[j];
      const float b = x[half + j];
      x[j] = a * cosines_[j] - b * sines_[j];
      x[half + j] = b * cosines_[j] + a * sines_[j];
    }
    return x;
  }

  void attend(const MatrixView<const float>& qkv, float* to) const {
    const std::int64_t key_head = s_.key_head(static_cast<std::int32_t>(group_));
    const auto key = turned(qkv.row(t_, key_head * dim_, dim_), k_weight_);
    const float* value = qkv.row(t_, (key_head + s_.kv_heads) * dim_, dim_);
    // Row t lies at pool row slots[t]: the view checks, the offset says where.
    const std::int64_t pool_row = std::int64_t{slot_} * s_.kv_heads * dim_;
    const MatrixView<float> k_step(args_.k_step.get(), 0, Operands::kKStep, checker_);
    const MatrixView<float> v_step(args_.v_step.get(), 0, Operands::kVStep, checker_);
    std::copy_n(key.begin(), dim_, k_step.row(t_, group_ * dim_, dim_) + pool_row);
    std::copy_n(value, dim_, v_step.row(t_, group_ * dim_, dim_) + pool_row);

    std::vector<const float*> keys, values;
    const std::int64_t stride = s_.kv_heads * dim_;
    const MatrixView<const float> k_past(args_.k_past.get(), stride, Operands::kKPast, checker_);
    const MatrixView<const float> v_past(args_.v_past.get(), stride, Operands::kVPast, checker_);
    const MatrixView<const std::int32_t> table(args_.page_table.get(), args_.max_pages,
                                               Operands::kPageTable, checker_);
    const std::int32_t* pages = table.row(sequence_, 0, args_.max_pages);
    for (std::int64_t j = 0; j < position_; ++j) {
      const std::int64_t row =
          std::int64_t{pages[j / args_.page_size]} * args_.page_size + j % args_.page_size;
      keys.push_back(k_past.row(row, group_ * dim_, dim_));
      values.push_back(v_past.row(row, group_ * dim_, dim_));
    }
    keys.push_back(key.data());
    values.push_back(value);
    for (std::int64_t h = 0; h < heads(); ++h) {
      const auto q = turned(qkv.row(t_, (group_ * heads() + h) * dim_, dim_), q_weight_);
      attend_head(q, keys, values, to + h * dim_);
    }
  }

  void attend_head(const std::vector<float>& q, const std::vector<const float*>& keys,
                   const std::vector<const float*>& values, float* to) const {
    std::vector<float> weights;
    float highest = -std::numeric_limits<float>::infinity();
    for (const float* key : keys) {
      float score = 0;
      for (std::size_t d = 0; d < q.size(); ++d) score += q[d] * key[d];
      weights.push_back(score * args_.scale);
      highest = std::max(highest, weights.back());
    }
    float sum = 0;
    for (float& weight : weights) {
      weight = std::exp(weight - highest);
      sum += weight;
    }
    std::fill_n(to, dim_, 0.0F);
    for (std::size_t j = 0; j < keys.size(); ++j) {
      for (std::int64_t d = 0; d < dim_; ++d) to[d] += weights[j] * values[j][d];
    }
    for (std::int64_t d = 0; d < dim_; ++d) to[d] /= sum;
  }

  const DecodeAttentionArgs<float, W>& args_;
  const DecodeAttentionSchedule& s_;
  Sync& sync_;
  AccessChecker* checker_;
  std::int64_t dim_;
  std::int64_t t_ = 0, group_ = 0;
  std::int32_t sequence_ = -1, position_ = 0, slot_ = -1;  // of the work's row
  std::vector<float> cosines_, sines_, q_weight_, k_weight_;
};

template <class W>
void decode_attention_cpu(CpuLane& lane, const std::byte* arg_bytes,
                          const std::byte* context_bytes) {
  const auto& args = *reinterpret_cast<const DecodeAttentionArgs<float, W>*>(arg_bytes);
  const auto& context = *reinterpret_cast<const SyncContext<Operands::kSlots>*>(context_bytes);
  Sync sync(context, AtomicsCpu(lane));
  if (!sync.begin_cta()) return;
  DecodeAttentionBlock<W> block(args, sync, lane.checker());
  for (std::int64_t at = lane.block_index(); at < args.schedule.num_works();
       at += args.schedule.num_blocks) {
    if (!block.run(static_cast<std::uint32_t>(sync.remap(at)))) return;
  }
}

template <class W>
void add(KernelLibrary& kernels) {
  kernels.add({.name = decode_attention_kernel_name(DType::kF32, kDTypeOf<W>, 0),
               .num_sync_slots = Operands::kSlots,
               .cpu = decode_attention_cpu<W>});
}

}  // namespace

void add_decode_attention_cpu(KernelLibrary& kernels) {
  add<float>(kernels);
  add<BFloat16>(kernels);
}

}  // namespace tileweave
