#!/usr/bin/env python3
"""Makes tests/models/data/<name>/: tiny seeded models as Hugging Face directories, with goldens.

usage: models.py [--check] [NAME]...        (needs torch, transformers, safetensors, numpy)

The committed files were made with torch 2.15.0, transformers 5.24.0, safetensors 0.8.0 and
numpy 2.4.6 on one thread of an x86-64 processor. --check makes them anew beside and compares with
the committed ones: weights and ids bit for bit, logits within 1e-5 (their last bits depend on the
processor).

A directory holds config.json, generation_config.json, model*.safetensors (fp32) and
  golden.safetensors  logits_f32, logits_bf16, logits_f16: F32 (65, vocabulary), the logits after each
                      prefix of the 65 ids. Arithmetic is fp32 with eager attention throughout; in
                      the last two every weight, norm and bias too, was rounded to that type first.
  golden.json         `ids`, the 65 ids; `greedy`: prompts of unequal lengths, each with its next
                      tokens under fp32 weights. eos ids are ignored there; `stops_after` says after
                      how many of them (the eos counted) a run that honours them ends, or null.

Greedy ids are safe from rounding: at every step the margin, defined as
(largest logit - second largest) / ||all logits of the row||_2, exceeds 100 x 1e-4. Prompts are drawn
until they satisfy that. The script also checks what it wrote: the directory loads in transformers and
gives the same logits; stepwise decode with a cache and a left-padded batch of all prompts give the
same rows and ids; fp32 agrees with fp64 within 1e-5; every feature changes logits when taken away.
"""
import argparse
import copy
import json
import os
import shutil
import sys
import tempfile
import warnings

import numpy
import safetensors.torch
import torch
import transformers

from tiny_models import MODELS

DATA = os.path.join(os.path.dirname(os.path.abspath(__file__)), '../../tests/models/data')
LENGTH = 65
PROMPT_LENGTHS = (3, 15, 16, 17, 32)
NEW_TOKENS = 26
MARGIN = 100 * 1e-4       # of the norm of the row; 1e-4 is the tolerance of the logits
DISTINCT = 8              # ids among the new tokens, so that no run is a mere repetition
AGREEMENT = 1e-5          # between two ways of computing the same logits
EFFECT = 1e-2             # by which a feature must change some row
TYPES = {'f32': torch.float32, 'bf16': torch.bfloat16, 'f16': torch.float16}


def row_error(a, b):
    """Largest ||a - b||_2 / ||b||_2 over the rows."""
    a, b = a.double(), b.double()
    return ((a - b).norm(dim=-1) / b.norm(dim=-1)).max().item()


def require(condition, model, what):
    if not condition:
        sys.exit(f'error: {model.name}: {what}')


def rounded(network, dtype):
    """A copy whose weights are representable in `dtype`; its arithmetic stays fp32."""
    network = copy.deepcopy(network)
    for parameter in network.parameters():
        parameter.data = parameter.data.to(dtype).float()
    return network


def logits_of(network, ids):
    return network(torch.tensor([ids]), use_cache=False).logits[0]


def logits_stepwise(network, ids):
    rows, cache = [], None
    for token in ids:
        answer = network(torch.tensor([[token]]), past_key_values=cache, use_cache=True)
        cache = answer.past_key_values
        rows.append(answer.logits[0, -1])
    return torch.stack(rows)


def find_prompt(model, network, length, random):
    """The first random prompt of that length whose greedy run keeps its margins and its variety."""
    vocabulary = network.config.vocab_size
    for _ in range(200):
        runs = torch.from_numpy(random.integers(0, vocabulary, (256, length)))
        margins = torch.full((len(runs),), float('inf'))
        cache = None
        for step in range(NEW_TOKENS):
            answer = network(runs if step == 0 else runs[:, -1:], past_key_values=cache,
                             use_cache=True, logits_to_keep=1)
            cache, last = answer.past_key_values, answer.logits[:, -1]
            best = last.topk(2, dim=-1)
            margin = (best.values[:, 0] - best.values[:, 1]) / last.norm(dim=-1)
            alive = margin > MARGIN
            runs = torch.cat([runs, best.indices[:, :1]], dim=1)[alive]
            margins = torch.minimum(margins, margin)[alive]
            cache.batch_select_indices(alive.nonzero()[:, 0])
            if len(runs) == 0:
                break
        for run, margin in zip(runs.tolist(), margins.tolist()):
            if len(set(run[length:])) >= DISTINCT:
                return {'prompt': run[:length], 'ids': run[length:], 'min_margin': round(margin, 6)}
    require(False, model, f'no prompt of {length} ids keeps its margins')


def choose_eos(greedy):
    """Two eos ids: one cuts the second run in the middle, one is met by no run."""
    new_ids = {token for run in greedy for token in run['ids']}
    middle = next(t for i, t in enumerate(greedy[1]['ids']) if i >= 8 and
                  t not in greedy[1]['ids'][:i])
    unmet = next(t for t in range(2, 10_000) if t not in new_ids)
    for run in greedy:
        run['stops_after'] = run['ids'].index(middle) + 1 if middle in run['ids'] else None
    return [unmet, middle]


def write_directory(model, network, eos, folder):
    network.generation_config = transformers.GenerationConfig(bos_token_id=0, eos_token_id=eos)
    network.save_pretrained(folder, max_shard_size=model.max_shard_size)
    path = os.path.join(folder, 'config.json')
    with open(path, encoding='utf-8') as file:
        config = json.load(file)
    write_json(model.rewrite(config), path)
    files = [name for name in os.listdir(folder) if name.endswith('.safetensors')]
    require(len(files) == model.shards, model, f'{len(files)} weight files, not {model.shards}')


