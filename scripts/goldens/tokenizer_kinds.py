#!/usr/bin/env python3
"""Makes tests/models/tokenizer/data/: small tokenizers of every kind, and what they must answer.

usage: tokenizer_kinds.py [--check]        (needs the package tokenizers)

The committed files were made with tokenizers 0.23.3. --check makes them anew and compares.

No vocabulary of anybody else is copied: a few hundred tokens are trained on the text of
tokenizer_text.py, with the splitter, the normalizer, the decoder, the post-processor and the added
tokens that the published files of that kind have. Written are
  <kind>.json         a tokenizer.json
  <kind>.golden.json  `strings`: for each string of strings.json [ids with special tokens, ids
                      without, decoded, decoded without special tokens]; null in the second place
                      stands for the first, in the last two for the string itself. `long`: for each
                      long string [number of ids, their FNV-1a hash, whether decoding gives it back].
                      `decoded`: [ids, decoded, decoded without special tokens] of random ids.
  strings.json        `strings` and `long`, pairs [unit, count]
  variants.json       parts that no kind above has: a base, what replaces its parts, answers as
                      above; null where the package itself gives up
"""
import argparse
import collections
import json
import os
import random
import sys
import tempfile

import tokenizers
from tokenizers import models, pre_tokenizers, trainers

import tokenizer_text

FOLDER = os.path.join(os.path.dirname(os.path.abspath(__file__)), '../../tests/models/tokenizer/data')
MADE_WITH = '0.23.3'

LLAMA3_WORDS = (r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}|"
                r" ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+")
QWEN2_WORDS = (r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}|"
               r" ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+")


def byte_level(prefix=False, trim=True, regex=True):
    return {'type': 'ByteLevel', 'add_prefix_space': prefix, 'trim_offsets': trim, 'use_regex': regex}


def split(regex, behavior='Isolated', invert=False):
    return {'type': 'Split', 'pattern': {'Regex': regex}, 'behavior': behavior, 'invert': invert}


def sequence(key, *parts):
    return {'type': 'Sequence', key: list(parts)}


def added(ident, content, special=True, **flags):
    token = {'id': ident, 'content': content, 'single_word': False, 'lstrip': False, 'rstrip': False,
             'normalized': False, 'special': special}
    assert flags.keys() <= token.keys()
    return {**token, **flags}


def template(token, ident):
    return {'type': 'TemplateProcessing',
            'single': [{'SpecialToken': {'id': token, 'type_id': 0}}, {'Sequence': {'id': 'A', 'type_id': 0}}],
            'pair': [{'SpecialToken': {'id': token, 'type_id': 0}}, {'Sequence': {'id': 'A', 'type_id': 0}},
                     {'SpecialToken': {'id': token, 'type_id': 1}}, {'Sequence': {'id': 'B', 'type_id': 1}}],
            'special_tokens': {token: {'id': token, 'ids': [ident], 'tokens': [token]}}}


def document(model, **parts):
    empty = {'version': '1.0', 'truncation': None, 'padding': None, 'added_tokens': [],
             'normalizer': None, 'pre_tokenizer': None, 'post_processor': None, 'decoder': None}
    return {**empty, **parts, 'model': {'type': 'BPE', 'dropout': None, 'unk_token': None,
                                        'continuing_subword_prefix': None, 'end_of_word_suffix': None,
                                        'fuse_unk': False, 'byte_fallback': False,
                                        'ignore_merges': False, **model}}


def load(doc):
    return tokenizers.Tokenizer.from_str(json.dumps(doc))


def train(parts, size, specials=(), **options):
    """Vocabulary and merges, trained with the normalizer and the splitter of `parts`."""
    tokenizer = load(document({'vocab': {}, 'merges': []}, **parts))
    trainer = trainers.BpeTrainer(vocab_size=size, show_progress=False, special_tokens=list(specials),
                                  **options)
    tokenizer.train_from_iterator(tokenizer_text.TRAINING * 4, trainer)
    model = json.loads(tokenizer.to_str())['model']
    return model['vocab'], model['merges']


def train_bytes(parts, size, specials=()):
    return train(parts, size, specials, initial_alphabet=sorted(pre_tokenizers.ByteLevel.alphabet()))


def commonest(count):
    """The commonest characters of the text. Left to itself, the trainer picks among equally common
    ones by chance."""
    counts = collections.Counter(' '.join(tokenizer_text.TRAINING).replace(' ', '▁'))
    chosen = sorted(counts, key=lambda c: (-counts[c], c))[:count]
    return {'initial_alphabet': chosen, 'limit_alphabet': count}


