#!/usr/bin/env python3
"""Baseline (i): Hugging Face transformers, StaticCache and torch.compile, greedy decode.

  python3 bench/baselines/hf_static_cache.py --model llama-3.2-1b --batch 1,8 --json FILE

Random weights of a configuration with the preset's shapes; PyTorch and transformers needed. A step
is one call of the compiled model and an argmax, fed its own tokens, as `generate` does it.
"""

import inspect
import os

os.environ.setdefault("HF_HUB_OFFLINE", "1")

import torch
import torch._inductor.config
import transformers
from transformers import AutoModelForCausalLM, StaticCache

from decode_measurement import parse_options, run_baseline
from hf_config import config_of


class HuggingFaceModel:
    def __init__(self, shape, options):
        self.options = options
        self.config = config_of(shape)
        with torch.device(options.device):
            self.model = AutoModelForCausalLM.from_config(
                self.config, dtype=options.dtype, attn_implementation="sdpa").eval()
        # The keyword was renamed within version 5.
        parameters = inspect.signature(self.model.forward).parameters
        self.cache_keyword = "past_key_values" if "past_key_values" in parameters else "cache"
        self.takes_cache_position = "cache_position" in parameters

    def prepare(self, batch):
        options, device = self.options, self.options.device
        cache = StaticCache(config=self.config, max_cache_len=options.cache_tokens)
        prompt = torch.randint(0, self.config.vocab_size, (batch, options.context), device=device)

        def forward(ids, positions):
            named = {self.cache_keyword: cache}
            if self.takes_cache_position:
                named["cache_position"] = positions
            logits = self.model(input_ids=ids, position_ids=positions[None].expand(batch, -1),
                                use_cache=True, logits_to_keep=1, **named).logits
            return logits[:, -1].argmax(-1, keepdim=True)

        first = forward(prompt, torch.arange(options.context, device=device)).clone()
        positions = [torch.tensor([options.context + i], device=device)
                     for i in range(options.steps)]
        state = {}

        def compile_forward(fullgraph):
            return torch.compile(forward, mode=options.mode if device == "cuda" else None,
                                 backend="inductor" if device == "cuda" else "aot_eager",
                                 dynamic=False, fullgraph=fullgraph)

        def restart():
            # Tokens past the context are masked and written anew: the count alone goes back.
            for layer in cache.layers:
                if isinstance(getattr(layer, "cumulative_length", None), torch.Tensor):
                    layer.cumulative_length.fill_(options.context)
            state["token"] = first.clone()
            state["done"] = 0

        def step():
            if device == "cuda":
                torch.compiler.cudagraph_mark_step_begin()
            # The graph's memory is its own: what the next step reads must be a copy.
            state["token"] = state["run"](state["token"], positions[state["done"]]).clone()
            state["done"] += 1

        state["run"] = compile_forward(fullgraph=True)
        restart()
        try:
            step()
            notes = {"fullgraph": True}
        except torch._dynamo.exc.TorchDynamoException as error:
            notes = {"fullgraph": False, "why": str(error).splitlines()[0]}
            torch._dynamo.reset()
            state["run"] = compile_forward(fullgraph=False)
        for _ in range(3):  # records the graph, replays it
            restart()
            for _ in range(min(3, options.steps)):
                step()
        if device == "cuda":
            torch.cuda.synchronize()
        return restart, step, notes


def main():
    options = parse_options(__doc__.splitlines()[0], ["reduce-overhead", "max-autotune", "default"])
    torch.set_float32_matmul_precision("high")
    torch._inductor.config.coordinate_descent_tuning = True
    with torch.no_grad():
        run_baseline("Hugging Face static cache + torch.compile", options,
                     {"transformers": transformers.__version__}, HuggingFaceModel)


if __name__ == "__main__":
    main()
