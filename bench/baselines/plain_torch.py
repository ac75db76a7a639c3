#!/usr/bin/env python3
"""Baseline (ii): a plain PyTorch decoder, max-autotune, its whole step in one CUDA graph.

  python3 bench/baselines/plain_torch.py --model llama-3.2-1b --batch 1,8 --json FILE

Nothing but PyTorch. Random weights; the cache holds random keys and values up to the context, since
only decode is measured. The unit of compilation is a layer, so that compiling and tuning take
seconds: a layer ends before its last addition, which the next layer begins with, and so every
fusion that a compiled whole step would have stays possible. The step, with its tokens and
positions moved on, is captured once and replayed.
"""

import math
from typing import NamedTuple

import torch
import torch.nn.functional as F

from decode_measurement import parse_options, run_baseline


class Layer(NamedTuple):
    attention_norm: torch.Tensor  # (H)
    qkv: torch.Tensor  # ((heads + 2 kv_heads) D, H)
    q_norm: torch.Tensor | None  # (D)
    k_norm: torch.Tensor | None  # (D)
    o: torch.Tensor  # (H, heads D)
    mlp_norm: torch.Tensor  # (H)
    gate_up: torch.Tensor  # (2 I, H)
    down: torch.Tensor  # (H, I)


def rms_norm(x, weight, eps):
    wide = x.float()
    scale = torch.rsqrt(wide.square().mean(-1, keepdim=True) + eps)
    return (wide * scale).to(x.dtype) * weight


def rope(x, cos, sin):
    """x (B, heads, D), cos and sin (B, 1, D / 2)."""
    left, right = x.float().chunk(2, dim=-1)
    turned = torch.cat((left * cos - right * sin, right * cos + left * sin), dim=-1)
    return turned.to(x.dtype)


def rotary_frequencies(shape):
    """(D / 2), as the family's published configurations ask."""
    exponents = torch.arange(0, shape.head_dim, 2, dtype=torch.float64) / shape.head_dim
    frequencies = shape.rope_theta ** -exponents
    if shape.family != "llama":
        return frequencies.float()
    low, high, original = 1.0, 4.0, 8192
    waves = 2 * math.pi / frequencies
    blend = ((original / waves - low) / (high - low)).clamp(0, 1)
    return ((1 - blend) * frequencies / shape.rope_factor + blend * frequencies).float()


def begin(token, position, embedding, angles, cache_tokens: int):
    """Residual (B, H), cos and sin (B, 1, D / 2), mask (1, 1, 1, S): what all layers share."""
    angle = angles[position]
    mask = torch.arange(cache_tokens, device=token.device) <= position
    return embedding[token], angle.cos()[None], angle.sin()[None], mask[None, None, None]