def as_strings(merges):
    return [' '.join(pair) for pair in merges]


def gpt2():
    """Merges as strings, no model type: as the oldest files are."""
    parts = {'pre_tokenizer': byte_level(), 'decoder': byte_level(trim=True),
             'post_processor': byte_level(trim=False)}
    vocab, merges = train_bytes(parts, 640)
    doc = document({'continuing_subword_prefix': '', 'end_of_word_suffix': '', 'vocab': vocab,
                    'merges': as_strings(merges)},
                   added_tokens=[added(len(vocab), '<|endoftext|>')], **parts)
    del doc['model']['type'], doc['model']['ignore_merges'], doc['model']['byte_fallback']
    for part in ('pre_tokenizer', 'decoder', 'post_processor'):
        del doc[part]['use_regex']
    return doc


def llama3():
    """ignore_merges, with words that no merges lead to; a template behind ByteLevel."""
    parts = {'pre_tokenizer': sequence('pretokenizers', split(LLAMA3_WORDS), byte_level(regex=False))}
    vocab, merges = train_bytes(parts, 640)
    for word in ('unreachable', 'Ġunreachable', 'ĠTileweave', '123', 'é', 'ä½łå¥½', 'ĊĊĊ'):
        vocab.setdefault(word, len(vocab))
    names = ['<|begin_of_text|>', '<|end_of_text|>', '<|start_header_id|>', '<|end_header_id|>',
             '<|eot_id|>'] + [f'<|reserved_special_token_{i}|>' for i in range(16)]
    first = len(vocab)
    return document({'vocab': vocab, 'merges': as_strings(merges), 'ignore_merges': True},
                    added_tokens=[added(first + i, name) for i, name in enumerate(names)],
                    post_processor=sequence('processors', byte_level(prefix=True, trim=False),
                                            template('<|begin_of_text|>', first)),
                    decoder=byte_level(prefix=True), **parts)


def qwen(merges_form):
    parts = {'normalizer': {'type': 'NFC'},
             'pre_tokenizer': sequence('pretokenizers', split(QWEN2_WORDS),
                                       byte_level(trim=False, regex=False))}
    vocab, merges = train_bytes(parts, 640)
    special = ['<|endoftext|>', '<|im_start|>', '<|im_end|>']
    ordinary = ['<tool_call>', '</tool_call>', '<think>', '</think>']
    first = len(vocab)
    tokens = [added(first + i, name) for i, name in enumerate(special)]
    tokens += [added(first + 3 + i, name, special=False) for i, name in enumerate(ordinary)]
    return document({'continuing_subword_prefix': '', 'end_of_word_suffix': '', 'vocab': vocab,
                     'merges': merges_form(merges)},
                    added_tokens=tokens, post_processor=byte_level(trim=False, regex=False),
                    decoder=byte_level(trim=False, regex=False), **parts)


def smollm2():
    """Special tokens come first in the vocabulary; digits are split off before words."""
    names = ['<|endoftext|>', '<|im_start|>', '<|im_end|>', '<repo_name>', '<filename>']
    parts = {'pre_tokenizer': sequence('pretokenizers', {'type': 'Digits', 'individual_digits': True},
                                       byte_level())}
    vocab, merges = train_bytes(parts, 640, names)
    return document({'vocab': vocab, 'merges': as_strings(merges)},
                    added_tokens=[added(i, name) for i, name in enumerate(names)],
                    decoder=byte_level(prefix=True), **parts)


def llama2(**parts):
    """Rare characters become bytes; merges run across blanks, as nothing splits before."""
    special = ['<unk>', '<s>', '</s>']
    bytes_ = [f'<0x{b:02X}>' for b in range(256)]
    normalizer = sequence('normalizers', {'type': 'Prepend', 'prepend': '▁'},
                          {'type': 'Replace', 'pattern': {'String': ' '}, 'content': '▁'})
    vocab, merges = train({'normalizer': normalizer}, 840, special + bytes_, max_token_length=12,
                          **commonest(90))
    decoder = sequence('decoders', {'type': 'Replace', 'pattern': {'String': '▁'}, 'content': ' '},
                       {'type': 'ByteFallback'}, {'type': 'Fuse'},
                       {'type': 'Strip', 'content': ' ', 'start': 1, 'stop': 0})
    return document({'vocab': vocab, 'merges': merges, 'unk_token': '<unk>', 'fuse_unk': True,
                     'byte_fallback': True},
                    added_tokens=[added(i, name) for i, name in enumerate(special)],
                    post_processor=template('<s>', 1), decoder=decoder, **parts)


