"""The tiny seeded models behind tests/models/data: their configurations and their weights.

Sizes are odd on purpose (primes, no multiples of a tile). Weights come from numpy's PCG64 stream, so
that a seed means the same bits on every machine, and are spread so widely that logits are not flat,
attention is not uniform, and every feature a model is there for changes its logits.
"""
import dataclasses

import numpy
import torch
import transformers


def keep(config):
    return config


def older_linear_rope(config):
    """`rope_theta` beside `rope_scaling` with `type`, as Llama-2-era files have it."""
    rope = config.pop('rope_parameters')
    config['rope_theta'] = rope['rope_theta']
    config['rope_scaling'] = {'type': 'linear', 'factor': rope['factor']}
    return config


def older_llama3_rope(config):
    """`rope_theta` beside `rope_scaling` with `rope_type`, as the Llama-3.1 files have it."""
    rope = dict(config.pop('rope_parameters'))
    config['rope_theta'] = rope.pop('rope_theta')
    config['rope_scaling'] = rope
    return config


def older_sparse_config(config):
    """Null and missing fields: no head_dim, null num_key_value_heads, null rope_scaling."""
    config['rope_theta'] = config.pop('rope_parameters')['rope_theta']
    config['rope_scaling'] = None
    config['num_key_value_heads'] = None
    for name in ('head_dim', 'attention_bias', 'mlp_bias', 'pretraining_tp'):
        config.pop(name, None)
    return config


def without_rope_scaling(model):
    old = model.config.rope_parameters
    model.config.rope_parameters = {'rope_type': 'default', 'rope_theta': old['rope_theta']}
    model.model.rotary_emb = type(model.model.rotary_emb)(model.config)


def without(suffix, value):
    """Sets every parameter whose name ends so to one value."""
    def change(model):
        changed = 0
        for name, parameter in model.named_parameters():
            if name.endswith(suffix):
                parameter.data.fill_(value)
                changed += 1
        assert changed > 0, suffix
    return change


@dataclasses.dataclass
class TinyModel:
    name: str
    seed: int
    kind: str                     # 'llama' or 'qwen3'
    config: dict
    rewrite: callable = keep      # what becomes of the config.json that transformers writes
    max_shard_size: str = '1GB'
    shards: int = 1
    features: dict = dataclasses.field(default_factory=dict)  # name -> how to take it away

    def make(self):
        """The model with its weights, fp32, eager attention."""
        config_class, model_class = {
            'llama': (transformers.LlamaConfig, transformers.LlamaForCausalLM),
            'qwen3': (transformers.Qwen3Config, transformers.Qwen3ForCausalLM)}[self.kind]
        config = config_class(max_position_embeddings=128, bos_token_id=0, eos_token_id=1,
                              attn_implementation='eager', **self.config)
        model = model_class(config).float().eval()
        random = numpy.random.default_rng(self.seed)
        for name, parameter in model.named_parameters():  # a tied head is not named twice
            parameter.data = torch.from_numpy(weights(random, name, tuple(parameter.shape)))
        model.tie_weights()
        return model


def weights(random, name, shape):
    if name.endswith('norm.weight'):  # norms of rows, of queries and of keys
        return random.uniform(0.6, 1.8, shape).astype(numpy.float32)
    values = random.standard_normal(shape).astype(numpy.float32)
    if name.endswith('bias'):
        return values * numpy.float32(0.4)
    if 'embed_tokens' in name or 'lm_head' in name:
        # Rows of unequal length: some ids are likelier than others, as in real models.
        rows = numpy.exp(0.35 * random.standard_normal((shape[0], 1))).astype(numpy.float32)
        return values * rows * numpy.float32(0.1)
    spread = 1.5 if 'q_proj' in name or 'k_proj' in name else 1.1
    return values * numpy.float32(spread / shape[1] ** 0.5)


LLAMA3_ROPE = {'rope_type': 'llama3', 'rope_theta': 10000.0, 'factor': 8.0, 'low_freq_factor': 1.0,
               'high_freq_factor': 4.0, 'original_max_position_embeddings': 16}

MODELS = [
    TinyModel('llama_tied', 11, 'llama', features={'rope scaling': without_rope_scaling},
              config=dict(vocab_size=151, hidden_size=48, intermediate_size=91, num_hidden_layers=3,
                          num_attention_heads=6, num_key_value_heads=2, tie_word_embeddings=True,
                          rms_norm_eps=1e-5, rope_parameters=LLAMA3_ROPE)),
    TinyModel('llama_biases', 12, 'llama',
              features={f'{p} bias': without(f'{p}_proj.bias', 0.0)
                        for p in ('q', 'v', 'o', 'gate', 'up', 'down')},
              config=dict(vocab_size=131, hidden_size=40, intermediate_size=67, num_hidden_layers=2,
                          num_attention_heads=5, num_key_value_heads=5, tie_word_embeddings=False,
                          attention_bias=True, mlp_bias=True, rms_norm_eps=1e-6,
                          rope_parameters={'rope_type': 'default', 'rope_theta': 10000.0})),
    TinyModel('llama_mqa', 13, 'llama', rewrite=older_linear_rope,
              features={'rope scaling': without_rope_scaling},
              config=dict(vocab_size=139, hidden_size=56, intermediate_size=83, num_hidden_layers=2,
                          num_attention_heads=7, num_key_value_heads=1, tie_word_embeddings=False,
                          rms_norm_eps=1e-5,
                          rope_parameters={'rope_type': 'linear', 'rope_theta': 10000.0,
                                           'factor': 2.5})),
    TinyModel('qwen3', 14, 'qwen3',
              features={'query norm': without('q_norm.weight', 1.0),
                        'key norm': without('k_norm.weight', 1.0)},
              config=dict(vocab_size=269, hidden_size=40, intermediate_size=73, num_hidden_layers=2,
                          num_attention_heads=6, num_key_value_heads=2, head_dim=12,
                          tie_word_embeddings=False, rms_norm_eps=1e-6,
                          rope_parameters={'rope_type': 'default', 'rope_theta': 1000000.0})),
    TinyModel('qwen3_tied', 15, 'qwen3',
              features={'query norm': without('q_norm.weight', 1.0),
                        'key norm': without('k_norm.weight', 1.0)},
              config=dict(vocab_size=163, hidden_size=44, intermediate_size=59, num_hidden_layers=2,
                          num_attention_heads=3, num_key_value_heads=3, head_dim=16,
                          tie_word_embeddings=True, rms_norm_eps=1e-6,
                          rope_parameters={'rope_type': 'default', 'rope_theta': 1000000.0})),
    TinyModel('llama_sharded', 16, 'llama', rewrite=older_llama3_rope, shards=2,
              max_shard_size='60KB', features={'rope scaling': without_rope_scaling},
              config=dict(vocab_size=101, hidden_size=32, intermediate_size=45, num_hidden_layers=2,
                          num_attention_heads=4, num_key_value_heads=2, tie_word_embeddings=False,
                          rms_norm_eps=1e-5, rope_parameters=LLAMA3_ROPE)),
    TinyModel('llama_plain', 17, 'llama', rewrite=older_sparse_config,
              config=dict(vocab_size=127, hidden_size=40, intermediate_size=61, num_hidden_layers=2,
                          num_attention_heads=4, num_key_value_heads=4, tie_word_embeddings=False,
                          rms_norm_eps=1e-6,
                          rope_parameters={'rope_type': 'default', 'rope_theta': 10000.0})),
]
