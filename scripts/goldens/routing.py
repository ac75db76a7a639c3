#!/usr/bin/env python3
"""Writes tests/kernels/routing/hugging_face_routing.h: experts and weights of transformers' routers.

The committed file was made with torch 2.15.0 (CPU) and transformers 5.24.0:
    python scripts/goldens/routing.py > tests/kernels/routing/hugging_face_routing.h

The routers' weight is the identity, so their logits are the rows given to them. These rows, and the
biases, are made from integers by the same formula in the test.
"""

import struct

import torch
import transformers
from transformers import (DeepseekV3Config, DeepseekV4Config, MixtralConfig, OlmoeConfig,
                          Qwen3MoeConfig)
from transformers.models.deepseek_v3.modeling_deepseek_v3 import DeepseekV3TopkRouter
from transformers.models.deepseek_v4.modeling_deepseek_v4 import DeepseekV4TopKRouter
from transformers.models.mixtral.modeling_mixtral import MixtralTopKRouter
from transformers.models.olmoe.modeling_olmoe import OlmoeTopKRouter
from transformers.models.qwen3_moe.modeling_qwen3_moe import Qwen3MoeTopKRouter

ROWS = 24
CASES = [  # name, router, config class, rule in C++, experts, top k, extra config, with bias
    ("OLMoE", OlmoeTopKRouter, OlmoeConfig, "olmoe_routing()", 64, 8,
     {"norm_topk_prob": False}, False),
    ("Qwen3-MoE", Qwen3MoeTopKRouter, Qwen3MoeConfig, "qwen3_moe_routing()", 128, 8,
     {"norm_topk_prob": True}, False),
    ("Mixtral", MixtralTopKRouter, MixtralConfig, "mixtral_routing()", 8, 2, {}, False),
    ("DeepSeek-V3", DeepseekV3TopkRouter, DeepseekV3Config, "deepseek_v3_routing()", 256, 8,
     {"n_group": 8, "topk_group": 4, "norm_topk_prob": True, "routed_scaling_factor": 2.5}, True),
    ("DeepSeek-V4", DeepseekV4TopKRouter, DeepseekV4Config, "deepseek_v4_routing()", 256, 6,
     {"routed_scaling_factor": 1.5, "scoring_func": "sqrtsoftplus"}, True),
]


def mixed(a, b, c):
    """20 bits of three small integers; the test has the same function."""
    x = (a * 0x9e3779b1 + b * 0x85ebca77 + c * 0xc2b2ae3d + 0x27d4eb2f) & 0xffffffff
    x = ((x ^ (x >> 15)) * 0x2c1b3c6d) & 0xffffffff
    x = ((x ^ (x >> 12)) * 0x297a2d39) & 0xffffffff
    return (x ^ (x >> 15)) & 0xfffff


def bits(value):
    return f"0x{struct.unpack('<I', struct.pack('<f', value))[0]:08x}"


def config_of(kind, experts, top_k, extra):
    config = kind(hidden_size=experts, num_experts_per_tok=top_k)
    for name in ("num_experts", "num_local_experts", "n_routed_experts"):
        if hasattr(config, name):
            setattr(config, name, experts)
    for name, value in extra.items():
        setattr(config, name, value)
    return config


print(f"""// Experts and weights of transformers' routers. Written by scripts/goldens/routing.py with torch
// {torch.__version__.split('+')[0]} and transformers {transformers.__version__}; edit the script, not this file.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "tileweave/kernels/routing/routing_rule.h"

namespace tileweave {{

inline constexpr std::int32_t kHuggingFaceRows = {ROWS};

struct HuggingFaceRouting {{
  std::string name;
  RoutingRule rule;
  std::int32_t experts;
  bool has_bias;
  std::vector<std::int32_t> ids;       // (rows, k), ascending
  std::vector<std::uint32_t> weights;  // bits of fp32, in the order of the ids
}};

// clang-format off
inline std::vector<HuggingFaceRouting> hugging_face_routing() {{
  return {{""")
for number, (name, router_class, kind, rule, experts, top_k, extra, has_bias) in enumerate(CASES):
    router = router_class(config_of(kind, experts, top_k, extra))
    with torch.no_grad():
        router.weight.copy_(torch.eye(experts))
        if has_bias:
            bias = [mixed(number, 1000, e) / 2**23 for e in range(experts)]
            router.e_score_correction_bias.copy_(torch.tensor(bias))
    rows = torch.tensor([[mixed(number, r, e) / 2**17 - 4 for e in range(experts)]
                         for r in range(ROWS)], dtype=torch.float32)
    with torch.no_grad():
        logits, weights, ids = router(rows)
    assert torch.equal(logits, rows)
    all_ids, all_weights = [], []
    for r in range(ROWS):
        pairs = sorted(zip(ids[r].tolist(), weights[r].tolist()))
        all_ids += [str(i) for i, _ in pairs]
        all_weights += [bits(w) for _, w in pairs]
    print(f'    {{"{name}", {rule}, {experts}, {"true" if has_bias else "false"},')
    for values, per_line, opening, closing in ((all_ids, 20, "{", "},"), (all_weights, 8, "{", "}},")):
        lines = [", ".join(values[i:i + per_line]) for i in range(0, len(values), per_line)]
        print("     " + opening + ",\n      ".join(lines) + closing)
print("""  };
}
// clang-format on

}  // namespace tileweave""")