def check_features(model, network, ids, logits):
    effects = {}
    for name, take_away in model.features.items():
        poorer = copy.deepcopy(network)
        take_away(poorer)
        effects[name] = round(row_error(logits_of(poorer, ids), logits), 4)
        require(effects[name] > EFFECT, model, f'without {name} the logits change by only '
                                               f'{effects[name]}')
    return effects


def generate(network, prompts, **options):
    """Greedy ids of a left-padded batch, as transformers' own generator gives them."""
    longest = max(map(len, prompts))
    ids = torch.tensor([[0] * (longest - len(p)) + p for p in prompts])
    mask = torch.tensor([[0] * (longest - len(p)) + [1] * len(p) for p in prompts])
    out = network.generate(ids, attention_mask=mask, do_sample=False, max_new_tokens=NEW_TOKENS,
                           pad_token_id=0, **options)
    return out[:, longest:].tolist()


def check_directory(model, folder, ids, logits, greedy):
    loaded = transformers.AutoModelForCausalLM.from_pretrained(
        folder, dtype=torch.float32, attn_implementation='eager').eval()
    require(torch.equal(logits_of(loaded, ids), logits), model, 'the directory gives other logits')
    require(row_error(logits_stepwise(loaded, ids), logits) < AGREEMENT, model,
            'stepwise decode gives other logits')
    prompts, expected = [run['prompt'] for run in greedy], [run['ids'] for run in greedy]
    require(generate(loaded, prompts, eos_token_id=None) == expected, model,
            'a batch gives other ids')
    for run in greedy:
        alone = generate(loaded, [run['prompt']])[0]  # honours generation_config.json
        require(alone == run['ids'][:run['stops_after']], model, 'a run stops elsewhere')


def make(model, folder):
    network = model.make()
    random = numpy.random.default_rng(1000 + model.seed)
    ids = random.integers(0, network.config.vocab_size, LENGTH).tolist()
    logits = {name: logits_of(rounded(network, dtype), ids) for name, dtype in TYPES.items()}
    double_error = row_error(logits['f32'], logits_of(copy.deepcopy(network).double(), ids))
    require(double_error < AGREEMENT, model, f'fp32 is {double_error} away from fp64')
    require(row_error(logits['bf16'], logits['f32']) > 1e-3, model, 'rounding changes nothing')
    effects = check_features(model, network, ids, logits['f32'])
    greedy = [find_prompt(model, network, length, random) for length in PROMPT_LENGTHS]
    eos = choose_eos(greedy)
    write_directory(model, network, eos, folder)
    check_directory(model, folder, ids, logits['f32'], greedy)
    tensors = {f'logits_{name}': rows.contiguous() for name, rows in logits.items()}
    safetensors.torch.save_file(tensors, os.path.join(folder, 'golden.safetensors'))
    write_json({'ids': ids, 'greedy': greedy, 'fp32_against_fp64': float(f'{double_error:.2e}'),
                'change_when_taken_away': effects}, os.path.join(folder, 'golden.json'))
    print(f'{model.name}: fp32 against fp64 {double_error:.1e}, smallest margin '
          f'{min(run["min_margin"] for run in greedy):.4f}, taken away: {effects}', flush=True)


def write_json(value, path):
    """One key a line; lists and inner objects of the goldens stay on theirs."""
    lines = []
    for key, item in value.items():
        if isinstance(item, list) and item and isinstance(item[0], dict):
            text = '[\n    ' + ',\n    '.join(json.dumps(entry) for entry in item) + '\n  ]'
        else:
            text = json.dumps(item)
        lines.append(f'  {json.dumps(key)}: {text}')
    with open(path, 'w', encoding='utf-8') as file:
        file.write('{\n' + ',\n'.join(lines) + '\n}\n')


def compare(model, made, committed):
    names = sorted(os.listdir(made))
    require(names == sorted(os.listdir(committed)), model, f'other files: {names}')
    for name in names:
        paths = [os.path.join(folder, name) for folder in (made, committed)]
        if name.endswith('.safetensors'):
            new, old = (safetensors.torch.load_file(path) for path in paths)
            require(new.keys() == old.keys(), model, f'{name} holds other tensors')
            for key in new:
                same = (row_error(new[key], old[key]) < AGREEMENT if name.startswith('golden')
                        else torch.equal(new[key], old[key]))
                require(same, model, f'{name}: {key} differs')
        elif name.endswith('golden.json'):
            new, old = (json.load(open(path, encoding='utf-8')) for path in paths)
            runs = [[(r['prompt'], r['ids'], r['stops_after']) for r in g['greedy']]
                    for g in (new, old)]
            require(new['ids'] == old['ids'] and runs[0] == runs[1], model, 'other greedy ids')


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument('--check', action='store_true')
    parser.add_argument('names', nargs='*', metavar='NAME')
    options = parser.parse_args()
    known = {model.name for model in MODELS}
    if set(options.names) - known:
        sys.exit(f'error: unknown model {(set(options.names) - known).pop()}; known: '
                 + ' '.join(sorted(known)))
    warnings.simplefilter('ignore', FutureWarning)  # names of arguments that newer versions change
    torch.set_num_threads(1)
    torch.set_grad_enabled(False)
    transformers.logging.set_verbosity_error()
    transformers.logging.disable_progress_bar()
    for model in MODELS:
        if options.names and model.name not in options.names:
            continue
        committed = os.path.join(DATA, model.name)
        with tempfile.TemporaryDirectory() as folder:
            make(model, folder)
            if options.check:
                compare(model, folder, committed)
            else:
                shutil.rmtree(committed, ignore_errors=True)
                shutil.copytree(folder, committed)


if __name__ == '__main__':
    main()
