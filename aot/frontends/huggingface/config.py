"""Sizes and variants of a network, from config.json of its folder: as transformers writes it, of version 4 and 5."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import field, replace
from math import sqrt
from pathlib import Path
from typing import cast

from aot.codegen.dataclass import dataclass
from aot.frontends.huggingface import rotations
from aot.frontends.huggingface.names import (
    DEEPSEEK2,
    EXPERTS,
    FALCON,
    FALCON_APART,
    GEMMA,
    GPT2,
    GPT_OSS,
    LLAMA,
    MIXTRAL,
    NEOX,
    OLMO2,
    PHI,
    PHI3,
    STARCODER2,
    Names,
)
from aot.frontends.huggingface.quantized import Scheme, scheme_of
from aot.frontends.huggingface.rotations import GLOBAL, LOCAL
from aot.frontends.language.config import (
    ALL_TOKENS,
    GELU,
    MAX_LAYERS,
    MAX_TOKENS,
    RELU,
    SILU,
    TANH_GELU,
    ClampedGate,
    Config,
    Experts,
    Factors,
    Family,
    Latents,
    Values,
    check_heads,
)
from aot.runtime.errors import UnsupportedError

FILE = "config.json"
HEADS = ("ForCausalLM", "LMHeadModel")  # ends of the names of networks that give logits of words
ACTIVATIONS = {
    "silu": SILU,
    "swish": SILU,
    "gelu": GELU,
    "gelu_new": TANH_GELU,
    "gelu_fast": TANH_GELU,
    "gelu_pytorch_tanh": TANH_GELU,
    "relu": RELU,
}


@dataclass(frozen=True, slots=True)
class Architecture:
    """Facts of a type of networks that config.json leaves out, or may leave out.

    `tied`: the head is the embedding where nothing else is said; `from_one`: weights of norms are differences from 1;
    `scaled`: embeddings are multiplied by the root of the width; `activation_key`: where config.json has the function
    of the MLP, `activation`: the function if it has none; `rotated`: share of a head that is rotated; `is_local`:
    True for a layer that sees a window of tokens, where `layer_types` are missing; `normalised`: probabilities of the
    chosen experts add up to 1 where nothing else is said; `keys`: names in config.json that are not the usual ones.
    """

    family: Family
    names: Names
    tied: bool = False
    from_one: bool = False
    scaled: bool = False
    activation_key: str = "hidden_act"
    activation: str = "silu"
    rotated: float = 1.0
    is_local: Callable[[Values, int], bool] = lambda _values, _layer: False
    normalised: bool = False
    keys: Mapping[str, str] = field(default_factory=dict[str, str])


def _all_local(v: Values, _layer: int) -> bool:
    return v.find("sliding_window") is not None


def _last_local(v: Values, layer: int) -> bool:
    return v.find("use_sliding_window") is True and layer >= v.integer("max_window_layers", 0, 0)


def _local_but_every(count: int) -> Callable[[Values, int], bool]:
    return lambda v, layer: (layer + 1) % v.integer("sliding_window_pattern", count) != 0


_GEMMA = Architecture(
    Family(),
    LLAMA,
    tied=True,
    from_one=True,
    scaled=True,
    activation_key="hidden_activation",
    activation="gelu_pytorch_tanh",
)
ARCHITECTURES = {
    "llama": Architecture(Family(), LLAMA),
    "mistral": Architecture(Family(), LLAMA, is_local=_all_local),
    "qwen2": Architecture(Family(), LLAMA, is_local=_last_local),
    "qwen3": Architecture(Family(), LLAMA, is_local=_last_local),
    "smollm3": Architecture(Family(), LLAMA, tied=True),
    "granite": Architecture(Family(), LLAMA),
    "mixtral": Architecture(Family(), MIXTRAL, is_local=_all_local, normalised=True),
    "qwen3_moe": Architecture(Family(), EXPERTS, is_local=_last_local),
    "olmoe": Architecture(Family(whole=True), EXPERTS),
    "olmo2": Architecture(Family(behind=True, whole=True), OLMO2),
    "gemma": _GEMMA,
    "gemma2": replace(_GEMMA, names=GEMMA, is_local=_local_but_every(2)),
    "gemma3_text": replace(_GEMMA, names=GEMMA, is_local=_local_but_every(6)),
    "phi3": Architecture(Family(), PHI3, is_local=_all_local),
    "phi": Architecture(Family(centred=True, gated=False, parallel=True), PHI, activation="gelu_new", rotated=0.5),
    "starcoder2": Architecture(
        Family(centred=True, gated=False), STARCODER2, tied=True, activation="gelu_pytorch_tanh", is_local=_all_local
    ),
    "gpt_neox": Architecture(
        Family(centred=True, gated=False, parallel=True, apart=True),
        NEOX,
        activation="gelu",
        rotated=0.25,
        keys={"num_key_value_heads": "num_attention_heads"},
    ),
    "gpt2": Architecture(
        Family(centred=True, gated=False, learned=True),
        GPT2,
        tied=True,
        activation_key="activation_function",
        activation="gelu_new",
        keys={
            "hidden_size": "n_embd",
            "num_hidden_layers": "n_layer",
            "num_attention_heads": "n_head",
            "num_key_value_heads": "n_head",
            "intermediate_size": "n_inner",
            "max_position_embeddings": "n_positions",
        },
    ),
    "falcon": Architecture(
        Family(centred=True, gated=False, parallel=True),
        FALCON,
        tied=True,
        activation_key="activation",
        activation="gelu",
        keys={
            "intermediate_size": "ffn_hidden_size",
            "num_key_value_heads": "num_kv_heads",
            "use_parallel_residual": "parallel_attn",
        },
    ),
    "gpt_oss": Architecture(
        Family(sinks=True), GPT_OSS, is_local=lambda _values, layer: layer % 2 == 0, normalised=True
    ),
    "deepseek_v2": Architecture(Family(), DEEPSEEK2),
}


@dataclass(frozen=True, slots=True)
class Network:
    """Sizes of a network and its architecture.

    `positions`: tokens that it was trained on; `most`: tokens that a sequence may have, None for any number; `scheme`:
    how its matrices are packed, None if they are floats.
    """

    config: Config
    architecture: Architecture
    tied: bool
    vocab_size: int
    positions: int
    most: int | None
    scheme: Scheme | None


def network_of(folder: Path, settings: Mapping[str, object]) -> Network:
    """Return the network that config.json describes; UnsupportedError for one without a graph here."""
    v = Values(f"{folder.name}/{FILE}", settings)
    kind = v.find("model_type")
    architecture = ARCHITECTURES.get(kind) if isinstance(kind, str) else None
    if architecture is None:
        rule = f"language models of type {', '.join(ARCHITECTURES)} can be read"
        raise unsupported(v, rule, kind, folder)
    names = list(map(str, _list(v.find("architectures"))))
    if names and not names[0].endswith(HEADS):
        raise unsupported(v, "networks that give logits of words can be read", names[0], folder)
    v = Values(v.file, {**settings, **{k: settings.get(name) for k, name in architecture.keys.items()}})
    if kind == "falcon":
        v, architecture = _falcon(v, architecture)
    config = _latent(v, _config(v, architecture)) if kind == "deepseek_v2" else _config(v, architecture)
    check_heads(config, v.file)
    tied = v.find("tie_word_embeddings", architecture.tied) is True
    max_positions = v.integer("max_position_embeddings", 2048, most=MAX_TOKENS)
    vocab_size = v.integer("vocab_size", most=1 << 31)
    most = max_positions if config.family.learned else rotations.most_tokens(v)
    return Network(
        config, architecture, tied, vocab_size, min(most or max_positions, max_positions), most, scheme_of(v)
    )


def _falcon(v: Values, a: Architecture) -> tuple[Values, Architecture]:
    """Return the values and the architecture of a Falcon, of the second generation or the first."""
    if v.find("alibi") is True:
        raise UnsupportedError(f"{v.file}: Falcons with rotations can be read, got alibi")
    if v.find("new_decoder_architecture") is True:
        apart = v.integer("num_ln_in_parallel_attn", 2, most=2) == 2
        names = FALCON_APART if apart else FALCON
        return v, replace(a, family=replace(a.family, apart=apart), names=names)
    shared = v.find("multi_query", True) is True
    return Values(v.file, {**v.metadata, "num_key_value_heads": 1 if shared else None}), a


def _latent(v: Values, c: Config) -> Config:
    """Return the sizes of a network that makes queries, keys and values from shorter vectors."""
    unrotated, rotated = v.integer("qk_nope_head_dim", 128), v.integer("qk_rope_head_dim", 64)
    queries = 0 if v.find("q_lora_rank") is None else v.integer("q_lora_rank")
    return replace(
        c,
        key_heads=c.heads,
        key=unrotated + rotated,
        value=v.integer("v_head_dim", 128),
        rotated=rotated,
        divisors=rotations.divisors(v, rotated),
        scale=(unrotated + rotated) ** -0.5 * rotations.scale_of_scores(v),
        latents=Latents(v.integer("kv_lora_rank", 512), queries),
    )


def unsupported(v: Values, rule: str, got: object, folder: Path) -> UnsupportedError:
    """Return the error for a network without a graph here."""
    return UnsupportedError(
        f"{v.file}: {rule}, got {str(got)[:60]}",
        advice=f"optimum-cli export onnx --model {folder} {folder.name}-onnx, then compile the .onnx file",
    )


def _config(v: Values, a: Architecture) -> Config:
    width, heads, layers = v.integer("hidden_size"), v.integer("num_attention_heads"), _layers(v)
    key = v.integer("head_dim", max(width // heads, 1))
    inner = v.integer("intermediate_size", 4 * width, most=1 << 24)
    window = v.integer("sliding_window", ALL_TOKENS, most=MAX_TOKENS)
    local = _local(v, a, layers, window)
    if any(local):
        rotations.check_local(v)
    names = ("layer_norm_eps", "layer_norm_epsilon", "norm_epsilon") if a.family.centred else ("rms_norm_eps",)
    epsilon = next((v.real(name) for name in names if v.find(name) is not None), 1e-5 if a.family.centred else 1e-6)
    rotated = rotations.rotated(v, key, a.rotated)
    scale = v.real("attention_multiplier", v.real("query_pre_attn_scalar", key) ** -0.5)
    one_by_one = v.find("use_parallel_residual") is False
    return Config(
        family=replace(a.family, parallel=False) if one_by_one else a.family,
        layers=layers,
        width=width,
        inner=inner,
        heads=heads,
        key_heads=v.integer("num_key_value_heads", heads),
        key=key,
        value=key,
        rotated=rotated,
        epsilon=epsilon,
        base=rotations.base(v),
        local_base=v.real("rope_local_base_freq", rotations.base(v, LOCAL)),
        stretch=rotations.stretch(v),
        window=window,
        local=local,
        activation=_activation(v, a),
        scale=scale,
        score_cap=v.real("attn_logit_softcapping", 0.0),
        logit_cap=v.real("final_logit_softcapping", 0.0),
        factors=Factors(
            sqrt(width) if a.scaled else v.real("embedding_multiplier", 1.0),
            v.real("residual_multiplier", 1.0),
            1 / v.real("logits_scaling", 1.0),
        ),
        unrotated=_unrotated(v, layers),
        experts=_experts(v, a, layers),
        divisors=rotations.divisors(v, rotated),
        amplitude=rotations.amplitude(v),
    )


def _experts(v: Values, a: Architecture, layers: int) -> Experts | None:
    """Return the experts of a network that has some."""
    if not a.names.experts and not a.names.alternating:
        return None
    if v.find("clip_qkv") is not None:
        raise UnsupportedError(f"{v.file}: queries, keys and values without bounds can be read, got clip_qkv")
    if v.find("topk_method", "greedy") != "greedy":
        raise UnsupportedError(f"{v.file}: topk_method greedy can be read, got {str(v.find('topk_method'))[:60]}")
    usual = v.integer("num_experts", v.integer("n_routed_experts", 0, 0), 0)
    count = v.integer("num_local_experts", usual, most=1 << 12)
    inner = v.integer("moe_intermediate_size", v.integer("intermediate_size", most=1 << 24), most=1 << 24)
    dense_layers, step = set(map(str, _list(v.find("mlp_only_layers")))), v.integer("decoder_sparse_step", 1)
    first = v.integer("first_k_dense_replace", 0, 0)
    expert_layers = (n for n in range(first, layers) if str(n) not in dense_layers and (n + 1) % step == 0)
    clamped = ClampedGate(v.real("swiglu_alpha", 1.702), v.real("swiglu_limit", 7.0)) if a.family.sinks else None
    return Experts(
        count,
        v.integer("num_experts_per_tok", most=count),
        inner,
        frozenset(expert_layers),
        v.find("norm_topk_prob", a.normalised) is True,
        clamped,
        v.real("routed_scaling_factor", 1.0),
        inner * v.integer("n_shared_experts", 0, 0),
    )


def _layers(v: Values) -> int:
    return v.integer("num_hidden_layers", most=MAX_LAYERS)


def _local(v: Values, a: Architecture, layers: int, window: int) -> tuple[bool, ...]:
    """Return which layers see a window of tokens only; none if no sequence is longer."""
    kinds = v.find("layer_types")
    layer_types = [LOCAL if a.is_local(v, n) else GLOBAL for n in range(layers)] if kinds is None else _list(kinds)
    if len(layer_types) != layers or any(one not in (LOCAL, GLOBAL) for one in layer_types):
        raise v.wrong("layer_types", f"{LOCAL} or {GLOBAL} for each of {layers} layers", layer_types)
    is_short = window < v.integer("max_position_embeddings", ALL_TOKENS, most=MAX_TOKENS)
    return tuple(is_short and one == LOCAL for one in layer_types)


def _unrotated(v: Values, layers: int) -> frozenset[int]:
    """Return the layers without rotations."""
    if v.find("model_type") != "smollm3":
        return frozenset()
    layers_listed = v.find("no_rope_layers")
    if layers_listed is None:
        count = v.integer("no_rope_layer_interval", 4)
        return frozenset(layer for layer in range(layers) if (layer + 1) % count == 0)
    numbers = _list(layers_listed)
    if len(numbers) < layers:
        raise v.wrong("no_rope_layers", f"a list for {layers} layers", numbers)
    return frozenset(layer for layer in range(layers) if not numbers[layer])


def _list(value: object) -> Sequence[object]:
    return cast("list[object]", value) if isinstance(value, list) else ()


def _activation(v: Values, a: Architecture) -> str:
    name = str(v.find(a.activation_key, v.find("hidden_act", a.activation)))
    if name == "gelu" and a.from_one:
        name = a.activation  # Gemma's first folders say gelu, and mean its approximation
    return activation_named(v, name)


def activation_named(v: Values, name: str) -> str:
    """Return the function of an MLP; UnsupportedError for another one."""
    if name not in ACTIVATIONS:
        rule = f"functions {', '.join(ACTIVATIONS)} can be read"
        raise UnsupportedError(f"{v.file}: {rule}, got {name[:60]}")
    return ACTIVATIONS[name]
