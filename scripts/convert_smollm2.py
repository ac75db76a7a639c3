#!/usr/bin/env python3
"""Turns the GGUF file of SmolLM2 into a Hugging Face directory; run by fetch_smollm2.py.

usage: convert_smollm2.py FILE.gguf DIRECTORY        (needs the packages gguf and numpy)

Weights are dequantised and rounded to bf16. The rows of the query and key projections, which GGUF
keeps in the order of interleaved rotary pairs, go back to the order of rotated halves. The bytes
written depend on the GGUF file alone.
"""
import json
import os
import struct
import sys

import gguf
import numpy

CONTROL_TOKEN = 3  # gguf's type of a token that text never spells
LAYER_TENSORS = {'attn_norm': 'input_layernorm', 'ffn_norm': 'post_attention_layernorm',
                 'attn_q': 'self_attn.q_proj', 'attn_k': 'self_attn.k_proj',
                 'attn_v': 'self_attn.v_proj', 'attn_output': 'self_attn.o_proj',
                 'ffn_gate': 'mlp.gate_proj', 'ffn_up': 'mlp.up_proj',
                 'ffn_down': 'mlp.down_proj'}
OUTER_TENSORS = {'token_embd.weight': 'model.embed_tokens.weight',
                 'output_norm.weight': 'model.norm.weight', 'output.weight': 'lm_head.weight'}


class Gguf:
    def __init__(self, path):
        reader = gguf.GGUFReader(path)
        self.fields = reader.fields
        self.tensors = reader.tensors
        if self['general.architecture'] != 'llama' or self['tokenizer.ggml.model'] != 'gpt2':
            raise ValueError(f'{path}: expected a llama model with a gpt2 tokenizer')

    def __getitem__(self, key):
        if key not in self.fields:
            raise ValueError(f'the GGUF file has no {key}')
        return self.fields[key].contents()


def hugging_face_name(name):
    if name in OUTER_TENSORS:
        return OUTER_TENSORS[name]
    _, layer, part, kind = name.split('.')
    return f'model.layers.{layer}.{LAYER_TENSORS[part]}.{kind}'


