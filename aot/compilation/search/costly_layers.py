"""Search for the layers that cost most accuracy when they change, by sample data.

A network in f32 has one more input, flags: layer k computes in the other way where flag k is set. So an inference for
each layer tells the error that this layer alone causes in the results, without compiling again.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import cast

import numpy as np

from aot.codegen.dataclass import dataclass
from aot.ir.types import Array
from aot.runtime.errors import UsageError
from aot.runtime.model import CompiledModel

Samples = Sequence[Mapping[str, Array]]
Results = Sequence[dict[str, Array]]


@dataclass(frozen=True, slots=True)
class LayerSearch:
    """A network with an input `flags` that selects the changed ones of `layers`, and the expected outputs of samples.

    `work`: arithmetic of each layer; `progress` gets the number of layers that are done, and of all.
    """

    model: CompiledModel
    flags: str
    layers: Sequence[str]
    samples: Samples
    wanted: Results
    work: Mapping[str, int]
    progress: Callable[[int, int], None]

    def alone(self) -> list[float]:
        """Return the largest error of the results for each layer, if it alone is changed."""
        errors: list[float] = []
        for k in range(len(self.layers)):
            self.progress(k, len(self.layers))
            errors.append(self._worst(np.arange(len(self.layers)) == k))
        return errors

    def all_changed(self) -> float:
        """Return the largest error of the results if all layers are changed."""
        return self._worst(np.ones(len(self.layers), np.bool_))

    def order(self, alone: Sequence[float]) -> list[int]:
        """Return the layers that cost much error for little arithmetic first."""
        return sorted(range(len(alone)), key=lambda k: -(alone[k] ** 2) / self.work.get(self.layers[k], 1))

    def needed(self, order: Sequence[int], most: float) -> int:
        """Return how many layers, the first of `order`, must stay unchanged for an error of at most `most`."""
        low, high = 1, len(order)
        while low < high:
            middle = (low + high) // 2
            flags = np.ones(len(order), np.bool_)
            flags[list(order[:middle])] = False
            low, high = (low, middle) if self._worst(flags) <= most else (middle + 1, high)
        return low

    def _worst(self, flags: Array) -> float:
        feeds = {self.flags: flags}
        return max(errors_of(self.model, self.samples, self.wanted, feeds).values(), default=0.0)


def errors_of(
    model: CompiledModel, samples: Samples, wanted: Results, more: Mapping[str, Array] | None = None
) -> dict[str, float]:
    """Return the largest error of each output over all samples. `more`: inputs that are equal for all of them."""
    errors: dict[str, float] = {}
    for sample, expected in zip(samples, wanted, strict=True):
        for name, y in results(model, {**sample, **(more or {})}).items():
            errors[name] = max(errors.get(name, 0.0), error_of(y, expected[name]))
    return errors


def results(model: CompiledModel, sample: Mapping[str, Array]) -> dict[str, Array]:
    """Return the outputs of an inference by name."""
    outputs = model(**sample)
    return {t.name: np.array(outputs[k]) for k, t in enumerate(model.outputs)}


def error_of(y: Array, expected: Array) -> float:
    """Return the largest difference over the largest number; of integers and texts, the share that differ."""
    if y.shape != expected.shape:
        return 1.0
    if not y.size:
        return 0.0
    if y.dtype.kind != "f":
        return float(np.count_nonzero(y != expected) / y.size)
    a, b = y.astype(np.float64), expected.astype(np.float64)
    same = (a == b) | (np.isnan(a) & np.isnan(b))
    finite = np.isfinite(a) & np.isfinite(b)
    if not (same | finite).all():
        return float("inf")
    largest = np.abs(b[np.isfinite(b)]).max(initial=0.0) or 1.0
    return float(np.abs(np.where(same, 0.0, np.where(finite, a, 0.0) - np.where(finite, b, 0.0))).max() / largest)


def samples_of(what: str, model: CompiledModel, data: Mapping[str, Array] | Array) -> Samples:
    """Return the samples: one if arrays have the ranks of the inputs, several if they have a dimension more.

    An array without a name is for the first input. UsageError, which begins with `what`, for data that do not fit.
    """
    arrays = data if isinstance(data, Mapping) else {t.name: data for t in model.inputs[:1]}
    named = {name: np.asarray(x) for name, x in arrays.items()}
    ranks = {t.name: len(t.shape) for t in model.inputs}
    if not named.keys() <= ranks.keys():
        inputs = ", ".join(sorted(ranks))
        raise UsageError(f"{what}: data must be for the inputs {inputs}, got {', '.join(sorted(named))}")
    several = {name: x.ndim == ranks[name] + 1 for name, x in named.items()}
    if not any(several.values()):
        return [named]
    counts = {named[n].shape[0] for n in named if several[n]}
    if not all(several.values()) or len(counts) != 1 or 0 in counts:
        shapes = ", ".join(f"{n} {list(named[n].shape)}" for n in sorted(named))
        raise UsageError(f"{what}: data must be one sample, or equally many along a first dimension, got {shapes}")
    return [{n: x[k] for n, x in named.items()} for k in range(counts.pop())]


def work_of(model: CompiledModel) -> dict[str, int]:
    """Return the arithmetic of the kernels of each layer, in FLOP; none for dynamic sizes."""
    operations: dict[str, int] = {}
    facts = cast("list[dict[str, object]]", model.manifest.json["calls"])
    for call, fact in zip(model.manifest.calls, facts, strict=True):
        work = fact.get("work")
        for layer in call.layers:
            operations[layer] = operations.get(layer, 0) + (work if isinstance(work, int) else 0)
    return {layer: max(n, 1) for layer, n in operations.items()}
