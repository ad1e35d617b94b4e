"""Sizes and variants of a network, from the metadata of its file."""

from __future__ import annotations

from typing import cast

from aot.codegen.dataclass import dataclass
from aot.frontends.gguf.container import Container
from aot.runtime.errors import CorruptError, UnsupportedError

OTHER_SCALE = 62  # layers of the size of Gemma 3 (27B) that scales scores by another number, which no metadata say
MOST_LAYERS, MOST_WIDTH = 1 << 12, 1 << 20


@dataclass(frozen=True, slots=True)
class Family:
    """Differences of an architecture from Llama.

    `pairs`: rotations turn neighbours (2 i, 2 i + 1) instead of halves. `gelu`: the gate of the MLP is GELU. `scaled`:
    embeddings are multiplied by the root of the width. `local`: one layer of so many sees all tokens, others a window.
    `centred`: norms subtract the mean, and may add a bias. `gated`: the MLP has a gate. `learned`: positions are rows
    of a table, which are added to embeddings. `parallel`: attention and MLP read the same norm.
    """

    pairs: bool = False
    gelu: bool = False
    scaled: bool = False
    local: int = 0
    centred: bool = False
    gated: bool = True
    learned: bool = False
    parallel: bool = False


FAMILIES = {
    "llama": Family(pairs=True),
    "qwen2": Family(),
    "qwen3": Family(),
    "gemma3": Family(gelu=True, scaled=True, local=6),
    "gpt2": Family(gelu=True, centred=True, gated=False, learned=True),
    "starcoder": Family(gelu=True, centred=True, gated=False, learned=True),
    "starcoder2": Family(gelu=True, centred=True, gated=False),
    "phi2": Family(gelu=True, centred=True, gated=False, parallel=True),
}


@dataclass(frozen=True, slots=True)
class Config:
    """Sizes of a decoder. `heads` of queries share `kept` heads of keys and values, of `key` and `value` elements."""

    family: Family
    layers: int
    width: int
    inner: int
    heads: int
    kept: int
    key: int
    value: int
    turned: int  # elements of a head that are rotated
    epsilon: float
    base: float
    local_base: float
    stretch: float  # positions are divided by it
    window: int  # tokens that local layers see


class _Values:
    """Metadata of one architecture; CorruptError for values of another type or range."""

    def __init__(self, container: Container, architecture: str) -> None:
        self.file, self.metadata, self.architecture = container.file, container.metadata, architecture

    def integer(self, key: str, default: int | None = None, least: int = 1, most: int = MOST_WIDTH) -> int:
        found = self.metadata.get(f"{self.architecture}.{key}", default)
        if isinstance(found, list):
            each = set(map(str, cast("list[object]", found)))
            found = cast("list[object]", found)[0] if len(each) == 1 else ", ".join(sorted(each))
        if isinstance(found, bool) or not isinstance(found, int) or not least <= found <= most:
            raise self._wrong(key, f"an integer from {least} to {most}", found)
        return found

    def real(self, key: str, default: float | None = None) -> float:
        found = self.metadata.get(f"{self.architecture}.{key}", default)
        if isinstance(found, bool) or not isinstance(found, int | float) or not 0 < found < float("inf"):
            raise self._wrong(key, "a positive number", found)
        return float(found)

    def _wrong(self, key: str, rule: str, found: object) -> CorruptError:
        return CorruptError(f"{self.file}: GGUF: {self.architecture}.{key} is {rule}, got {str(found)[:60]}")


def config_of(container: Container) -> Config:
    """Return the sizes of the network in a file; UnsupportedError for architectures and variants without a graph."""
    name = container.metadata.get("general.architecture")
    family = FAMILIES.get(name) if isinstance(name, str) else None
    if family is None:
        rule = f"architectures {', '.join(FAMILIES)} can be read"
        raise UnsupportedError(f"{container.file}: GGUF: {rule}, got {str(name)[:60]}")
    v = _Values(container, str(name))
    if experts := v.integer("expert_count", 0, 0):
        raise UnsupportedError(f"{container.file}: GGUF: networks without experts can be read, got {experts}")
    width, heads = v.integer("embedding_length"), v.integer("attention.head_count")
    key = v.integer("attention.key_length", max(width // heads, 1))
    found = Config(
        family,
        v.integer("block_count", most=MOST_LAYERS),
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
    )
    if family.local and found.layers == OTHER_SCALE:
        rule = f"{name} of other than {OTHER_SCALE} layers can be read, which scale their scores by heads"
        raise UnsupportedError(f"{container.file}: GGUF: {rule}, got {found.layers}")
    rules = {
        "attention.head_count is a multiple of attention.head_count_kv": found.heads % found.kept == 0,
        "rope.dimension_count is even and at most attention.key_length": found.turned % 2 == 0 and found.turned <= key,
    }
    for rule, holds in rules.items():
        if not holds:
            raise CorruptError(f"{container.file}: GGUF: {rule}, got {found}")
    return found


def _stretch(v: _Values) -> float:
    kind = v.metadata.get(f"{v.architecture}.rope.scaling.type", "none")
    if kind == "none":
        return 1.0
    if kind != "linear":
        raise UnsupportedError(f"{v.file}: GGUF: rope.scaling.type none and linear can be read, got {str(kind)[:60]}")
    return v.real("rope.scaling.factor", 1.0)