def layer_step(x, delta, layer, keys, values, position, cos, sin, mask, eps: float):
    """x (B, H), delta of the layer before; keys and values (B, kv_heads, S, D), written at
    `position` (1). Returns the residual without the MLP's part, and that part."""
    batch, kv_heads, _, head_dim = keys.shape
    x = x + delta
    qkv = F.linear(rms_norm(x, layer.attention_norm, eps), layer.qkv)
    heads = layer.o.shape[1] // head_dim
    q, k, v = qkv.view(batch, -1, head_dim).split([heads, kv_heads, kv_heads], dim=1)
    if layer.q_norm is not None:
        q, k = rms_norm(q, layer.q_norm, eps), rms_norm(k, layer.k_norm, eps)
    q, k = rope(q, cos, sin), rope(k, cos, sin)
    keys.index_copy_(2, position, k[:, :, None])
    values.index_copy_(2, position, v[:, :, None])
    # The query heads of a group are rows that share keys and values: nothing is repeated.
    q = q.reshape(batch, kv_heads, heads // kv_heads, head_dim)
    attended = F.scaled_dot_product_attention(q, keys, values, attn_mask=mask)
    x = x + F.linear(attended.reshape(batch, -1), layer.o)
    gate, up = F.linear(rms_norm(x, layer.mlp_norm, eps), layer.gate_up).chunk(2, dim=-1)
    return x, F.linear(F.silu(gate) * up, layer.down)


def finish(x, delta, norm, head, token, position, eps: float):
    """Puts the likeliest next tokens in `token` (B), moves `position` on, returns the logits."""
    logits = F.linear(rms_norm(x + delta, norm, eps), head)
    token.copy_(logits.argmax(-1))
    position.add_(1)
    return logits


class PlainModel:
    def __init__(self, shape, options):
        self.shape, self.options = shape, options
        q_rows = shape.heads * shape.head_dim

        def matrix(rows, columns):  # variance 1 / K: activations stay finite
            spread = math.sqrt(3 / columns)
            return self.empty(rows, columns).uniform_(-spread, spread)

        def norm(columns):
            return self.empty(columns).uniform_(0.875, 1.125)

        def layer():
            qk = [norm(shape.head_dim) if shape.family == "qwen3" else None for _ in range(2)]
            return Layer(norm(shape.hidden), matrix(shape.qkv_rows, shape.hidden), *qk,
                         matrix(shape.hidden, q_rows), norm(shape.hidden),
                         matrix(2 * shape.inner, shape.hidden), matrix(shape.hidden, shape.inner))

        self.embedding = matrix(shape.vocab, shape.hidden)
        self.layers = [layer() for _ in range(shape.layers)]
        self.norm = norm(shape.hidden)
        self.head = self.embedding if shape.tied else matrix(shape.vocab, shape.hidden)
        positions = torch.arange(options.cache_tokens + 1).float()
        self.angles = torch.outer(positions, rotary_frequencies(shape)).to(options.device)

    def empty(self, *sizes):
        return torch.empty(*sizes, dtype=self.options.dtype, device=self.options.device)

    def step_function(self, compiled, token, position, caches):
        """One step of (token, position), with every part run through `compiled`."""
        first, middle, last = compiled(begin), compiled(layer_step), compiled(finish)
        nothing = self.empty(token.shape[0], self.shape.hidden).zero_()
        eps, cache_tokens = self.shape.eps, self.options.cache_tokens

        def step():
            x, cos, sin, mask = first(token, position, self.embedding, self.angles, cache_tokens)
            delta = nothing
            for layer, (keys, values) in zip(self.layers, caches):
                x, delta = middle(x, delta, layer, keys, values, position, cos, sin, mask, eps)
            return last(x, delta, self.norm, self.head, token, position, eps)

        return step

    def prepare(self, batch):
        options, shape, device = self.options, self.shape, self.options.device
        size = (batch, shape.kv_heads, options.cache_tokens, shape.head_dim)
        caches = [(self.empty(*size).normal_(), self.empty(*size).normal_()) for _ in self.layers]
        first = torch.randint(0, shape.vocab, (batch,), device=device)
        token = first.clone()
        position = torch.tensor([options.context], device=device)

        def restart():
            token.copy_(first)
            position.fill_(options.context)

        def compiled(function):
            if device == "cpu":
                return torch.compile(function, backend="aot_eager", dynamic=False, fullgraph=True)
            return torch.compile(function, mode=options.mode, dynamic=False, fullgraph=True)

        step = self.step_function(compiled, token, position, caches)
        plain_step = self.step_function(lambda function: function, token, position, caches)
        restart()
        expected = plain_step().float()
        restart()
        error = ((step().float() - expected).norm() / expected.norm()).item()
        notes = {"logits_error_to_uncompiled": error}
        if not error < 0.1:
            raise RuntimeError(f"compiled logits differ from the uncompiled step's by {error:.2g}")
        if device == "cpu":
            return restart, step, notes

        side = torch.cuda.Stream()
        side.wait_stream(torch.cuda.current_stream())
        with torch.cuda.stream(side):
            for _ in range(3):
                restart()
                step()
        torch.cuda.current_stream().wait_stream(side)
        restart()
        graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(graph):
            step()
        return restart, graph.replay, notes


def main():
    options = parse_options(__doc__.splitlines()[0],
                            ["max-autotune-no-cudagraphs", "default"])
    torch.set_float32_matmul_precision("high")
    with torch.no_grad():
        run_baseline("plain PyTorch, torch.compile, one CUDA graph", options, {}, PlainModel)


if __name__ == "__main__":
    main()