def with_rotated_halves(rows, heads):
    """Undoes GGUF's order of a projection's rows: pairs (2i, 2i+1) become (i, i + head_dim / 2)."""
    pairs = rows.reshape(heads, rows.shape[0] // heads // 2, 2, rows.shape[1])
    return pairs.swapaxes(1, 2).reshape(rows.shape)


def bf16_bytes(values):
    """Rounds finite fp32 to bf16, to nearest, ties to even."""
    bits = numpy.ascontiguousarray(values, dtype='<f4').view('<u4')
    return ((bits + 0x7FFF + ((bits >> 16) & 1)) >> 16).astype('<u2').tobytes()


def write_weights(model, path):
    heads = {'attn_q': model['llama.attention.head_count'],
             'attn_k': model['llama.attention.head_count_kv']}
    tensors = sorted(model.tensors, key=lambda tensor: hugging_face_name(tensor.name))
    header, end = {'__metadata__': {'format': 'pt'}}, 0
    for tensor in tensors:
        shape = [int(size) for size in reversed(tensor.shape)]  # gguf names the fastest axis first
        begin, end = end, end + 2 * int(numpy.prod(shape))
        header[hugging_face_name(tensor.name)] = {'dtype': 'BF16', 'shape': shape,
                                                  'data_offsets': [begin, end]}
    text = json.dumps(header, separators=(',', ':')).encode()
    text += b' ' * (-len(text) % 8)
    with open(path, 'wb') as file:
        file.write(struct.pack('<Q', len(text)) + text)
        for tensor in tensors:
            values = gguf.quants.dequantize(tensor.data, tensor.tensor_type)
            part = tensor.name.split('.')[-2]
            if part in heads:
                values = with_rotated_halves(values, heads[part])
            file.write(bf16_bytes(values))


def config(model):
    width, heads = model['llama.embedding_length'], model['llama.attention.head_count']
    return {
        'architectures': ['LlamaForCausalLM'], 'model_type': 'llama',
        'vocab_size': model['llama.vocab_size'], 'hidden_size': width,
        'intermediate_size': model['llama.feed_forward_length'],
        'num_hidden_layers': model['llama.block_count'], 'num_attention_heads': heads,
        'num_key_value_heads': model['llama.attention.head_count_kv'], 'head_dim': width // heads,
        'max_position_embeddings': model['llama.context_length'], 'hidden_act': 'silu',
        'rms_norm_eps': float(f"{model['llama.attention.layer_norm_rms_epsilon']:.6g}"),
        'rope_theta': model['llama.rope.freq_base'], 'rope_scaling': None,
        'attention_bias': False, 'mlp_bias': False,
        'tie_word_embeddings': all(tensor.name != 'output.weight' for tensor in model.tensors),
        'torch_dtype': 'bfloat16', **special_ids(model)}


def special_ids(model):
    return {f'{ours}_token_id': model[f'tokenizer.ggml.{theirs}_token_id']
            for ours, theirs in (('bos', 'bos'), ('eos', 'eos'), ('pad', 'padding'))}


def added_tokens(model):
    types = model['tokenizer.ggml.token_type']
    return [{'id': number, 'content': text, 'single_word': False, 'lstrip': False, 'rstrip': False,
             'normalized': False, 'special': True}
            for number, text in enumerate(model['tokenizer.ggml.tokens'])
            if types[number] == CONTROL_TOKEN]


def tokenizer(model):
    if model['tokenizer.ggml.pre'] != 'smollm':
        raise ValueError('expected the splitter smollm, got ' + model['tokenizer.ggml.pre'])
    byte_level = {'type': 'ByteLevel', 'add_prefix_space': False, 'trim_offsets': True,
                  'use_regex': True}
    return {
        'version': '1.0', 'truncation': None, 'padding': None,
        'added_tokens': added_tokens(model), 'normalizer': None,
        'pre_tokenizer': {'type': 'Sequence', 'pretokenizers': [
            {'type': 'Digits', 'individual_digits': True}, byte_level]},
        'post_processor': None, 'decoder': {**byte_level, 'add_prefix_space': True},
        'model': {'type': 'BPE', 'dropout': None, 'unk_token': None,
                  'continuing_subword_prefix': None, 'end_of_word_suffix': None, 'fuse_unk': False,
                  'byte_fallback': False, 'ignore_merges': False,
                  'vocab': {t: i for i, t in enumerate(model['tokenizer.ggml.tokens'])},
                  'merges': model['tokenizer.ggml.merges']}}


def tokenizer_config(model):
    tokens = model['tokenizer.ggml.tokens']
    added = added_tokens(model)
    return {
        'add_prefix_space': False, 'add_bos_token': model['tokenizer.ggml.add_bos_token'],
        'added_tokens_decoder': {str(token['id']): {k: v for k, v in token.items() if k != 'id'}
                                 for token in added},
        'bos_token': tokens[model['tokenizer.ggml.bos_token_id']],
        'eos_token': tokens[model['tokenizer.ggml.eos_token_id']],
        'pad_token': tokens[model['tokenizer.ggml.padding_token_id']],
        'unk_token': tokens[model['tokenizer.ggml.unknown_token_id']],
        'additional_special_tokens': [tokens[model[f'tokenizer.ggml.{name}_token_id']]
                                      for name in ('bos', 'eos')],
        'chat_template': model['tokenizer.chat_template'], 'clean_up_tokenization_spaces': False,
        'model_max_length': model['llama.context_length'], 'tokenizer_class': 'PreTrainedTokenizerFast'}


def write_json(value, path):
    with open(path, 'w', encoding='utf-8') as file:
        json.dump(value, file, ensure_ascii=False, indent=1)
        file.write('\n')


def main():
    source, folder = sys.argv[1:]
    model = Gguf(source)
    os.makedirs(folder, exist_ok=True)
    write_json(config(model), os.path.join(folder, 'config.json'))
    write_json(special_ids(model), os.path.join(folder, 'generation_config.json'))
    write_json(tokenizer(model), os.path.join(folder, 'tokenizer.json'))
    write_json(tokenizer_config(model), os.path.join(folder, 'tokenizer_config.json'))
    write_weights(model, os.path.join(folder, 'model.safetensors'))


if __name__ == '__main__':
    try:
        main()
    except (OSError, ValueError, KeyError) as problem:
        sys.exit(f'{problem}')
