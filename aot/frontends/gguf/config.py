"""Sizes and variants of a network, from the metadata of its file."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import field
from math import sqrt

from aot.codegen.dataclass import dataclass
from aot.frontends.gguf.container import Container
from aot.frontends.language.config import (
    ALL_TOKENS,
    MAX_LAYERS,
    MAX_TOKENS,
    SILU,
    TANH_GELU,
    ClampedGate,
    Config,
    Experts,
    Factors,
    Family,
    Values,
    check_heads,
)
from aot.frontends.language.rotations import Yarn
from aot.runtime.errors import UnsupportedError

OTHER_SCALE = 62  # layers of the size of Gemma 3 (27B) that scales scores by another number, which no metadata say


@dataclass(frozen=True, slots=True)
class Architecture:
    """Facts of an architecture that no metadata say.

    `scaled`: embeddings are multiplied by the root of the width; `all_seen`: one layer in this many sees all tokens,
    the others a window, with rotations of `local_base`; `normalised`: probabilities of a token's experts add up to 1;
    `clamped`: their gate; `rounded`: YaRN's, where positions are scaled so; `names`: parts of the names of tensors that
    others call so.
    """

    family: Family
    activation: str = SILU
    scaled: bool = False
    all_seen: int = 1
    local_base: float | None = None
    normalised: bool = True
    clamped: ClampedGate | None = None
    rounded: bool = True
    names: Mapping[str, str] = field(default_factory=dict[str, str])


ARCHITECTURES = {
    "llama": Architecture(Family(pairs=True)),
    "qwen2": Architecture(Family()),
    "qwen3": Architecture(Family()),
    "qwen3moe": Architecture(Family()),
    "olmoe": Architecture(Family(whole=True), normalised=False),
    "gemma3": Architecture(Family(), TANH_GELU, scaled=True, all_seen=6, local_base=10000.0),
    "gpt-oss": Architecture(
        Family(sinks=True),
        all_seen=2,
        clamped=ClampedGate(1.702, 7.0),
        rounded=False,
        names={"post_attention_norm": "ffn_norm"},
    ),
    "gpt2": Architecture(Family(centred=True, gated=False, learned=True), TANH_GELU),
    "starcoder": Architecture(Family(centred=True, gated=False, learned=True), TANH_GELU),
    "starcoder2": Architecture(Family(centred=True, gated=False), TANH_GELU),
    "phi2": Architecture(Family(centred=True, gated=False, parallel=True), TANH_GELU),
}


def architecture_of(container: Container) -> Architecture:
    """Return the architecture of the network in a file; UnsupportedError for one without a graph."""
    name = container.metadata.get("general.architecture")
    architecture = ARCHITECTURES.get(name) if isinstance(name, str) else None
    if architecture is None:
        rule = f"architectures {', '.join(ARCHITECTURES)} can be read"
        raise UnsupportedError(f"{container.file}: GGUF: {rule}, got {str(name)[:60]}")
    return architecture


def config_of(container: Container) -> Config:
    """Return the sizes of the network in a file; UnsupportedError for architectures and variants without a graph."""
    architecture, name = architecture_of(container), container.metadata["general.architecture"]
    v = Values(f"{container.file}: GGUF", container.metadata, f"{name}.")
    width, heads = v.integer("embedding_length"), v.integer("attention.head_count")
    key = v.integer("attention.key_length", max(width // heads, 1))
    layers, all_seen = v.integer("block_count", most=MAX_LAYERS), architecture.all_seen
    base, rotated = v.real("rope.freq_base", 10000.0), v.integer("rope.dimension_count", key)
    yarn = _yarn(v, architecture.rounded)
    config = Config(
        family=architecture.family,
        layers=layers,
        width=width,
        inner=v.integer("feed_forward_length"),
        heads=heads,
        key_heads=v.integer("attention.head_count_kv", heads),
        key=key,
        value=v.integer("attention.value_length", key),
        rotated=rotated,
        epsilon=v.real(f"attention.layer_norm_{'' if architecture.family.centred else 'rms_'}epsilon", 1e-5),
        base=base,
        local_base=v.real("rope.local.freq_base", architecture.local_base or base),
        stretch=_stretch(v),
        window=v.integer("attention.sliding_window", ALL_TOKENS, most=MAX_TOKENS),
        local=tuple((layer + 1) % all_seen != 0 for layer in range(layers)),
        activation=architecture.activation,
        factors=Factors(sqrt(width) if architecture.scaled else 1.0),
        experts=_experts(v, container, layers, architecture),
        divisors=() if yarn is None else yarn.divisors(base, rotated),
        amplitude=1.0 if yarn is None else yarn.amplitude(),
    )
    if architecture.scaled and config.layers == OTHER_SCALE:
        rule = f"{name} of other than {OTHER_SCALE} layers can be read, which scale their scores by heads"
        raise UnsupportedError(f"{container.file}: GGUF: {rule}, got {config.layers}")
    check_heads(config, v.file)
    return config


def _stretch(v: Values) -> float:
    kind = v.find("rope.scaling.type", "none")
    if kind not in ("none", "linear", "yarn"):
        raise UnsupportedError(f"{v.file}: rope.scaling.type none, linear and yarn can be read, got {str(kind)[:60]}")
    return v.real("rope.scaling.factor", 1.0) if kind == "linear" else 1.0


def _yarn(v: Values, rounded: bool) -> Yarn | None:
    if v.find("rope.scaling.type") != "yarn":
        return None
    if v.real("rope.freq_base", 10000.0) <= 1:
        raise v.wrong("rope.freq_base", "more than 1", v.find("rope.freq_base"))
    trained = v.real("rope.scaling.original_context_length", v.real("context_length", 4096.0))
    return Yarn(v.real("rope.scaling.factor", 1.0), trained, rounded=rounded)


def _experts(v: Values, container: Container, layers: int, architecture: Architecture) -> Experts | None:
    """Return the experts of a network that has some; layers without a router have an MLP."""
    count = v.integer("expert_count", 0, 0, most=1 << 12)
    if not count:
        return None
    if v.integer("expert_shared_count", 0, 0):
        raise UnsupportedError(f"{v.file}: networks without shared experts can be read, got some")
    layers_with_experts = frozenset(n for n in range(layers) if f"blk.{n}.ffn_gate_inp.weight" in container.tensors)
    inner = v.integer("expert_feed_forward_length", v.integer("feed_forward_length"))
    used = v.integer("expert_used_count", most=count)
    return Experts(count, used, inner, layers_with_experts, architecture.normalised, architecture.clamped)
