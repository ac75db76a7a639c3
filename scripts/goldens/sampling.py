#!/usr/bin/env python3
"""Writes tests/kernels/sampling/warper_goldens.h: what transformers' logits processors leave.

Made with transformers 5.24.0, torch 2.15.0. Run from the root of the repository:

    python3 scripts/goldens/sampling.py > tests/kernels/sampling/warper_goldens.h

The processors are those that `generate` builds from a GenerationConfig, in its order. Logits are
multiples of 1/8, so that ties are exact; the file holds them eightfold.

Top-p sorts logits with torch.sort, which leaves the order of equal ones open (it differs between
machines): here it sorts stably, so that of equal tokens the lowest id is removed first.
"""

import functools
import random

import torch
import transformers
from transformers import GenerationConfig, LlamaConfig, LlamaForCausalLM

VOCABULARY = 40


def tiny_model():
    return LlamaForCausalLM(
        LlamaConfig(vocab_size=VOCABULARY, hidden_size=8, intermediate_size=8, num_hidden_layers=1,
                    num_attention_heads=1, bos_token_id=0, eos_token_id=1))


def logits_of(kind, seed):
    """Eightfold logits of one row."""
    draw = random.Random(seed)
    if kind == "spread":
        return [draw.randint(-48, 48) for _ in range(VOCABULARY)]
    if kind == "ties":  # few distinct values
        return [8 * draw.randint(-2, 2) for _ in range(VOCABULARY)]
    if kind == "equal":
        return [8] * VOCABULARY
    if kind == "peaked":
        return [200 if i == 17 else draw.randint(-40, 0) for i in range(VOCABULARY)]
    raise ValueError(kind)


def cases():
    yield "plain", "spread", {}
    yield "temperature", "spread", {"temperature": 0.7}
    yield "hot", "spread", {"temperature": 5.0}
    yield "top-k", "spread", {"top_k": 5}
    yield "top-k at a tie", "ties", {"top_k": 6}
    yield "top-k beyond the vocabulary", "spread", {"top_k": 1000}
    yield "top-p", "spread", {"top_p": 0.9}
    yield "top-p at a tie", "ties", {"top_p": 0.55}
    yield "top-p of equal tokens, on the boundary", "equal", {"top_p": 0.5}
    yield "top-p of equal tokens", "equal", {"top_p": 0.26}
    yield "top-p next to nothing", "spread", {"top_p": 1e-6}
    yield "top-p of a peak", "peaked", {"top_p": 0.5}
    yield "min-p", "spread", {"min_p": 0.1}
    yield "min-p of one", "ties", {"min_p": 1.0}
    yield "penalty", "spread", {"repetition_penalty": 1.3}
    yield "reward", "spread", {"repetition_penalty": 0.8}
    yield "all", "spread", {"repetition_penalty": 1.2, "temperature": 1.7, "top_k": 20,
                            "top_p": 0.85, "min_p": 0.05}
    yield "all at ties", "ties", {"repetition_penalty": 1.5, "temperature": 0.5, "top_k": 9,
                                  "top_p": 0.7, "min_p": 0.02}


def processed(model, eightfold, history, parameters):
    config = GenerationConfig(do_sample=True, top_k=parameters.get("top_k", 0),
                              **{k: v for k, v in parameters.items() if k != "top_k"})
    processors = model._get_logits_processor(generation_config=config,
                                             input_ids_seq_length=len(history), device="cpu")
    scores = torch.tensor([eightfold], dtype=torch.float32) / 8
    return processors(torch.tensor([history]), scores)[0]


def main():
    torch.sort = functools.partial(torch.sort, stable=True)
    model = tiny_model()
    print("// Written by scripts/goldens/sampling.py with transformers", transformers.__version__,
          "and torch", torch.__version__.split("+")[0] + "; do not edit.")
    print("// clang-format off\n#pragma once\n\n#include <cstdint>\n#include <vector>\n")
    print("namespace tileweave {\n")
    print("/// One row: probabilities that transformers leaves, 0 for tokens that it removes.")
    print("struct WarperGolden {\n  const char* name;")
    print("  float temperature, top_p, min_p, repetition_penalty;\n  std::int32_t top_k;")
    print("  std::vector<std::int32_t> history;\n  std::vector<std::int32_t> eightfold_logits;")
    print("  std::vector<float> probabilities;\n};\n")
    print("inline std::vector<WarperGolden> warper_goldens() {\n  return {")
    for seed, (name, kind, parameters) in enumerate(cases()):
        draw = random.Random(1000 + seed)
        history = [draw.randrange(VOCABULARY) for _ in range(12)]
        history += history[:5]
        eightfold = logits_of(kind, seed)
        scores = processed(model, eightfold, history, parameters)
        probabilities = [
            "0" if score == -float("inf") else "%.9gF" % p if "." in "%.9g" % p or "e" in "%.9g" % p
            else "%.1fF" % p for score, p in zip(scores.tolist(), scores.softmax(-1).tolist())]
        numbers = [repr(float(parameters.get(key, default))) + "F" for key, default in
                   (("temperature", 1), ("top_p", 1), ("min_p", 0), ("repetition_penalty", 1))]
        print('      {"%s",' % name, ", ".join(numbers) + ",", str(parameters.get("top_k", 0)) + ",")
        print("       {" + ", ".join(map(str, history)) + "},")
        print("       {" + ", ".join(map(str, eightfold)) + "},")
        print("       {" + ", ".join(probabilities) + "}},")
    print("  };\n}\n\n}  // namespace tileweave")


if __name__ == "__main__":
    main()
