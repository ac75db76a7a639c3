"""What both PyTorch baselines share: model shapes, options, timing, the streaming rate, the JSON.

A baseline gives `build(shape, options)`, which makes one model, and the model's `prepare(batch)`,
which returns two functions and notes for the JSON: `restart()` puts every sequence back to
`context` tokens, `step()` enqueues one greedy decode step of the whole batch. Everything else
happens here.
"""

import argparse
import dataclasses
import gc
import json
import platform
import statistics
import subprocess
import sys
import time

import torch


@dataclasses.dataclass(frozen=True)
class ModelShape:
    """Of tileweave/models/presets.cpp, which has the same numbers."""

    name: str
    family: str  # "llama", "qwen3"
    vocab: int
    hidden: int
    inner: int
    layers: int
    heads: int
    kv_heads: int
    head_dim: int
    tied: bool
    rope_factor: float  # of Llama's scaling

    @property
    def eps(self):
        return 1e-5 if self.family == "llama" else 1e-6

    @property
    def rope_theta(self):
        return 500000.0 if self.family == "llama" else 1000000.0

    @property
    def max_positions(self):
        return 131072 if self.family == "llama" else 40960

    @property
    def qkv_rows(self):
        return (self.heads + 2 * self.kv_heads) * self.head_dim

    def weights_read(self):
        """Elements of the weights that one decode step reads."""
        attention = self.hidden * (self.qkv_rows + self.heads * self.head_dim)
        norms = 2 * self.hidden + (2 * self.head_dim if self.family == "qwen3" else 0)
        per_layer = attention + 3 * self.hidden * self.inner + norms
        return self.layers * per_layer + self.hidden + self.vocab * self.hidden

    def cache_elements(self, batch, tokens):
        return 2 * self.layers * batch * tokens * self.kv_heads * self.head_dim


SHAPES = {
    shape.name: shape
    for shape in (
        ModelShape("llama-3.2-1b", "llama", 128256, 2048, 8192, 16, 32, 8, 64, True, 32.0),
        ModelShape("llama-3.1-8b", "llama", 128256, 4096, 14336, 32, 32, 8, 128, False, 8.0),
        ModelShape("qwen3-0.6b", "qwen3", 151936, 1024, 3072, 28, 16, 8, 128, True, 1.0),
        ModelShape("qwen3-1.7b", "qwen3", 151936, 2048, 6144, 28, 16, 8, 128, True, 1.0),
        ModelShape("qwen3-8b", "qwen3", 151936, 4096, 12288, 36, 32, 8, 128, False, 1.0),
    )
}


def tiny(shape):
    """The same architecture, small enough for a check without a GPU."""
    return dataclasses.replace(
        shape, vocab=512, hidden=64, inner=128, layers=2, heads=4, kv_heads=2, head_dim=64
    )


