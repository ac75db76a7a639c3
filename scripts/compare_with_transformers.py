#!/usr/bin/env python3
"""How far logits are from transformers in fp32, for transformers in bf16 and for tileweave.

  python3 scripts/compare_with_transformers.py --json FILE                   (a GPU, two minutes)
  python3 scripts/compare_with_transformers.py --device cpu --tiny --positions 512 --length 64

Makes a random model of a preset's shape as a Hugging Face folder in bf16, weights of variance 1 / K,
and random sequences of tokens. The reference is transformers in fp32 (no TF32, eager attention) on
the same folder. Over all positions: the mean KL divergence of the reference from each other program,
and the share of positions at which both find the same token the likeliest. tileweave runs once per
arm, PATH:GRANULARITY: `prompt` takes sequences as prompts, `decode` a token of each in every step;
its logits come through a pipe and are never in memory all at once.

Ends with exit status 1 unless tileweave's mean KL is at most 1.1 times that of bf16, and its
agreement at most half a point lower. Needs torch, transformers and a built command.
"""
import argparse
import collections
import concurrent.futures
import fcntl
import json
import os
import struct
import subprocess
import sys
import tempfile
import time

os.environ.setdefault('HF_HUB_OFFLINE', '1')

import torch
import transformers

ROOT = os.path.normpath(os.path.join(os.path.dirname(os.path.abspath(__file__)), '..'))
sys.path.insert(0, os.path.join(ROOT, 'bench', 'baselines'))
from decode_measurement import SHAPES, hardware_line, tiny
from hf_config import config_of

KL_BAR = 1.1      # times the mean KL of transformers in bf16
TOP1_BAR = 0.5    # points below its agreement
PIPE_BYTES = 1 << 20
ROWS = 256        # that are compared at a time

Arm = collections.namedtuple('Arm', 'name path granularity')


def parse_options(arguments):
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument('--model', default='llama-3.2-1b', choices=sorted(SHAPES))
    parser.add_argument('--positions', type=int, default=65536, help='of all sequences')
    parser.add_argument('--length', type=int, default=2048, help='of one sequence')
    parser.add_argument('--side-by-side', type=int, default=8, help='sequences of a decode step')
    parser.add_argument('--arms', default='prompt:ops,decode:stages', help='comma-separated')
    parser.add_argument('--seed', type=int, default=1)
    parser.add_argument('--command', default=os.path.join(ROOT, 'bin', 'tileweave'))
    parser.add_argument('--scratch', help='folder for the model, that of temporary files if not given')
    parser.add_argument('--json', help='file that the results go to')
    parser.add_argument('--device', choices=('cuda', 'cpu'), default='cuda')
    parser.add_argument('--tiny', action='store_true', help='tiny layers: a check of this script')
    options = parser.parse_args(arguments)
    if min(options.positions, options.length, options.side_by_side) < 1:
        parser.error('--positions, --length and --side-by-side are 1 or more')
    if options.positions % options.length:
        parser.error(f'--positions {options.positions}: whole sequences of {options.length}')
    options.arm_list = []
    for name in options.arms.split(','):
        path, _, granularity = name.partition(':')
        if path not in ('prompt', 'decode') or granularity not in ('ops', 'stages'):
            parser.error(f'--arms {name}: prompt or decode, then ops or stages, as prompt:ops')
        options.arm_list.append(Arm(name, path, granularity))
    if options.device == 'cuda' and not torch.cuda.is_available():
        parser.error('PyTorch sees no GPU here (--device cpu --tiny checks the script)')
    if not os.access(options.command, os.X_OK):
        parser.error(f'no command at {options.command}; `make build` makes it, --command names it')
    return options


def make_model(folder, shape, seed, device):
    """Weights as the presets have them: matrices of variance 1 / K, norms around 1, all uniform."""
    torch.manual_seed(seed)
    with torch.device(device):
        model = transformers.AutoModelForCausalLM.from_config(config_of(shape),
                                                              dtype=torch.bfloat16)
    for parameter in model.parameters():
        if parameter.dim() == 1:
            parameter.data.uniform_(0.875, 1.125)
        else:
            spread = (3 / parameter.shape[1]) ** 0.5
            parameter.data.uniform_(-spread, spread)
    model.tie_weights()
    model.save_pretrained(folder)


def load(folder, dtype, attention, device):
    return transformers.AutoModelForCausalLM.from_pretrained(
        folder, dtype=dtype, attn_implementation=attention).to(device).eval()


