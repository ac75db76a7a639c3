#!/usr/bin/env python3
"""Writes tests/kernels/rope/hugging_face_rope.h: RoPE frequencies and turned vectors of transformers.

The committed file was made with torch 2.15.0 (CPU) and transformers 5.24.0:
    python scripts/goldens/rope.py > tests/kernels/rope/hugging_face_rope.h
"""

import struct

import torch
import transformers
from transformers import LlamaConfig
from transformers.models.llama.modeling_llama import LlamaRotaryEmbedding, apply_rotary_pos_emb

CASES = [  # name, head_dim, rope_parameters
    ("theta 1e4", 64, {"rope_type": "default", "rope_theta": 10000.0}),
    ("theta 1e5", 64, {"rope_type": "default", "rope_theta": 100000.0}),
    ("theta 1e6", 128, {"rope_type": "default", "rope_theta": 1000000.0}),
    ("linear", 64, {"rope_type": "linear", "rope_theta": 10000.0, "factor": 4.0}),
    ("llama3 by 8", 128, {"rope_type": "llama3", "rope_theta": 500000.0, "factor": 8.0,
                          "low_freq_factor": 1.0, "high_freq_factor": 4.0,
                          "original_max_position_embeddings": 8192}),
    ("llama3 by 32", 64, {"rope_type": "llama3", "rope_theta": 500000.0, "factor": 32.0,
                          "low_freq_factor": 1.0, "high_freq_factor": 4.0,
                          "original_max_position_embeddings": 8192}),
    ("llama3, short context", 16, {"rope_type": "llama3", "rope_theta": 10000.0, "factor": 3.0,
                                   "low_freq_factor": 1.5, "high_freq_factor": 5.0,
                                   "original_max_position_embeddings": 96}),
]
POSITIONS = [0, 1, 63, 4095, 131071]


def rotary(head_dim, parameters):
    config = LlamaConfig(hidden_size=head_dim, num_attention_heads=1, num_key_value_heads=1,
                         head_dim=head_dim, max_position_embeddings=131072,
                         rope_parameters=dict(parameters))
    return LlamaRotaryEmbedding(config)


def bits(values):
    words = [f"0x{struct.unpack('<I', struct.pack('<f', v))[0]:08x}" for v in values]
    lines = [", ".join(words[i:i + 8]) for i in range(0, len(words), 8)]
    return ",\n         ".join(lines)


def scaling(parameters):
    kind = {"default": "kDefault", "linear": "kLinear", "llama3": "kLlama3"}[parameters["rope_type"]]
    text = f".theta = {parameters['rope_theta']:.0f}, .scaling = RopeScaling::{kind}"
    for key in ("factor", "low_freq_factor", "high_freq_factor",
                "original_max_position_embeddings"):
        if key in parameters:
            text += f", .{key} = {parameters[key]:g}"
    return text


def turned(head_dim, parameters):
    """A head whose element j is (j % 7 - 3) / 4, at every position."""
    head = (torch.arange(head_dim) % 7 - 3).float() / 4
    q = head.expand(1, 1, len(POSITIONS), head_dim)
    cos, sin = rotary(head_dim, parameters)(q, torch.tensor([POSITIONS]))
    return apply_rotary_pos_emb(q, q, cos, sin)[0].flatten().tolist()


print(f"""// RoPE frequencies and turned heads as bits of fp32. Written by scripts/goldens/rope.py with torch
// {torch.__version__.split('+')[0]} and transformers {transformers.__version__}; edit the script, not this file.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "tileweave/kernels/rope/rope_frequencies.h"

namespace tileweave {{

struct HuggingFaceRope {{
  std::string name;
  RopeOptions options;
  std::vector<std::uint32_t> inv_freq;
  /// The head (j % 7 - 3) / 4 turned at each of kHuggingFacePositions.
  std::vector<std::uint32_t> turned = {{}};
}};

inline const std::vector<std::int32_t> kHuggingFacePositions = {{{", ".join(map(str, POSITIONS))}}};

// clang-format off
inline std::vector<HuggingFaceRope> hugging_face_rope() {{
  return {{""")
for name, head_dim, parameters in CASES:
    print(f'      {{"{name}", {{.head_dim = {head_dim}, {scaling(parameters)}}},')
    print(f"        {{{bits(rotary(head_dim, parameters).inv_freq.tolist())}}},")
    keep = name in ("theta 1e5", "llama3, short context")
    print(f"        {{{bits(turned(head_dim, parameters)) if keep else ''}}}}},")
print("""  };
}
// clang-format on

}  // namespace tileweave""")