def llama2_prepend():
    doc = llama2(normalizer=sequence(
        'normalizers', {'type': 'Prepend', 'prepend': '▁'},
        {'type': 'Replace', 'pattern': {'String': ' '}, 'content': '▁'}))
    doc['model']['merges'] = as_strings(doc['model']['merges'])
    return doc


def llama2_metaspace():
    return llama2(pre_tokenizer={'type': 'Metaspace', 'replacement': '▁', 'prepend_scheme': 'first',
                                 'split': False})


def words_metaspace():
    """No bytes to fall back on: unknown tokens, fused; words split at the visible blank."""
    metaspace = {'type': 'Metaspace', 'replacement': '▁', 'add_prefix_space': True}
    vocab, merges = train({'pre_tokenizer': metaspace}, 400, ['<unk>', '</s>'], **commonest(70))
    tokens = [added(0, '<unk>'), added(1, '</s>'),
              added(len(vocab), '<s>', lstrip=True), added(len(vocab) + 1, '<mask>', rstrip=True)]
    return document({'vocab': vocab, 'merges': merges, 'unk_token': '<unk>', 'fuse_unk': True},
                    added_tokens=tokens, pre_tokenizer=metaspace, decoder=metaspace)


KINDS = {'gpt2': gpt2, 'llama3': llama3, 'qwen2': lambda: qwen(as_strings), 'qwen3': lambda: qwen(list),
         'smollm2': smollm2, 'llama2_prepend': llama2_prepend, 'llama2_metaspace': llama2_metaspace,
         'words_metaspace': words_metaspace}


def fnv1a(ids):
    value = 0xcbf29ce484222325
    for ident in ids:
        for byte in ident.to_bytes(4, 'little'):
            value = (value ^ byte) * 0x100000001b3 % 2**64
    return f'{value:016x}'


def answer(tokenizer, text):
    """None where the package itself gives up (it panics in a few corners of the variants)."""
    try:
        return answer_of(tokenizer, text)
    except BaseException as panic:  # pylint: disable=broad-except
        if type(panic).__name__ != 'PanicException':
            raise
        return None


def answer_of(tokenizer, text):
    ids = tokenizer.encode(text).ids
    bare = tokenizer.encode(text, add_special_tokens=False).ids
    decoded = [tokenizer.decode(ids, skip_special_tokens=skip) for skip in (False, True)]
    return [ids, None if bare == ids else bare] + [None if d == text else d for d in decoded]


def answers(doc):
    tokenizer = load(doc)
    rng = random.Random(4711)
    size = max(tokenizer.get_vocab().values()) + 1
    long = []
    for unit, count in tokenizer_text.LONG:
        ids = tokenizer.encode(unit * count, add_special_tokens=False).ids
        back = tokenizer.decode(ids, skip_special_tokens=False) == unit * count
        long.append([len(ids), fnv1a(ids), back])
    decoded = []
    for _ in range(60):
        # Now and then one that names no token. The first few hundred hold the bytes.
        ids = [rng.randrange(rng.choice([size, size + 3, 300])) for _ in range(rng.randrange(1, 12))]
        decoded.append([ids, tokenizer.decode(ids, skip_special_tokens=False),
                        tokenizer.decode(ids, skip_special_tokens=True)])
    return {'strings': [answer(tokenizer, text) for text in tokenizer_text.STRINGS], 'long': long,
            'decoded': decoded}


VARIANT_TEXTS = [
    '', ' ', 'a-b', 'a--b', '-a-', '--', 'one-two--three---', 'x1y22z333', '12-34', 'Hello  World ',
    ' leading', 'trailing ', '\t tab \n', 'ÀÉ İı ſ Straße ﬁ ①', 'e\u0301 \u1e9b\u0323 Ａ', 'A.B,C;d',
    'mask', '[mask]', '[MASK]', ' [MASK] ', 'a[MASK]b', 'a [MASK] b', '[MASK][MASK]', 'é[MASK]1', 'x [MASK]-',
    'weave', 'weaver', 'weave weave', 'a weave', 'weave1', '_weave', 'weave²', 'weave\u0301', 'weave\u200d',
    'Weave', '<a><b>', '<a> <b>', '<a>  x', 'x  <b>', '  <a>  <b>  ', '<ab>', '<a><ab><b>', '<a>b>',
    '日本-語', '🧵-🧵', '\u3000全角\u3000', 'a\u00a0-\u2003b', "it's 3-ply", '-' * 40,
    'the loom - the weaver - the window', '▁a ▁b', '  ▁', ' a', 'a  b   c']


