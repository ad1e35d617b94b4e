"""Example inputs to time a model with: noise, in sizes that the model accepts."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

import numpy as np

from aot.runtime.abi import DType
from aot.runtime.arrays.tensors import Array, numpy_dtype
from aot.runtime.errors import UsageError
from aot.runtime.inference.agreement import evaluate
from aot.runtime.loading.manifest import Dim, RuleInfo, TensorInfo

Shapes = Iterable[tuple[str, Sequence[int | str]]]
Dims = Iterable[tuple[str, int, int | None]]
MAX_TRIED_SIZE = 1024  # largest size that is tried


def example_inputs(
    infos: Sequence[TensorInfo], rules: Sequence[RuleInfo] = (), shapes: Shapes = (), dims: Dims = ()
) -> dict[str, Array]:
    """Return noise for floats, zeros or empty strings for other types, by input name.

    Dynamic sizes are the smallest that keep the model's `rules`, within `dims` (name, least, greatest) and `shapes`
    (input, empty for the only one; a number, name or `?` for each dimension). UsageError if there are none, or for
    names that the model lacks.
    """
    sizes = _sizes(infos, rules, *_ranges(infos, shapes, dims))
    noise = np.random.default_rng(0)
    arrays: dict[str, Array] = {}
    for info in infos:
        if info.default is not None:
            continue
        shape = tuple(sizes[d.text] if isinstance(d, Dim) else d for d in info.shape)
        if info.dtype is DType.STRING:
            arrays[info.name] = np.full(shape, "", object)
            continue
        dtype = numpy_dtype(info)
        arrays[info.name] = noise.standard_normal(shape).astype(dtype) if dtype.kind == "f" else np.zeros(shape, dtype)
    return arrays


def _ranges(infos: Sequence[TensorInfo], shapes: Shapes, dims: Dims) -> tuple[dict[str, int], dict[str, int]]:
    """Return the least and the greatest size of each dynamic dimension."""
    varying = [d for info in infos for d in info.shape if isinstance(d, Dim)]
    least = {d.text: max(d.low, 0) for d in varying}
    most = {d.text: MAX_TRIED_SIZE if d.high is None else d.high for d in varying}
    for name, low, high in dims:
        if name not in least:
            raise UsageError(f"dim: must be one of {', '.join(least) or 'no dimensions, for none varies'}, got {name}")
        least[name], most[name] = max(low, least[name]), most[name] if high is None else min(high, most[name])
    by_name = {name: info for info in infos for name in (info.name, *info.names)}
    by_name |= {"": infos[0]} if len(infos) == 1 else {}
    for name, shape in shapes:
        info = by_name.get(name)
        if info is None or len(info.shape) != len(shape):
            expected = ", ".join(f"{i.name}: {i}" for i in infos)
            raise UsageError(
                f"shape: must be an input and its dimensions, of {expected}, got {name}={','.join(map(str, shape))}"
            )
        for own, size in zip(info.shape, shape, strict=True):
            if not isinstance(size, int):
                continue
            if not isinstance(own, Dim) and own != size:
                raise UsageError(f"shape: input '{name}' is {info}, got {','.join(map(str, shape))}")
            if isinstance(own, Dim):
                least[own.text], most[own.text] = max(size, least[own.text]), min(size, most[own.text])
    if wrong := next((n for n in least if least[n] > most[n]), None):
        sizes = f"{least[wrong]} or more and {most[wrong]} or less"
        raise UsageError(f"sizes: dimension '{wrong}' fits the model, --shape and --dim, got {sizes}")
    return least, most


def _sizes(
    infos: Sequence[TensorInfo], rules: Sequence[RuleInfo], least: Mapping[str, int], most: Mapping[str, int]
) -> dict[str, int]:
    """Return sizes that keep all rules: one size for all dimensions, else each is changed in turn to break fewer."""

    def all_at(size: int) -> dict[str, int]:
        return {n: min(max(size, least[n]), most[n]) for n in least}

    def broken(sizes: Mapping[str, int]) -> list[RuleInfo]:
        return [r for r in rules if _is_broken(r, sizes)]

    best_sizes = all_at(1)
    wrong = broken(best_sizes)
    for size in range(2, MAX_TRIED_SIZE + 1):
        if not wrong:
            return best_sizes
        trial = all_at(size)
        if trial == best_sizes:
            break
        if len(now := broken(trial)) < len(wrong):
            best_sizes, wrong = trial, now
    for name in [*least, *least]:
        for size in range(max(1, least[name]), most[name] + 1):
            if not wrong:
                return best_sizes
            trial = {**best_sizes, name: size}
            if len(now := broken(trial)) < len(wrong):
                best_sizes, wrong = trial, now
    if wrong:
        inputs = ", ".join(f"{i.name}: {i}" for i in infos)
        raise UsageError(
            f"inputs: no sizes were found that keep the rule '{wrong[0].text}' of {inputs}: give --shape INPUT=SHAPE, "
            f"--dim NAME=SIZE or arrays, got {', '.join(f'{n} = {s}' for n, s in best_sizes.items())}"
        )
    return best_sizes


def _is_broken(rule: RuleInfo, sizes: Mapping[str, int]) -> bool:
    one, other = evaluate(rule.one, sizes), evaluate(rule.other, sizes)
    return one is not None and other is not None and one != other


__all__ = ["example_inputs"]
