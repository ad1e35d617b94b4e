"""Rotations of queries and keys as config.json describes them: `rope_parameters`, or `rope_scaling` of version 4."""

from __future__ import annotations

from math import log, pi, sqrt
from typing import cast

import numpy as np

from aot.frontends.language.config import MAX_TOKENS, Values
from aot.frontends.language.rotations import Yarn
from aot.runtime.errors import UnsupportedError

LOCAL, GLOBAL = "sliding_attention", "full_attention"
DEFAULT, LINEAR, LLAMA3, YARN, LONGROPE = "default", "linear", "llama3", "yarn", "longrope"  # types of rotations
TYPES = (DEFAULT, LINEAR, LLAMA3, YARN, LONGROPE)
TRAINED = "original_max_position_embeddings"
BY_RATE = (LLAMA3, YARN, LONGROPE)  # each rate is divided by a number of its own
PHI3 = {"su": LONGROPE, "yarn": LONGROPE}  # as its first folders call it


def rotation(v: Values, kind: str = GLOBAL) -> Values:
    """Return the parameters of rotations: one for all layers, or one for each kind of them."""
    values = v.part("rope_parameters" if v.find("rope_parameters") is not None else "rope_scaling")
    own = values.find(kind)
    settings = cast("dict[str, object]", own) if isinstance(own, dict) else values.metadata
    is_wide = "rope_parameters" in v.metadata or kind == GLOBAL or v.find("model_type") != "gemma3_text"
    r = Values(v.file, settings if is_wide else {})
    named = r.find("rope_type", r.find("type", DEFAULT))
    named = PHI3.get(str(named), named) if v.find("model_type") == "phi3" else named
    if named not in TYPES:
        raise UnsupportedError(f"{v.file}: rotations of type {', '.join(TYPES)} can be read, got {str(named)[:60]}")
    return Values(v.file, {**r.metadata, "rope_type": named})


def check_local(v: Values) -> None:
    """Raise UnsupportedError for positions of local layers that the decoder has no scaling for."""
    wide, near = rotation(v), rotation(v, LOCAL)
    kinds = near.find("rope_type"), wide.find("rope_type")
    if kinds[0] == LINEAR:
        raise UnsupportedError(f"{v.file}: {LOCAL} without a scaling of positions can be read, got {kinds[0]}")
    if set(kinds) & set(BY_RATE) and near.metadata != wide.metadata:
        rule = f"{', '.join(BY_RATE)} of all layers, or of none, can be read"
        raise UnsupportedError(f"{v.file}: {rule}, got {kinds[1]} beside {kinds[0]} of {LOCAL}")


def base(v: Values, kind: str = GLOBAL) -> float:
    """Return the base of the rates."""
    usual = v.real("rotary_emb_base", 2e6 if v.find("model_type") == "smollm3" else 10000.0)
    return rotation(v, kind).real("rope_theta", v.real("rope_theta", usual))


def stretch(v: Values) -> float:
    """Return the divisor of positions."""
    r = rotation(v)
    return r.real("factor") if r.find("rope_type") == LINEAR else 1.0


def rotated(v: Values, key: int, usual: float) -> int:
    """Return the number of elements of a head that are rotated."""
    share = v.real("partial_rotary_factor", v.real("rotary_pct", usual, most=1.0), most=1.0)
    return int(key * rotation(v).real("partial_rotary_factor", share, most=1.0))


def divisors(v: Values, size: int) -> tuple[float, ...]:
    """Return the divisors of the rates of `size` rotated elements; none if they are 1."""
    r = rotation(v)
    match r.find("rope_type"):
        case "llama3":
            return _llama3(r, v, size)
        case "yarn":
            return _yarn(r, v).divisors(_above_one(v, "rope_theta", base(v)), size)
        case "longrope":
            return _short_factors(r, size // 2)
        case _:
            return ()


def amplitude(v: Values) -> float:
    """Return the factor of cosines and sines."""
    r = rotation(v)
    if r.find("rope_type") not in (YARN, LONGROPE):
        return 1.0
    if r.find("attention_factor") is not None:
        return r.real("attention_factor")
    if r.find("rope_type") == LONGROPE:
        factor, trained = _factor(r, v), _above_one(v, TRAINED, _trained(r, v))
        return sqrt(1 + log(factor) / log(trained)) if factor > 1 else 1.0
    yarn, each, scale_of_all = _yarn(r, v), r.find("mscale"), r.find("mscale_all_dim")
    if not each or not scale_of_all:
        return yarn.amplitude()
    return yarn.amplitude(r.real("mscale")) / yarn.amplitude(r.real("mscale_all_dim"))


def scale_of_scores(v: Values) -> float:
    """Return the factor of scores of queries and keys that `mscale_all_dim` gives."""
    r = rotation(v)
    if r.find("rope_type") != YARN or not r.find("mscale_all_dim"):
        return 1.0
    return _yarn(r, v).amplitude(r.real("mscale_all_dim")) ** 2


def most_tokens(v: Values) -> int | None:
    """Return the tokens that a sequence may have if more of them have other rotations."""
    r = rotation(v)
    if r.find("rope_type") != LONGROPE:
        return None
    return int(_trained(r, v))


def _above_one(v: Values, key: str, value: float) -> float:
    if value <= 1:
        raise v.wrong(key, "more than 1", value)
    return value


def _factor(r: Values, v: Values) -> float:
    trained = _trained(r, v)
    return r.real("factor", v.real("max_position_embeddings", trained) / trained)


def _trained(r: Values, v: Values) -> float:
    usual = v.real("max_position_embeddings", 2048.0, MAX_TOKENS)
    return r.real(TRAINED, v.real(TRAINED, usual, MAX_TOKENS), MAX_TOKENS)


def _yarn(r: Values, v: Values) -> Yarn:
    rounded = r.find("truncate", True) is True
    return Yarn(_factor(r, v), _trained(r, v), r.real("beta_fast", 32.0), r.real("beta_slow", 1.0), rounded)


def _llama3(r: Values, v: Values, size: int) -> tuple[float, ...]:
    lengths = 2 * pi * base(v) ** (np.arange(0, size, 2) / size)
    trained, factor = _trained(r, v), r.real("factor")
    low, high = r.real("low_freq_factor"), r.real("high_freq_factor")
    if high <= low:
        raise v.wrong("high_freq_factor", "more than low_freq_factor", high)
    share = np.clip((trained / lengths - low) / (high - low), 0, 1)
    return tuple((1 / ((1 - share) / factor + share)).tolist())


def _short_factors(r: Values, count: int) -> tuple[float, ...]:
    """Return LongRoPE's factors for sequences that are no longer than in the first training."""
    short_factors = r.find("short_factor")
    factors = cast("list[object]", short_factors) if isinstance(short_factors, list) else []
    numbers = [float(n) for n in factors if isinstance(n, int | float) and not isinstance(n, bool) and 0 < n < 1e9]
    if len(numbers) != len(factors) or len(factors) != count:
        raise r.wrong("short_factor", f"a list of {count} positive numbers", factors)
    return tuple(numbers)