def variants():
    """name -> (base, patch): parts of tokenizer.json files beyond the published kinds."""
    out = {}
    for behavior in ('Removed', 'Isolated', 'MergedWithPrevious', 'MergedWithNext', 'Contiguous'):
        for invert in (False, True):
            rule = {'type': 'Split', 'pattern': {'String': '-'}, 'behavior': behavior, 'invert': invert}
            out[f'split {behavior} {"inverted" if invert else "as is"}'] = ('gpt2', {
                'pre_tokenizer': sequence('pretokenizers', rule, byte_level(regex=False))})
        out[f'split by a regex {behavior}'] = ('gpt2', {'pre_tokenizer': sequence(
            'pretokenizers', split(r'\d+|[^\w\s]', behavior), byte_level(regex=False))})
    out['split between all characters'] = ('gpt2', {'pre_tokenizer': sequence(
        'pretokenizers', {'type': 'Split', 'pattern': {'String': ''}, 'behavior': 'Isolated',
                          'invert': False}, byte_level(regex=False))})
    out['split at empty matches'] = ('gpt2', {'pre_tokenizer': sequence(
        'pretokenizers', split(r'\d*|(?=-)', 'MergedWithNext'), byte_level(regex=False))})
    out['a blank in front'] = ('gpt2', {'pre_tokenizer': byte_level(prefix=True)})
    out['runs of digits'] = ('gpt2', {'pre_tokenizer': sequence(
        'pretokenizers', {'type': 'Digits', 'individual_digits': False}, byte_level(prefix=True))})
    out['white space removed'] = ('gpt2', {'pre_tokenizer': sequence(
        'pretokenizers', {'type': 'WhitespaceSplit'}, byte_level(regex=False))})
    for form in ('NFC', 'NFD', 'NFKC', 'NFKD', 'Lowercase'):
        out[form] = ('gpt2', {'normalizer': {'type': form}})
    for left, right in ((True, False), (False, True), (True, True)):
        out[f'strip {left} {right}'] = ('gpt2', {'normalizer': {
            'type': 'Strip', 'strip_left': left, 'strip_right': right}})
    out['replace a regex'] = ('gpt2', {'normalizer': {
        'type': 'Replace', 'pattern': {'Regex': r'\s+|-+(?=\w)'}, 'content': '_'}})
    out['one after the other'] = ('gpt2', {'normalizer': sequence(
        'normalizers', {'type': 'NFD'}, {'type': 'Lowercase'}, {'type': 'Prepend', 'prepend': '-'},
        sequence('normalizers', {'type': 'Strip', 'strip_left': True, 'strip_right': True}))})
    for scheme in ('always', 'first', 'never'):
        for cut in (False, True):
            metaspace = {'type': 'Metaspace', 'replacement': '▁', 'prepend_scheme': scheme, 'split': cut}
            out[f'metaspace {scheme} {cut}'] = ('llama2_metaspace', {'pre_tokenizer': metaspace,
                                                                     'decoder': metaspace})
    out['metaspace first, stripped'] = ('llama2_metaspace', {
        'normalizer': {'type': 'Strip', 'strip_left': True, 'strip_right': False}})
    out['metaspace first, blanks joined'] = ('llama2_metaspace', {
        'normalizer': {'type': 'Replace', 'pattern': {'Regex': ' {2,}'}, 'content': ' '}})
    for content in ('', '+'):
        out[f'metaspace first, front replaced by "{content}"'] = ('llama2_metaspace', {'normalizer': {
            'type': 'Replace', 'pattern': {'Regex': r'^[ <-]+'}, 'content': content}})
    out['metaspace first, split before'] = ('llama2_metaspace', {'pre_tokenizer': sequence(
        'pretokenizers', split('-'), {'type': 'Metaspace', 'replacement': '▁', 'prepend_scheme': 'first',
                                      'split': True})})
    out['unknown tokens one by one'] = ('words_metaspace', {'model': {'fuse_unk': False}})
    out['unknown characters dropped'] = ('words_metaspace', {'model': {'unk_token': None}})
    out['bytes without fallback'] = ('llama2_prepend', {'model': {'byte_fallback': False}})
    tokens = [added(900, '[MASK]', lstrip=True), added(901, 'weave', special=False, single_word=True),
              added(902, '<a>', rstrip=True), added(903, '<b>', lstrip=True, rstrip=True),
              added(904, '<a><ab>', special=False), added(905, '-two-', special=False)]
    out['added tokens'] = ('gpt2', {'added_tokens': renumber(tokens)})
    normalized = [{**token, 'normalized': not token['special']} for token in tokens]
    out['added tokens in normalized text'] = ('gpt2', {
        'added_tokens': renumber(normalized), 'normalizer': {'type': 'Lowercase'}})
    out['added tokens with what is prepended'] = ('llama2_prepend', {
        'added_tokens': [added(0, '<unk>'), added(840, 'weave', special=False, normalized=True),
                         added(841, '<a>', special=False, normalized=True)]})
    out['no decoder'] = ('gpt2', {'decoder': None})
    fallback = {'type': 'ByteFallback'}
    blanks = {'type': 'Replace', 'pattern': {'String': '▁'}, 'content': ' '}
    out['stripped before fusing'] = ('llama2_prepend', {'decoder': sequence(
        'decoders', blanks, {'type': 'Strip', 'content': ' ', 'start': 1, 'stop': 0}, fallback)})
    out['stripped at the end'] = ('llama2_prepend', {'decoder': sequence(
        'decoders', fallback, {'type': 'Fuse'}, {'type': 'Strip', 'content': '-', 'start': 0, 'stop': 2})})
    out['replaced after fusing'] = ('llama2_prepend', {'decoder': sequence(
        'decoders', fallback, {'type': 'Fuse'},
        {'type': 'Replace', 'pattern': {'Regex': '▁+|-(?=-)'}, 'content': '+'})})
    out['replaced at empty matches'] = ('llama2_prepend', {'decoder': sequence(
        'decoders', fallback, {'type': 'Fuse'},
        {'type': 'Replace', 'pattern': {'Regex': 'a*|(?=-)'}, 'content': '+'})})
    return out


