"""Makes the files of this folder, in the project's folder: `python -m tests.frontends.huggingface.models.make [NAMES]`.

Needs torch and transformers. Small networks whose weights follow from the names of their tensors: config.json as
transformers writes it, the shapes of the tensors, 64 greedy tokens that PyTorch gives in f64, and the logits of every
eighth position.
"""

import json
import sys
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np
import torch
import transformers
from safetensors import safe_open

from tests.frontends.huggingface.folders import weight, write

SIZES = {
    "vocab_size": 96,
    "hidden_size": 64,
    "intermediate_size": 96,
    "num_hidden_layers": 2,
    "num_attention_heads": 4,
    "num_key_value_heads": 2,
    "max_position_embeddings": 256,
    "pad_token_id": 0,
    "bos_token_id": 1,
    "eos_token_id": None,
    "attn_implementation": "eager",
}
GEMMA = {"head_dim": 32, "hidden_activation": "gelu_pytorch_tanh"}
SOFT = {
    "query_pre_attn_scalar": 24,
    "attn_logit_softcapping": 5.0,
    "final_logit_softcapping": 9.0,
    "sliding_window": 16,
}
LLAMA3 = {
    "rope_type": "llama3",
    "rope_theta": 1000.0,
    "factor": 8.0,
    "low_freq_factor": 1.0,
    "high_freq_factor": 4.0,
    "original_max_position_embeddings": 64,
}
LINEAR = {"rope_type": "linear", "rope_theta": 1e4, "factor": 2.0}
YARN = {"rope_type": "yarn", "rope_theta": 1e4, "factor": 4.0, "original_max_position_embeddings": 64}
LONGROPE = {
    "rope_type": "longrope",
    "rope_theta": 1e4,
    "original_max_position_embeddings": 128,
    "short_factor": [1.0, 1.1, 1.3, 1.7, 2.0, 2.5],
    "long_factor": [1.0, 2.0, 3.0, 4.0, 6.0, 8.0],
    "partial_rotary_factor": 0.75,
}
FALCON = {"num_kv_heads": 2, "ffn_hidden_size": 96}
DEEPSEEK = {
    "num_key_value_heads": 4,
    "num_hidden_layers": 3,
    "first_k_dense_replace": 1,
    "n_routed_experts": 8,
    "num_experts_per_tok": 3,
    "n_shared_experts": 2,
    "moe_intermediate_size": 32,
    "routed_scaling_factor": 1.5,
    "kv_lora_rank": 24,
    "q_lora_rank": None,
    "qk_nope_head_dim": 16,
    "qk_rope_head_dim": 8,
    "v_head_dim": 16,
    "rope_parameters": {**YARN, "mscale": 0.7, "mscale_all_dim": 0.9},
}
GPT_OSS = {
    "num_local_experts": 4,
    "num_experts_per_tok": 2,
    "head_dim": 16,
    "sliding_window": 16,
    "swiglu_limit": 1.5,
    "rope_parameters": {**YARN, "truncate": False},
}
GRANITE = {"embedding_multiplier": 3.0, "residual_multiplier": 0.5, "attention_multiplier": 0.2, "logits_scaling": 2.0}
EAGER = {"attn_implementation": "eager", "experts_implementation": "eager"}
MOE = {"num_experts": 8, "num_experts_per_tok": 3}
QWEN3_MOE = {**MOE, "moe_intermediate_size": 32, "head_dim": 32, "num_hidden_layers": 3, "mlp_only_layers": [1]}
KINDS = {
    "llama": ("Llama", {"tie_word_embeddings": False, "attention_bias": True, "mlp_bias": True}),
    "llama3": ("Llama", {"tie_word_embeddings": True, "rope_parameters": LLAMA3}),
    "linear": ("Llama", {"rope_parameters": LINEAR}),
    "mistral": ("Mistral", {"sliding_window": 16, "head_dim": 24}),
    "qwen2": ("Qwen2", {"tie_word_embeddings": True}),
    "qwen3": ("Qwen3", {"head_dim": 32, "use_sliding_window": True, "sliding_window": 16, "max_window_layers": 1}),
    "gemma": ("Gemma", GEMMA),
    "gemma2": ("Gemma2", {**GEMMA, **SOFT}),
    "gemma3": ("Gemma3", {**GEMMA, "num_hidden_layers": 7, "query_pre_attn_scalar": 24, "sliding_window": 16}),
    "phi3": ("Phi3", {"sliding_window": None}),
    "phi": ("Phi", {}),
    "smollm3": ("SmolLM3", {"no_rope_layer_interval": 2}),
    "olmo2": ("Olmo2", {}),
    "granite": ("Granite", GRANITE),
    "mixtral": ("Mixtral", {"num_local_experts": 4, "sliding_window": 16}),
    "qwen3_moe": ("Qwen3Moe", QWEN3_MOE),
    "olmoe": ("Olmoe", {**MOE, "norm_topk_prob": True}),
    "yarn": ("Qwen2", {"rope_parameters": YARN}),
    "longrope": ("Phi3", {"sliding_window": None, "partial_rotary_factor": 0.75, "rope_parameters": LONGROPE}),
    "falcon": ("Falcon", FALCON),
    "falcon_groups": ("Falcon", {**FALCON, "new_decoder_architecture": True, "bias": True}),
    "deepseek_v2": ("DeepseekV2", DEEPSEEK),
    "gpt_oss": ("GptOss", GPT_OSS),
    "starcoder2": ("Starcoder2", {"use_bias": True, "sliding_window": 16}),
    "gpt2": ("GPT2", {"n_inner": 96}),
    "gpt_neox": ("GPTNeoX", {}),
    "gpt_neox_serial": ("GPTNeoX", {"use_parallel_residual": False}),
}
PROMPT, TOKENS, EVERY = [5, 17, 90, 33, 2], 64, 8


def main(folder: Path, *names: str) -> None:
    for name in names or KINDS:
        family, more = KINDS[name]
        config = getattr(transformers, family + ("TextConfig" if family == "Gemma3" else "Config"))(**{**SIZES, **more})
        head = "LMHeadModel" if family == "GPT2" else "ForCausalLM"
        model = getattr(transformers, family + head)(config).eval()
        around = 0.0 if family.startswith("Gemma") else 1.0
        with TemporaryDirectory() as made, torch.no_grad():
            model.save_pretrained(made)  # names and shapes of files: they hold experts one by one
            with safe_open(Path(made) / "model.safetensors", "np") as file:
                shapes = {key: list(file.get_slice(key).get_shape()) for key in file.keys()}  # noqa: SIM118
            named = {key: weight(key, shape, around) for key, shape in shapes.items()}
            write(Path(made), json.loads(model.config.to_json_string()), named)
            model = type(model).from_pretrained(made, dtype=torch.float64, **EAGER).eval()
            tokens = torch.tensor([PROMPT])
            for _ in range(TOKENS):
                tokens = torch.cat([tokens, model(tokens).logits[:, -1:].argmax(-1)], 1)
            logits = model(tokens).logits[0].numpy().astype(np.float32)
        told = {**json.loads(model.config.to_json_string(use_diff=False)), "architectures": [family + head]}
        facts = {"config": told, "shapes": shapes, "around": around}
        tokens = tokens[0].numpy()
        np.savez_compressed(folder / f"{name}.npz", facts=json.dumps(facts), tokens=tokens, logits=logits[::EVERY])


if __name__ == "__main__":
    main(Path(__file__).parent, *sys.argv[1:])
