#include "tileweave/models/step_knobs.h"

#include <limits>
#include <nlohmann/json.hpp>
#include <utility>

#include "tileweave/kernels/attention/attention_shared.h"
#include "tileweave/kernels/gemm/skinny_gemm.h"
#include "tileweave/models/json/json_file.h"

namespace tileweave {
namespace {

constexpr std::array<const char*, kNumStepOps> kNames = {
    "embedding", "norm",    "qkv",      "qk_norm", "rope", "attention",
    "o",         "gate_up", "silu_mul", "down",    "head", "draw"};

constexpr const char* kBulk = "bulk";
constexpr const char* kPortable = "portable";

struct NumberKnob {
  const char* name;
  std::int64_t OpKnobs::*value;
};
constexpr NumberKnob kNumbers[] = {{"blocks_per_sm", &OpKnobs::blocks_per_sm},
                                   {"strips_per_work", &OpKnobs::strips_per_work},
                                   {"split_k", &OpKnobs::split_k},
                                   {"stages", &OpKnobs::stages},
                                   {"window", &OpKnobs::window},
                                   {"wait_k", &OpKnobs::wait_k},
                                   {"shared_padding", &OpKnobs::shared_padding},
                                   {"splits", &OpKnobs::splits},
                                   {"buffers", &OpKnobs::buffers},
                                   {"tile_columns", &OpKnobs::tile_columns}};

constexpr EdgeKind kEdgeKinds[] = {EdgeKind::kFull, EdgeKind::kProgrammatic, EdgeKind::kTile};
constexpr StartRule kStartRules[] = {StartRule::kNone, StartRule::kWaitAll,
                                     StartRule::kLaunchCompletion, StartRule::kWaitFirst};

/// The value of `all` that has this name.
template <class T, std::size_t N>
T named(const T (&all)[N], const JsonNode& node) {
  std::string names;
  for (const T value : all) {
    if (node.string() == name_of(value)) return value;
    names += (names.empty() ? "" : ", ") + std::string(name_of(value));
  }
  node.refuse("one of " + names, "`" + node.string() + "`");
}

OpKnobs parse_op(const JsonNode& node) {
  OpKnobs knobs;
  for (const auto& [key, value] : node.require_object().json().items()) {
    const JsonNode member = node.at(key);
    bool known = false;
    for (const NumberKnob& number : kNumbers) {
      if (key != number.name) continue;
      knobs.*number.value = member.integer(0, std::numeric_limits<std::int32_t>::max());
      known = true;
    }
    if (known) continue;
    if (!knobs.edge) knobs.edge.emplace();
    if (key == "edge") {
      knobs.edge->kind = named(kEdgeKinds, member);
    } else if (key == "start") {
      knobs.edge->start = named(kStartRules, member);
    } else {
      member.refuse("a knob of an operator");
    }
  }
  return knobs;
}

StepKnobs parse(const JsonFile& file) {
  StepKnobs knobs;
  const JsonNode root = file.root();
  for (const auto& [key, value] : root.require_object().json().items()) {
    const JsonNode member = root.at(key);
    if (key == "num_streams") {
      knobs.num_streams = static_cast<std::int32_t>(member.integer(1, 8));
    } else if (key == "products") {
      const bool bulk = member.string() == kBulk;
      if (!bulk && member.string() != kPortable) member.refuse("`bulk` or `portable`");
      knobs.products = bulk ? SkinnyKernel::kBulk : SkinnyKernel::kPortable;
    } else if (key == "ops") {
      for (const auto& [name, op] : member.require_object().json().items()) {
        std::size_t index = 0;
        while (index < kNumStepOps && name != kNames[index]) ++index;
        if (index == kNumStepOps) member.at(name).refuse("an operator of a step");
        knobs.ops[index] = parse_op(member.at(name));
      }
    } else {
      member.refuse("`num_streams`, `products` or `ops`");
    }
  }
  return knobs;
}

bool same(const std::optional<EdgePolicy>& a, const std::optional<EdgePolicy>& b) {
  if (!a || !b) return !a && !b;
  return a->kind == b->kind && a->start == b->start && a->if_ungrounded == b->if_ungrounded;
}

/// Where a block of qkv fetches its whole share ahead, a step of one row is faster with one stage
/// less in its ring and as many of attention's buffers as lie beside that in shared memory: by 0.3
/// % (Llama-3.2-1B) and 4 % (Qwen3-1.7B), measured in docs/results/2026-12-01-cuda-decode-third.md.
/// Not where the ring is shorter than what it brings: such a one needs its depth.
void leave_room_for_attention(StepKnobs& knobs, const ModelConfig& config,
                              const DeviceLimits& limits) {
  const std::int64_t heads_per_kv = config.num_heads / config.num_kv_heads;
  if (best_products(limits) != SkinnyKernel::kBulk || limits.shared_bytes_per_sm == 0 ||
      !is_attention_head_dim(config.head_dim) || heads_per_kv > kAttentionMaxHeads) {
    return;
  }
  const std::int64_t n = (config.num_heads + 2 * config.num_kv_heads) * config.head_dim;
  const std::int64_t k = config.hidden_size;
  const std::int64_t norm_bytes = k * static_cast<std::int64_t>(sizeof(float));
  SkinnyGemmOptions cut = skinny_gemm_cut(1, n, k, limits.num_sms,
                                          {.shared_limit = limits.shared_bytes_per_block}, 1, true);
  if (cut.window > 1) return;  // not everything is fetched ahead
  const bool gives_up_a_stage = cut.stages > 2;
  if (gives_up_a_stage) --cut.stages;
  const std::int64_t room = limits.shared_bytes_per_sm - 2 * limits.shared_reserved -
                            skinny_gemm_shared(1, n, k, cut, norm_bytes);
  const AttentionShared attention{static_cast<int>(config.head_dim)};
  for (const int buffers : {2, 1}) {
    if (attention.bytes(buffers, static_cast<int>(heads_per_kv)) > room) continue;
    knobs.at(StepOp::kAttention).buffers = buffers;
    if (gives_up_a_stage) knobs.at(StepOp::kQkv).stages = cut.stages;
    return;
  }
}

}  // namespace

const char* name_of(StepOp op) {
  return kNames[static_cast<std::size_t>(op)];
}

bool operator==(const OpKnobs& a, const OpKnobs& b) {
  for (const NumberKnob& number : kNumbers) {
    if (a.*number.value != b.*number.value) return false;
  }
  return same(a.edge, b.edge);
}

StepKnobs with_edges(StepKnobs knobs, const EdgePolicy& edge) {
  for (OpKnobs& op : knobs.ops) op.edge = edge;
  return knobs;
}

SkinnyKernel best_products(const DeviceLimits& limits) {
  constexpr std::int32_t kFirstWithBulk = 90;
  const bool has_bulk =
      limits.compute_capability == 0 || limits.compute_capability >= kFirstWithBulk;
  return has_bulk ? SkinnyKernel::kBulk : SkinnyKernel::kPortable;
}

bool has_wide_products(const DeviceLimits& limits, SkinnyKernel products) {
  return products == SkinnyKernel::kBulk &&
         (limits.compute_capability == 0 || limits.compute_capability / 10 == 9);
}

StepKnobs default_knobs(const ModelConfig& config, std::int64_t rows, const DeviceLimits& limits) {
  // Full reductions stand on both sides of every edge of a decode step: there a programmatic edge
  // is the cheapest one.
  StepKnobs knobs = with_edges({.num_streams = 1}, {.kind = EdgeKind::kProgrammatic});
  if (rows == 1) leave_room_for_attention(knobs, config, limits);
  return knobs;
}

std::string to_json(const StepKnobs& knobs) {
  nlohmann::ordered_json json;
  if (knobs.num_streams != 0) json["num_streams"] = knobs.num_streams;
  if (knobs.products) json["products"] = *knobs.products == SkinnyKernel::kBulk ? kBulk : kPortable;
  json["ops"] = nlohmann::ordered_json::object();
  for (std::size_t i = 0; i < kNumStepOps; ++i) {
    const OpKnobs& op = knobs.ops[i];
    nlohmann::ordered_json one = nlohmann::ordered_json::object();
    if (op.edge) {
      one["edge"] = name_of(op.edge->kind);
      if (op.edge->kind == EdgeKind::kTile) one["start"] = name_of(op.edge->start);
    }
    for (const NumberKnob& number : kNumbers) {
      if (op.*number.value != 0) one[number.name] = op.*number.value;
    }
    if (!one.empty()) json["ops"][kNames[i]] = one;
  }
  return json.dump();
}

StepKnobs parse_knobs(std::string_view text, const std::string& name) {
  return parse(JsonFile::parse(text, name));
}

StepKnobs read_knobs(const std::string& path) {
  return parse(JsonFile::read(path));
}

}  // namespace tileweave