def renumber(tokens):
    return [{**token, 'id': 640 + i} for i, token in enumerate(tokens)]


def patched(base, patch):
    # A part is replaced whole, the model is changed key by key.
    return {key: ({**value, **patch['model']} if key == 'model' and 'model' in patch
                  else patch.get(key, value)) for key, value in base.items()}


def variant_answers(documents):
    out = []
    for name, (base, patch) in variants().items():
        tokenizer = load(patched(documents[base], patch))
        out.append({'name': name, 'base': base, 'patch': patch,
                    'strings': [answer(tokenizer, text) for text in VARIANT_TEXTS]})
    return {'texts': VARIANT_TEXTS, 'variants': out}


def lines(value):
    """Compact JSON, one element of the outer lists in a line: small, and differences can be read."""
    dump = lambda v: json.dumps(v, separators=(',', ':'))
    if 'model' in value:
        return dump(value) + '\n'
    parts = [f'{dump(key)}:[\n' + ',\n'.join(map(dump, inner)) + '\n]' for key, inner in value.items()]
    return '{\n' + ',\n'.join(parts) + '\n}\n'


def write_all(folder):
    documents = {name: make() for name, make in KINDS.items()}
    files = {'strings': {'strings': tokenizer_text.STRINGS, 'long': tokenizer_text.LONG},
             'variants': variant_answers(documents)}
    for name, doc in documents.items():
        files[name] = doc
        files[f'{name}.golden'] = answers(doc)
    os.makedirs(folder, exist_ok=True)
    for name, value in files.items():
        with open(os.path.join(folder, f'{name}.json'), 'w', encoding='ascii') as file:
            file.write(lines(value))
    return [f'{name}.json' for name in files]


def main():
    parser = argparse.ArgumentParser(description=__doc__.split('\n')[0])
    parser.add_argument('--check', action='store_true', help='compare with the committed files')
    check = parser.parse_args().check
    if tokenizers.__version__ != MADE_WITH:
        print(f'note: tokenizers is {tokenizers.__version__}, the files were made with {MADE_WITH}',
              file=sys.stderr)
    if not check:
        print(f'wrote {len(write_all(FOLDER))} files')
        return
    with tempfile.TemporaryDirectory() as scratch:
        for name in write_all(scratch):
            with open(os.path.join(scratch, name)) as new, open(os.path.join(FOLDER, name)) as old:
                if new.read() != old.read():
                    sys.exit(f'{name} differs from the committed file')
    print('the committed files are what this script makes')


if __name__ == '__main__':
    main()