class Stream:
    """Logits of a running `tileweave logits`, in the order of its rows."""

    def __init__(self, options, arm, folder, ids_file, shape):
        self.arm, self.device, self.shape = arm, options.device, shape
        reader, writer = os.pipe()
        fcntl.fcntl(writer, fcntl.F_SETPIPE_SZ, PIPE_BYTES)
        side_by_side = options.side_by_side if arm.path == 'decode' else 0
        self.process = subprocess.Popen(
            [options.command, 'logits', '--model', folder, '--ids-file', ids_file,
             '--side-by-side', str(side_by_side), '--granularity', arm.granularity,
             '--device', options.device, '--out', f'/dev/fd/{writer}'],
            pass_fds=[writer], stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)
        os.close(writer)
        self.pipe = os.fdopen(reader, 'rb', buffering=0)
        self.seconds = 0.0
        self.why = ''
        self.begun = False

    def fill(self, view):
        at = 0
        while at < len(view):
            count = self.pipe.readinto(view[at:])
            if not count:
                sys.exit(f'error: {self.end() or self.arm.name + ": too few rows"}')
            at += count

    def header(self):
        """The file is of one safetensors tensor."""
        length = bytearray(8)
        self.fill(memoryview(length))
        text = bytearray(struct.unpack('<Q', length)[0])
        self.fill(memoryview(text))
        entry = json.loads(text)['logits']
        if entry['dtype'] != 'F32' or entry['shape'] != self.shape:
            sys.exit(f'error: {self.arm.name}: logits F32 {self.shape} were expected, not '
                     f"{entry['dtype']} {entry['shape']}")
        self.begun = True

    def read(self, to):
        """Fills `to`, (rows, vocabulary), on the device."""
        begin = time.perf_counter()
        if not self.begun:
            self.header()
        buffer = torch.empty(min(64, to.shape[0]), to.shape[1], dtype=torch.float32,
                             pin_memory=self.device == 'cuda')
        for at in range(0, to.shape[0], buffer.shape[0]):
            rows = buffer[:min(buffer.shape[0], to.shape[0] - at)]
            self.fill(memoryview(rows.numpy()).cast('B'))
            to[at:at + rows.shape[0]].copy_(rows)
        self.seconds += time.perf_counter() - begin

    def end(self):
        """Why it gave fewer rows than it should; nothing where it gave all."""
        if self.process.returncode is not None:
            return self.why
        self.pipe.close()
        said = self.process.communicate()[1]
        if self.process.returncode != 0:
            self.why = (f'tileweave logits, {self.arm.name}: exit {self.process.returncode}: '
                        f'{said.strip()}')
        return self.why


class Distance:
    """Sums over positions of how far a program is from the reference."""

    def __init__(self):
        self.positions = self.agreeing = 0
        self.kl = self.largest_kl = 0.0

    def add(self, reference, other):
        """Logits of the same positions, (rows, vocabulary)."""
        for at in range(0, reference.shape[0], ROWS):
            p = reference[at:at + ROWS].double().log_softmax(-1)
            q = other[at:at + ROWS].double().log_softmax(-1)
            kl = (p.exp() * (p - q)).sum(-1)
            self.kl += kl.sum().item()
            self.largest_kl = max(self.largest_kl, kl.max().item())
            self.agreeing += (p.argmax(-1) == q.argmax(-1)).sum().item()
        self.positions += reference.shape[0]

    def numbers(self):
        return {'positions': self.positions, 'mean_kl': self.kl / self.positions,
                'largest_kl': self.largest_kl,
                'top1_agreement_percent': 100 * self.agreeing / self.positions}


@torch.no_grad()
def compare(options, shape, folder, ids, streams):
    """Distances by program; the streams are read as the reference goes on."""
    reference = load(folder, torch.float32, 'eager', options.device)
    bf16 = load(folder, torch.bfloat16, 'sdpa', options.device)
    distances = {name: Distance()
                 for name in ['transformers bf16'] + [s.arm.name for s in streams]}
    readers = concurrent.futures.ThreadPoolExecutor(len(streams))
    for first in range(0, len(ids), options.side_by_side):
        group = ids[first:first + options.side_by_side]
        buffers = [torch.empty(group.numel(), shape.vocab, device=options.device)
                   for _ in streams]
        reads = [readers.submit(*pair) for pair in zip([s.read for s in streams], buffers)]
        expected, others = [], []
        for row in group:
            row = row[None].to(options.device)
            expected.append(reference(row, use_cache=False).logits[0])
            others.append(bf16(row, use_cache=False).logits[0])
        for read in reads:
            read.result()  # or what went wrong there
        for i in range(len(group)):
            distances['transformers bf16'].add(expected[i], others[i])
            for stream, buffer in zip(streams, buffers):
                # A prompt's rows follow one another; in decoding, those of a position do.
                by_sequence = (buffer.view(len(group), options.length, -1)
                               if stream.arm.path == 'prompt'
                               else buffer.view(options.length, len(group), -1).transpose(0, 1))
                distances[stream.arm.name].add(expected[i], by_sequence[i])
    return distances


