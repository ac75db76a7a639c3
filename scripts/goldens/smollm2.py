#!/usr/bin/env python3
"""Makes tests/models/data/smollm2_golden.json: what transformers makes of the default model.

usage: smollm2.py DIRECTORY        (as scripts/fetch_smollm2.py prints it; needs torch, transformers)

The committed file was made with torch 2.15.0 and transformers 5.24.0. Arithmetic is fp32 with eager
attention on the bf16 weights. Of CANDIDATES, all chats of one user message, the three whose greedy
runs keep the widest margins are taken: for each the message, the text and ids of its chat prompt, the
next 24 ids and their text, `first_logits`, the eight largest after the prompt as [id, logit], and
`min_margin`, the smallest difference of the two largest logits in the run. A margin is some thousand
times the rounding error of fp32 here, far less than 100 x 1e-4 of a row's norm: 49152 logits make that
norm large. `whole_answers` says how many ids each candidate's answer takes until its eos.
"""
import json
import os
import sys
import warnings

import torch
import transformers

FILE = os.path.join(os.path.dirname(os.path.abspath(__file__)),
                    '../../tests/models/data/smollm2_golden.json')
CANDIDATES = [
    'What is the capital of France?', 'Write one sentence about the sea.',
    'Why is the sky blue?', 'Name three colours.', 'Tell me a short story about a weaver.',
    'What is a loom?', 'How do I boil an egg?', 'What is 2 + 2?', 'Who wrote Hamlet?',
    'Explain in two sentences how weaving works.', 'Translate "good morning" into French.',
    'List the days of the week.', 'What does a compiler do?', 'Describe a cat in one sentence.',
    'Give me a recipe for pancakes.', 'What is the largest planet of the solar system?']
NEW_TOKENS = 24
LONGEST = 120


def greedy(model, ids, eos):
    """Greedy ids, at least NEW_TOKENS (eos is passed over) and then to an eos, the margins, the
    first row of logits."""
    out, margins, cache, first = [], [], None, None
    rows = torch.tensor([ids])
    while len(out) < NEW_TOKENS or (eos not in out and len(out) < LONGEST):
        answer = model(rows, past_key_values=cache, use_cache=True, logits_to_keep=1)
        cache, last = answer.past_key_values, answer.logits[0, -1]
        first = last if first is None else first
        best = last.topk(2)
        margins.append((best.values[0] - best.values[1]).item())
        out.append(best.indices[0].item())
        rows = best.indices[:1].unsqueeze(0)
    return out, margins, first


def main():
    folder = sys.argv[1]
    warnings.simplefilter('ignore', FutureWarning)
    transformers.logging.set_verbosity_error()
    transformers.logging.disable_progress_bar()
    torch.set_grad_enabled(False)
    torch.set_num_threads(1)
    tokenizer = transformers.AutoTokenizer.from_pretrained(folder)
    model = transformers.AutoModelForCausalLM.from_pretrained(
        folder, dtype=torch.float32, attn_implementation='eager').eval()
    runs, answers = [], {}
    for message in CANDIDATES:
        text = tokenizer.apply_chat_template([{'role': 'user', 'content': message}],
                                             tokenize=False, add_generation_prompt=True)
        prompt = tokenizer(text, add_special_tokens=False).input_ids
        eos = tokenizer.eos_token_id
        ids, margins, first = greedy(model, prompt, eos)
        answers[message] = ids.index(eos) + 1 if eos in ids else None
        print(f'{min(margins[:NEW_TOKENS]):.4f} {answers[message]} {message}', flush=True)
        new = ids[:NEW_TOKENS]
        best = first.topk(8)
        runs.append({'message': message, 'prompt': text, 'prompt_ids': prompt, 'ids': new,
                     'text': tokenizer.decode(new, skip_special_tokens=True),
                     'first_logits': [[i, round(v, 5)] for i, v in
                                      zip(best.indices.tolist(), best.values.tolist())],
                     'min_margin': round(min(margins[:NEW_TOKENS]), 4)})
    runs.sort(key=lambda run: -run['min_margin'])
    os.makedirs(os.path.dirname(FILE), exist_ok=True)
    with open(FILE, 'w', encoding='utf-8') as file:
        file.write('{\n  "runs": [\n    ')
        file.write(',\n    '.join(json.dumps(run) for run in runs[:3]))
        file.write(f'\n  ],\n  "whole_answers": {json.dumps(answers)}\n}}\n')


if __name__ == '__main__':
    main()