def parse_options(description, modes):
    """`modes`: of torch.compile, the default first."""
    parser = argparse.ArgumentParser(description=description)
    parser.add_argument("--model", default="llama-3.2-1b", help="names, comma-separated")
    parser.add_argument("--batch", default="1,8", help="sequences per step, comma-separated")
    parser.add_argument("--context", type=int, default=128, help="tokens before the first step")
    parser.add_argument("--steps", type=int, default=32, help="of one repetition")
    parser.add_argument("--repeats", type=int, default=12)
    parser.add_argument("--mode", choices=modes, default=modes[0], help="of torch.compile")
    parser.add_argument("--budget-s", type=float, default=240,
                        help="no model and batch is begun after this many seconds")
    parser.add_argument("--json", help="file that the results go to")
    parser.add_argument("--device", choices=("cuda", "cpu"), default="cuda")
    parser.add_argument("--tiny", action="store_true", help="tiny layers: a check of this script")
    options = parser.parse_args()
    options.models = options.model.split(",")
    for name in options.models:
        if name not in SHAPES:
            parser.error(f"no model {name}; there are {', '.join(SHAPES)}")
    try:
        options.batches = [int(text) for text in options.batch.split(",")]
    except ValueError:
        parser.error(f"--batch {options.batch}: numbers, comma-separated")
    if min(options.batches + [options.context, options.steps, options.repeats]) < 1:
        parser.error("--batch, --context, --steps and --repeats are 1 or more")
    if options.device == "cuda" and not torch.cuda.is_available():
        parser.error("PyTorch sees no GPU here (--device cpu --tiny checks the script)")
    options.dtype = torch.bfloat16 if options.device == "cuda" else torch.float32
    # Tokens of the static cache: no longer than the steps need, since every step reads all of it.
    options.cache_tokens = -(-(options.context + options.steps) // 32) * 32
    return options


def hardware_line(device):
    if device == "cpu":
        return f"cpu {platform.machine()}"
    properties = torch.cuda.get_device_properties(0)
    line = (f"{properties.name}, {properties.multi_processor_count} SMs, "
            f"{properties.total_memory / 2**30:.1f} GiB, CUDA {torch.version.cuda}")
    query = ["nvidia-smi", "--query-gpu=driver_version,clocks.sm,clocks.mem",
             "--format=csv,noheader"]
    try:
        said = subprocess.run(query, capture_output=True, text=True, timeout=20, check=True)
        driver, sm_clock, memory_clock = said.stdout.splitlines()[0].split(", ")
        line += f", driver {driver}, clocks SM {sm_clock} memory {memory_clock}"
    except (OSError, subprocess.SubprocessError, ValueError, IndexError):
        line += ", driver unknown"
    return line


def median_ms(device, repeats, enqueue):
    """Milliseconds of `enqueue()` on the device, one value per repetition."""
    times = []
    for _ in range(repeats):
        if device == "cpu":
            begin = time.perf_counter()
            enqueue()
            times.append((time.perf_counter() - begin) * 1e3)
            continue
        begin, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
        begin.record()
        enqueue()
        end.record()
        end.synchronize()
        times.append(begin.elapsed_time(end))
    return times


def streaming_rates(options):
    """GB/s of a read and of a copy through PyTorch, cold data: far more than the L2 cache."""
    total = 2**33 if options.device == "cuda" else 2**26
    pieces = [torch.empty(total // 16, dtype=torch.float32, device=options.device).normal_()
              for _ in range(4)]

    def read():
        for piece in pieces:
            piece.sum()

    def copy():
        pieces[1].copy_(pieces[0])
        pieces[3].copy_(pieces[2])

    rates = {}
    for name, work in (("read", read), ("copy", copy)):
        median_ms(options.device, 2, work)
        ms = statistics.median(median_ms(options.device, 10, work))
        rates[name] = total / ms / 1e6
    del pieces
    release(options)
    return rates


def release(options):
    gc.collect()
    if options.device == "cuda":
        torch.cuda.empty_cache()


def measure_steps(options, restart, step):
    """Milliseconds per step, one value per repetition of options.steps steps."""

    def steps():
        for _ in range(options.steps):
            step()

    times = []
    for repeat in range(options.repeats + 2):
        restart()
        if options.device == "cuda":
            torch.cuda.synchronize()
        ms = median_ms(options.device, 1, steps)[0] / options.steps
        if repeat >= 2:
            times.append(ms)
    return times


def run_baseline(title, options, versions, build):
    """Measures every model at every batch; prints a table and keeps the JSON file current."""
    begin = time.perf_counter()
    torch.manual_seed(1)
    report = {
        "baseline": title,
        "command": " ".join(sys.argv),
        "hardware": hardware_line(options.device),
        "versions": {"python": platform.python_version(), "torch": torch.__version__, **versions},
        "compile_mode": options.mode,
        "streaming_rate_GB_per_s": streaming_rates(options),
        "streaming_rate_how": "medians of 10: read: torch.sum over 4 f32 tensors of 2 GiB; "
                              "copy: 2 tensors of 2 GiB to 2 others, bytes read + written",
        "results": [],
    }

    def save():
        if options.json:
            with open(options.json, "w", encoding="utf-8") as file:
                json.dump(report, file, indent=1)
                file.write("\n")

    rate = max(report["streaming_rate_GB_per_s"].values())
    print(f"{title}: torch {torch.__version__}, {report['hardware']}")
    print("streaming rate: " + ", ".join(
        f"{name} {value:.0f} GB/s" for name, value in report["streaming_rate_GB_per_s"].items()))
    print(f"{'model':<14} {'batch':>5} {'ms/step':>9} {'least':>8} {'most':>8} {'GB':>7} "
          f"{'share':>6} {'compile s':>9}", flush=True)
    save()
    for name in options.models:
        shape = tiny(SHAPES[name]) if options.tiny else SHAPES[name]
        model = None
        for batch in options.batches:
            row = {"model": name, "batch": batch, "context": options.context,
                   "steps": options.steps, "repeats": options.repeats,
                   "cache_tokens": options.cache_tokens}
            report["results"].append(row)
            if time.perf_counter() - begin > options.budget_s:
                row["not_measured"] = f"--budget-s {options.budget_s:g} was used up"
                print(f"{name:<14} {batch:>5} not measured: {row['not_measured']}", flush=True)
                save()
                continue
            # Nothing compiled for another batch: no shape becomes dynamic.
            torch._dynamo.reset()
            if model is None:
                model = build(shape, options)
            compile_begin = time.perf_counter()
            restart, step, notes = model.prepare(batch)
            compile_s = time.perf_counter() - compile_begin
            times = measure_steps(options, restart, step)
            ms = statistics.median(times)
            element = torch.finfo(options.dtype).bits // 8
            # What a step has to read: weights once, the keys and values of the middle step.
            tokens = options.context + options.steps // 2
            read = element * (shape.weights_read() + shape.cache_elements(batch, tokens))
            row.update(ms_per_step=ms, ms_least=min(times), ms_most=max(times), bytes=read,
                       share_of_streaming_rate=read / ms / 1e6 / rate, compile_s=compile_s, **notes)
            print(f"{name:<14} {batch:>5} {ms:>9.4f} {min(times):>8.4f} {max(times):>8.4f} "
                  f"{read / 1e9:>7.3f} {row['share_of_streaming_rate'] * 100:>5.1f}% "
                  f"{compile_s:>9.1f}", flush=True)
            save()
            del restart, step
            release(options)
        del model
        release(options)
