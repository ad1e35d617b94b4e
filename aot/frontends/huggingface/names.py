"""Names of tensors by architecture: where a folder has what the decoder asks for by the names of GGUF."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import field, replace

from aot.codegen.dataclass import dataclass

TOKENS, POSITIONS, NORM, HEAD = "token_embd", "position_embd", "output_norm", "output"

Stack = tuple[str, Mapping[str, str]]  # what the names of its layers' tensors begin with, and their ends


@dataclass(frozen=True, slots=True)
class Names:
    """The names in a folder for the names of GGUF.

    `whole`: tensors that a network has once; `layers`: what the names of a layer's tensors begin with, `parts`:
    their ends, of a tensor or of its weight and bias. `halves`: matrices that are halves of one tensor, as its name
    and 0 or 1. `interleaved`: rows of queries, keys and values alternate by heads of keys. `transposed`: matrices
    have a row for each input, but not tables. `unread`: ends of the names of tensors that are no weights.
    `experts`: of which a layer's matrices have one each, as the folder writes them, {} for the number.
    `alternating`: tensors of all experts, as the first of their rows in the folder's and the distance to the next
    one. `stacks`: layers and parts of an encoder and a decoder, by what the names that are asked for begin with.
    """

    whole: Mapping[str, str]
    layers: str
    parts: Mapping[str, str]
    halves: Mapping[str, tuple[str, int]] = field(default_factory=dict[str, tuple[str, int]])
    interleaved: bool = False
    transposed: bool = False
    unread: tuple[str, ...] = ("rotary_emb.inv_freq",)
    experts: Mapping[str, str] = field(default_factory=dict[str, str])
    alternating: Mapping[str, tuple[int, int]] = field(default_factory=dict[str, tuple[int, int]])
    stacks: Mapping[str, Stack] = field(default_factory=dict[str, Stack])


_WHOLE = {TOKENS: "model.embed_tokens", NORM: "model.norm", HEAD: "lm_head"}
_ATTENTION = {**{f"attn_{part}": f"self_attn.{part}_proj" for part in "qkv"}, "attn_output": "self_attn.o_proj"}
_QK_NORMS = {"attn_q_norm": "self_attn.q_norm", "attn_k_norm": "self_attn.k_norm"}
_MLP = {f"ffn_{part}": f"mlp.{part}_proj" for part in ("gate", "up", "down")}
_BEFORE = {"attn_norm": "input_layernorm", "ffn_norm": "post_attention_layernorm"}
_BEHIND = {"post_attention_norm": "post_attention_layernorm", "post_ffw_norm": "post_feedforward_layernorm"}
_AROUND = {"attn_norm": "input_layernorm", "ffn_norm": "pre_feedforward_layernorm", **_BEHIND}
_EXPERTS = {"gate": "gate_up", "up": "gate_up", "down": "down"}
_LAYERS = "model.layers"

LLAMA = Names(_WHOLE, _LAYERS, {**_ATTENTION, **_QK_NORMS, **_MLP, **_BEFORE})
EXPERTS = replace(
    LLAMA,
    parts={**LLAMA.parts, "ffn_gate_inp": "mlp.gate"},
    experts={f"ffn_{part}_exps": f"mlp.experts.{{}}.{part}_proj" for part in ("gate", "up", "down")},
)
MIXTRAL = replace(
    LLAMA,
    parts={**LLAMA.parts, "ffn_gate_inp": "block_sparse_moe.gate"},
    experts={
        f"ffn_{part}_exps": f"block_sparse_moe.experts.{{}}.{name}"
        for part, name in (("gate", "w1"), ("up", "w3"), ("down", "w2"))
    },
)
GEMMA = Names(_WHOLE, _LAYERS, {**_ATTENTION, **_QK_NORMS, **_MLP, **_AROUND})
OLMO2 = Names(_WHOLE, _LAYERS, {**_ATTENTION, **_QK_NORMS, **_MLP, **_BEHIND})
PHI3 = Names(
    _WHOLE,
    _LAYERS,
    {"attn_qkv": "self_attn.qkv_proj", "attn_output": "self_attn.o_proj", "ffn_down": "mlp.down_proj", **_BEFORE},
    {"ffn_gate": ("mlp.gate_up_proj", 0), "ffn_up": ("mlp.gate_up_proj", 1)},
)
PHI = Names(
    {**_WHOLE, NORM: "model.final_layernorm"},
    _LAYERS,
    {**_ATTENTION, "attn_output": "self_attn.dense", "ffn_up": "mlp.fc1", "ffn_down": "mlp.fc2", **_BEFORE},
)
STARCODER2 = Names(_WHOLE, _LAYERS, {**_ATTENTION, "ffn_up": "mlp.c_fc", "ffn_down": "mlp.c_proj", **_BEFORE})
NEOX = Names(
    {TOKENS: "gpt_neox.embed_in", NORM: "gpt_neox.final_layer_norm", HEAD: "embed_out"},
    "gpt_neox.layers",
    {
        "attn_qkv": "attention.query_key_value",
        "attn_output": "attention.dense",
        "ffn_up": "mlp.dense_h_to_4h",
        "ffn_down": "mlp.dense_4h_to_h",
        **_BEFORE,
    },
    interleaved=True,
    unread=("attention.bias", "attention.masked_bias", "rotary_emb.inv_freq"),
)
FALCON = Names(
    {TOKENS: "transformer.word_embeddings", NORM: "transformer.ln_f", HEAD: "lm_head"},
    "transformer.h",
    {
        "attn_qkv": "self_attention.query_key_value",
        "attn_output": "self_attention.dense",
        "ffn_up": "mlp.dense_h_to_4h",
        "ffn_down": "mlp.dense_4h_to_h",
        **_BEFORE,
    },
    interleaved=True,
)
FALCON_APART = replace(FALCON, parts={**FALCON.parts, "attn_norm": "ln_attn", "ffn_norm": "ln_mlp"})
GPT_OSS = Names(
    _WHOLE,
    _LAYERS,
    {
        **_ATTENTION,
        **_BEFORE,
        "attn_sinks.weight": "self_attn.sinks",
        "ffn_gate_inp": "mlp.router",
        **{f"ffn_{part}_exps.weight": f"mlp.experts.{name}_proj" for part, name in _EXPERTS.items()},
        **{f"ffn_{part}_exps.bias": f"mlp.experts.{name}_proj_bias" for part, name in _EXPERTS.items()},
    },
    alternating={"ffn_gate_exps": (0, 2), "ffn_up_exps": (1, 2), "ffn_down_exps": (0, 1)},
)
DEEPSEEK2 = replace(
    EXPERTS,
    parts={
        **EXPERTS.parts,
        **{f"attn_{part}": f"self_attn.{part}_proj" for part in ("q_a", "q_b", "kv_b")},
        "attn_kv_a_mqa": "self_attn.kv_a_proj_with_mqa",
        "attn_q_a_norm": "self_attn.q_a_layernorm",
        "attn_kv_a_norm": "self_attn.kv_a_layernorm",
        **{f"ffn_{part}_shexp": f"mlp.shared_experts.{part}_proj" for part in ("gate", "up", "down")},
    },
)
GPT2 = Names(
    {
        TOKENS: "transformer.wte",
        POSITIONS: "transformer.wpe",
        NORM: "transformer.ln_f",
        HEAD: "lm_head",
    },
    "transformer.h",
    {
        "attn_qkv": "attn.c_attn",
        "attn_output": "attn.c_proj",
        "ffn_up": "mlp.c_fc",
        "ffn_down": "mlp.c_proj",
        "attn_norm": "ln_1",
        "ffn_norm": "ln_2",
    },
    transposed=True,
    unread=("attn.bias", "attn.masked_bias"),
)
