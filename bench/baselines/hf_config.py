"""A ModelShape as a configuration of Hugging Face transformers."""

from transformers import LlamaConfig, Qwen3Config


def config_of(shape):
    rope = {"rope_type": "default", "rope_theta": shape.rope_theta}
    if shape.family == "llama":
        rope.update(rope_type="llama3", factor=shape.rope_factor, low_freq_factor=1.0,
                    high_freq_factor=4.0, original_max_position_embeddings=8192)
    kind = LlamaConfig if shape.family == "llama" else Qwen3Config
    return kind(
        vocab_size=shape.vocab, hidden_size=shape.hidden, intermediate_size=shape.inner,
        num_hidden_layers=shape.layers, num_attention_heads=shape.heads,
        num_key_value_heads=shape.kv_heads, head_dim=shape.head_dim,
        max_position_embeddings=shape.max_positions, rms_norm_eps=shape.eps,
        tie_word_embeddings=shape.tied, rope_parameters=rope,
        bos_token_id=None, eos_token_id=None, pad_token_id=None)
