"""Sizes and variants of a decoder-only language model, and values of a file's metadata, checked as they are read."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import field
from typing import cast

from aot.codegen.dataclass import dataclass
from aot.runtime.errors import CorruptError

MAX_LAYERS, MAX_WIDTH, MAX_TOKENS = 1 << 12, 1 << 20, 1 << 40
MAX_FLOAT = 3.4028234663852886e38  # the largest finite f32
ALL_TOKENS = 1 << 30  # a window that no sequence fills
SILU, TANH_GELU, GELU, RELU = "silu", "gelu_tanh", "gelu", "relu"  # functions of the MLP


@dataclass(frozen=True, slots=True)
class Family:
    """Differences of an architecture from Llama.

    `pairs`: rotations turn neighbours (2 i, 2 i + 1) instead of halves. `centred`: norms subtract the mean, and may add
    a bias. `gated`: the MLP has a gate. `learned`: positions are rows of a table, which are added to embeddings.
    `parallel`: attention and MLP read the same values, behind one norm, or behind one each (`apart`). `behind`: norms
    stand after attention and MLP only. `whole`: norms of queries and keys go over all heads together. `sinks`: each
    head has one more score in its softmax, without a value.
    """

    pairs: bool = False
    centred: bool = False
    gated: bool = True
    learned: bool = False
    parallel: bool = False
    apart: bool = False
    behind: bool = False
    whole: bool = False
    sinks: bool = False


@dataclass(frozen=True, slots=True)
class Factors:
    """Numbers that some networks multiply by: embeddings, what a layer adds, logits."""

    embedding: float = 1.0
    added: float = 1.0
    logits: float = 1.0


@dataclass(frozen=True, slots=True)
class ClampedGate:
    """The gate of gpt-oss: gate sigmoid(slope gate) (up + 1), of gates up to `limit` and ups from -`limit` to it."""

    slope: float
    limit: float


@dataclass(frozen=True, slots=True)
class Latents:
    """Short vectors that all heads' queries (`queries` elements), or keys and values (`keys` elements), are made from.

    Queries are made of the layer's input where they have 0. The rotated elements of keys, the last ones of a head, are
    those of all heads, and rotations turn neighbours.
    """

    keys: int
    queries: int = 0


@dataclass(frozen=True, slots=True)
class Experts:
    """MLPs with a router that chooses some of them for each token.

    `count` of them, of `inner` elements between their products, in `layers`; the `chosen` most probable ones of a token
    are added up, weighted by their probabilities, which are `normalised` to a sum of 1 or not.
    """

    count: int
    chosen: int
    inner: int
    layers: frozenset[int]
    normalised: bool = True
    clamped: ClampedGate | None = None
    scale: float = 1.0  # of what the chosen ones add up to
    shared: int = 0  # elements between the products of an MLP that all tokens have beside the chosen ones, 0: none


@dataclass(frozen=True, slots=True)
class Config:
    """Sizes of a decoder.

    `heads` of queries share `key_heads` of keys and values, of `key` and `value` elements.
    """

    family: Family
    layers: int
    width: int
    inner: int  # elements between the products of the MLP
    heads: int
    key_heads: int
    key: int
    value: int
    rotated: int  # elements of a head, the first ones
    epsilon: float
    base: float
    local_base: float  # of local layers
    stretch: float  # positions are divided by it, but in local layers
    window: int  # tokens that local layers see
    local: tuple[bool, ...]  # of each layer
    activation: str = SILU
    scale: float = 0.0  # of scores; 0: the root of the elements of a key
    score_cap: float = 0.0  # scores are cap tanh(score / cap), 0: as they are
    logit_cap: float = 0.0
    factors: Factors = field(default_factory=Factors)
    unrotated: frozenset[int] = frozenset()  # layers without rotations
    experts: Experts | None = None
    divisors: tuple[float, ...] = ()  # of the rates of rotations, none: 1
    amplitude: float = 1.0  # of rotations
    latents: Latents | None = None


class Values:
    """Metadata of one architecture; CorruptError for values of another type or range."""

    def __init__(self, file: str, metadata: Mapping[str, object], prefix: str = "") -> None:
        """`file`: the file and its format, for errors; `prefix`: what the names of all keys begin with."""
        self.file, self.metadata, self.prefix = file, metadata, prefix

    def find(self, key: str, default: object = None) -> object:
        """Return a value, `default` if it is missing or null."""
        value = self.metadata.get(self.prefix + key)
        return default if value is None else value

    def integer(self, key: str, default: int | None = None, least: int = 1, most: int = MAX_WIDTH) -> int:
        """Return an integer within bounds; of a list, one for each layer, that of all."""
        value = self.find(key, default)
        if isinstance(value, list):
            each = set(map(str, cast("list[object]", value)))
            value = cast("list[object]", value)[0] if len(each) == 1 else ", ".join(sorted(each))
        if isinstance(value, bool) or not isinstance(value, int) or not least <= value <= most:
            raise self.wrong(key, f"an integer from {least} to {most}", value)
        return value

    def real(self, key: str, default: float | None = None, most: float = MAX_FLOAT) -> float:
        """Return a number above 0 that is `most` at most; `default`, which may be 0, where it is missing."""
        value = self.find(key)
        if value is None and default is not None:
            return default
        if isinstance(value, bool) or not isinstance(value, int | float) or not 0 < value <= most:
            raise self.wrong(key, "a positive number" if most == MAX_FLOAT else f"above 0, at most {most}", value)
        return float(value)

    def part(self, key: str) -> Values:
        """Return the values of an object, which has none if it is missing."""
        value = self.find(key, {})
        if not isinstance(value, dict):
            raise self.wrong(key, "an object", value)
        return Values(self.file, cast("dict[str, object]", value))

    def wrong(self, key: str, rule: str, value: object) -> CorruptError:
        """Return the error for a value that breaks a rule."""
        return CorruptError(f"{self.file}: {self.prefix}{key} is {rule}, got {str(value)[:60]}")


def check_heads(config: Config, file: str) -> None:
    """Raise CorruptError for heads that do not fit each other."""
    if config.heads % config.key_heads:
        rule = "the number of heads is a multiple of that of keys and values"
        raise CorruptError(f"{file}: {rule}, got {config.heads} and {config.key_heads}")
    if config.rotated % 2 or config.rotated > config.key:
        rule = "the rotated elements of a head are even and no more than it has"
        raise CorruptError(f"{file}: {rule}, got {config.rotated} of {config.key}")
