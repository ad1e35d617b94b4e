"""Sizes and variants of a network, from the metadata of its file."""

from __future__ import annotations

from math import sqrt

from aot.frontends.gguf.container import Container
from aot.frontends.language.config import MOST_LAYERS, SILU, TANH_GELU, Config, Factors, Family, Values, check_heads
from aot.runtime.errors import UnsupportedError

OTHER_SCALE = 62  # layers of the size of Gemma 3 (27B) that scales scores by another number, which no metadata say
FAMILIES = {
    "llama": Family(pairs=True),
    "qwen2": Family(),
    "qwen3": Family(),
    "gemma3": Family(),
    "gpt2": Family(centred=True, gated=False, learned=True),
    "starcoder": Family(centred=True, gated=False, learned=True),
    "starcoder2": Family(centred=True, gated=False),
    "phi2": Family(centred=True, gated=False, parallel=True),
}
GELUS = ("gemma3", "gpt2", "starcoder", "starcoder2", "phi2")
SCALED = ("gemma3",)  # embeddings are multiplied by the root of the width
ALL_SEEN = {"gemma3": 6}  # one layer of so many sees all tokens, others a window


def config_of(container: Container) -> Config:
    """Return the sizes of the network in a file; UnsupportedError for architectures and variants without a graph."""
    name = container.metadata.get("general.architecture")
    family = FAMILIES.get(name) if isinstance(name, str) else None
    if family is None:
        rule = f"architectures {', '.join(FAMILIES)} can be read"
        raise UnsupportedError(f"{container.file}: GGUF: {rule}, got {str(name)[:60]}")
    v = Values(f"{container.file}: GGUF", container.metadata, f"{name}.")
    if experts := v.integer("expert_count", 0, 0):
        raise UnsupportedError(f"{container.file}: GGUF: networks without experts can be read, got {experts}")
    width, heads = v.integer("embedding_length"), v.integer("attention.head_count")
    key = v.integer("attention.key_length", max(width // heads, 1))
    layers, all_seen = v.integer("block_count", most=MOST_LAYERS), ALL_SEEN.get(str(name), 1)
    found = Config(
        family,
        layers,
        width,
        v.integer("feed_forward_length"),
        heads,
        v.integer("attention.head_count_kv", heads),
        key,
        v.integer("attention.value_length", key),
        v.integer("rope.dimension_count", key),
        v.real(f"attention.layer_norm_{'' if family.centred else 'rms_'}epsilon", 1e-5),
        v.real("rope.freq_base", 10000.0),
        v.real("rope.local.freq_base", 10000.0),
        _stretch(v),
        v.integer("attention.sliding_window", 1 << 30, most=1 << 40),
        tuple((layer + 1) % all_seen != 0 for layer in range(layers)),
        TANH_GELU if name in GELUS else SILU,
        factors=Factors(sqrt(width) if name in SCALED else 1.0),
    )
    if name in ALL_SEEN and found.layers == OTHER_SCALE:
        rule = f"{name} of other than {OTHER_SCALE} layers can be read, which scale their scores by heads"
        raise UnsupportedError(f"{container.file}: GGUF: {rule}, got {found.layers}")
    check_heads(found, v.file)
    return found


def _stretch(v: Values) -> float:
    kind = v.find("rope.scaling.type", "none")
    if kind == "none":
        return 1.0
    if kind != "linear":
        raise UnsupportedError(f"{v.file}: rope.scaling.type none and linear can be read, got {str(kind)[:60]}")
    return v.real("rope.scaling.factor", 1.0)
