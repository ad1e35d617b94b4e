"""Makes the files of this folder: `python make.py FOLDER [NAMES...]`, with the packages torch and transformers.

Random small networks of transformers, whose weights f16 holds: tensors by the names of GGUF, 64 greedy tokens that
PyTorch gives in f64, and the logits of every eighth position.
"""

import sys
from collections.abc import Mapping
from pathlib import Path

import numpy as np
import torch
import transformers
from numpy.typing import NDArray

SIZES = {
    "vocab_size": 96,
    "hidden_size": 64,
    "intermediate_size": 96,
    "num_hidden_layers": 2,
    "num_attention_heads": 4,
    "num_key_value_heads": 2,
    "max_position_embeddings": 256,
    "rms_norm_eps": 1e-5,
    "pad_token_id": 0,
    "bos_token_id": 1,
    "eos_token_id": None,
    "attn_implementation": "eager",
}
GEMMA = {
    "num_hidden_layers": 7,  # one of six sees all tokens
    "head_dim": 32,
    "query_pre_attn_scalar": 32,
    "sliding_window": 16,
    "hidden_activation": "gelu_pytorch_tanh",
}
KINDS = {
    "llama": ("Llama", {"tie_word_embeddings": False}),
    "smollm": ("Llama", {"tie_word_embeddings": True}),
    "qwen2": ("Qwen2", {"tie_word_embeddings": True}),
    "qwen3": ("Qwen3", {"tie_word_embeddings": True, "head_dim": 32}),
    "gemma3": ("Gemma3", GEMMA),
    "gpt2": ("GPT2", {"n_inner": 96}),
    "starcoder": ("GPTBigCode", {"n_inner": 96, "activation_function": "gelu_pytorch_tanh"}),
    "starcoder2": ("Starcoder2", {"use_bias": True, "sliding_window": None, "tie_word_embeddings": True}),
    "phi2": ("Phi", {"partial_rotary_factor": 0.5, "hidden_act": "gelu_new"}),
}
LAYERS = {
    "self_attn.q_proj": "attn_q",
    "self_attn.k_proj": "attn_k",
    "self_attn.v_proj": "attn_v",
    "self_attn.o_proj": "attn_output",
    "self_attn.q_norm": "attn_q_norm",
    "self_attn.k_norm": "attn_k_norm",
    "mlp.gate_proj": "ffn_gate",
    "mlp.up_proj": "ffn_up",
    "mlp.down_proj": "ffn_down",
    "input_layernorm": "attn_norm",
    "post_attention_layernorm": "ffn_norm",
}
LAYERS |= {
    "attn.c_attn": "attn_qkv",
    "attn.c_proj": "attn_output",
    "mlp.c_fc": "ffn_up",
    "mlp.c_proj": "ffn_down",
    "ln_1": "attn_norm",
    "ln_2": "ffn_norm",
    "self_attn.dense": "attn_output",
    "mlp.fc1": "ffn_up",
    "mlp.fc2": "ffn_down",
}
GEMMA_LAYERS = {
    "post_attention_layernorm": "post_attention_norm",
    "pre_feedforward_layernorm": "ffn_norm",
    "post_feedforward_layernorm": "post_ffw_norm",
}
WHOLE = {
    "embed_tokens.weight": "token_embd.weight",
    "norm.weight": "output_norm.weight",
    "lm_head.weight": "output.weight",
    "lm_head.bias": "output.bias",
    "wte.weight": "token_embd.weight",
    "wpe.weight": "position_embd.weight",
    "ln_f.weight": "output_norm.weight",
    "ln_f.bias": "output_norm.bias",
    "norm.bias": "output_norm.bias",
    "final_layernorm.weight": "output_norm.weight",
    "final_layernorm.bias": "output_norm.bias",
}
PROMPT, TOKENS, EVERY = [5, 17, 90, 33, 2], 64, 8
Array = NDArray[np.floating]


def network(name: str) -> torch.nn.Module:
    family, more = KINDS[name]
    suffix = "TextConfig" if family == "Gemma3" else "Config"
    config = getattr(transformers, family + suffix)(**{**SIZES, **more})
    head = "LMHeadModel" if family == "GPT2" else "ForCausalLM"
    model = getattr(transformers, family + head)(config).eval()
    with torch.no_grad():
        for key, p in model.named_parameters():
            norm = "norm" in key or "ln_" in key
            size = 0.1 if norm else 0.25 if p.ndim > 1 else 0.2
            around = 1.0 if norm and "bias" not in key and name != "gemma3" else 0.0
            p.copy_((torch.randn_like(p) * size + around).half())
    return model


def tensors(name: str, model: torch.nn.Module) -> dict[str, Array]:
    """Return the tensors as converters write them: neighbours instead of halves of heads for Llama, norms around 1."""
    config, found = model.config, {}
    layers: Mapping[str, str] = LAYERS | (GEMMA_LAYERS if name == "gemma3" else {})
    for key, p in model.state_dict().items():
        key, array = key.removeprefix("model.").removeprefix("transformer."), p.float().numpy()
        if name == "gpt2" and "h." in key and array.ndim > 1:
            array = array.T  # of Conv1D
        if name == "gemma3" and "norm" in key:
            array = array + 1
        if key in WHOLE:
            found[WHOLE[key]] = array
            continue
        _, number, rest = key.split(".", 2)
        base, kind = rest.rsplit(".", 1)
        if KINDS[name][0] == "Llama" and layers[base] in ("attn_q", "attn_k"):
            heads = config.num_attention_heads if layers[base] == "attn_q" else config.num_key_value_heads
            array = array.reshape(heads, 2, -1, array.shape[1]).swapaxes(1, 2).reshape(array.shape)
        found[f"blk.{number}.{layers[base]}.{kind}"] = array
    if config.tie_word_embeddings:
        found.pop("output.weight", None)
    return {key: a.astype(np.float16) if a.ndim > 1 else a for key, a in found.items()}


def main(folder: Path, *names: str) -> None:
    for name in names or KINDS:
        torch.manual_seed(0)
        model = network(name)
        kept, tokens = tensors(name, model), torch.tensor([PROMPT])
        model = model.double()
        with torch.no_grad():
            for _ in range(TOKENS):
                tokens = torch.cat([tokens, model(tokens).logits[:, -1:].argmax(-1)], 1)
            logits = model(tokens).logits[0].numpy().astype(np.float32)
        best = np.sort(logits, -1)
        facts = {"tokens": tokens[0].numpy(), "logits": logits[::EVERY], "gap": (best[:, -1] - best[:, -2]).min()}
        np.savez_compressed(folder / f"{name}.npz", **facts, **{f"w:{key}": a for key, a in kept.items()})


if __name__ == "__main__":
    main(Path(sys.argv[1]), *sys.argv[2:])