def verdict(numbers, arms):
    """What misses a bar, as sentences."""
    bf16 = numbers['transformers bf16']
    misses = []
    for arm in arms:
        ours = numbers[arm.name]
        ours['kl_over_bf16'] = ours['mean_kl'] / bf16['mean_kl'] if bf16['mean_kl'] else 1.0
        below = bf16['top1_agreement_percent'] - ours['top1_agreement_percent']
        if not ours['mean_kl'] <= KL_BAR * bf16['mean_kl']:
            misses.append(f"{arm.name}: mean KL {ours['kl_over_bf16']:.3f} times that of bf16, "
                          f'bar {KL_BAR}')
        if not below <= TOP1_BAR:
            misses.append(f'{arm.name}: top-1 agreement {below:.2f} points below that of bf16, '
                          f'bar {TOP1_BAR}')
    return misses


def main(arguments=None):
    options = parse_options(arguments)
    begin = time.perf_counter()
    transformers.logging.set_verbosity_error()
    transformers.logging.disable_progress_bar()
    torch.set_float32_matmul_precision('highest')
    shape = tiny(SHAPES[options.model]) if options.tiny else SHAPES[options.model]
    with tempfile.TemporaryDirectory(dir=options.scratch) as scratch:
        folder, ids_file = os.path.join(scratch, 'model'), os.path.join(scratch, 'ids.txt')
        make_model(folder, shape, options.seed, options.device)
        generator = torch.Generator().manual_seed(options.seed)
        ids = torch.randint(0, shape.vocab, (options.positions // options.length, options.length),
                            generator=generator)
        with open(ids_file, 'w', encoding='utf-8') as file:
            file.writelines(','.join(map(str, row)) + '\n' for row in ids.tolist())
        streams = [Stream(options, arm, folder, ids_file, [options.positions, shape.vocab])
                   for arm in options.arm_list]
        try:
            distances = compare(options, shape, folder, ids, streams)
        finally:
            ends = [stream.end() for stream in streams]
        for why in filter(None, ends):
            sys.exit(f'error: {why}')
    numbers = {name: distance.numbers() for name, distance in distances.items()}
    misses = verdict(numbers, options.arm_list)
    report = {
        'what': 'distance of logits from transformers in fp32',
        'command': ' '.join(sys.argv), 'hardware': hardware_line(options.device),
        'versions': {'torch': torch.__version__, 'transformers': transformers.__version__},
        'model': options.model, 'tiny': options.tiny, 'seed': options.seed,
        'length': options.length, 'side_by_side': options.side_by_side,
        'bars': {'kl_over_bf16': KL_BAR, 'top1_points_below_bf16': TOP1_BAR},
        'programs': numbers, 'misses': misses, 'seconds': time.perf_counter() - begin,
        'seconds_reading': {stream.arm.name: stream.seconds for stream in streams},
    }
    print(f"{options.model}{' (tiny)' if options.tiny else ''}, {options.positions} positions in "
          f"sequences of {options.length}, against transformers {transformers.__version__} in "
          f"fp32; {report['hardware']}; {report['seconds']:.0f} s")
    print(f"{'':<20} {'mean KL':>11} {'largest':>11} {'x bf16':>7} {'top-1 %':>8}")
    for name, row in numbers.items():
        print(f"{name:<20} {row['mean_kl']:>11.3e} {row['largest_kl']:>11.3e} "
              f"{row.get('kl_over_bf16', 1):>7.3f} {row['top1_agreement_percent']:>8.3f}")
    for miss in misses:
        print(f'missed: {miss}')
    if options.json:
        with open(options.json, 'w', encoding='utf-8') as file:
            json.dump(report, file, indent=1)
            file.write('\n')
    return 1 if misses else 0


if __name__ == '__main__':
    sys.exit(main())
