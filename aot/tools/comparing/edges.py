"""Inputs of a certificate: edge values and seeded noise, in sizes that the model accepts.

zeros, negative zeros, ones    floats and integers alike
largest, smallest, denormal    noise times a number; the largest one that leaves all values of the model finite
nan, infinity                  one element each, where no operation mixes elements
noise 0, noise 1, ...          normal floats and small integers; the second one in larger sizes
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from hashlib import sha256

import numpy as np

from aot.codegen.dataclass import dataclass
from aot.compilation.search.examples import example_inputs
from aot.ir.graph import Graph, OutPort
from aot.ir.interpret import interpret
from aot.ir.op import ViewOp
from aot.ir.types import Array
from aot.opset.base.families import Elementwise
from aot.opset.control.infrastructure import Constant, Parameter, Result
from aot.runtime.arrays.files import Arrays
from aot.runtime.errors import AotError, UsageError
from aot.runtime.loading.manifest import Dim, RuleInfo, TensorInfo
from aot.tools.comparing.sides import in_order

LARGEST = (3.4e38, 1e18, 1e9, 1e4)  # tried in turn; the last one is taken in any case
SMALLEST, DENORMAL = 2.0**-126, 1e-40  # least normal number of f32, and one below it
INTEGERS = 10  # random integers are below it
LARGER = 3  # size of dimensions that vary, or twice their least size, in the second noise


@dataclass(frozen=True, slots=True, eq=False)
class Sample:
    """Inputs by name; `kind` says which ones: equal models, kinds and seeds give equal arrays."""

    kind: str
    inputs: Arrays

    @property
    def digest(self) -> str:
        return digest(list(self.inputs.values()))


def digest(arrays: Sequence[Array]) -> str:
    """Return the SHA-256 of arrays, with types and shapes, in hexadecimal."""
    sha = sha256()
    for array in arrays:
        sha.update(f"{array.dtype}{list(array.shape)}".encode())
        sha.update(str(array.tolist()).encode() if array.dtype == object else np.ascontiguousarray(array).tobytes())
    return sha.hexdigest()


def samples(graph: Graph, infos: Sequence[TensorInfo], rules: Sequence[RuleInfo], count: int) -> Iterator[Sample]:
    """Yield edge inputs and `count` samples of noise for a model with the reference `graph`."""
    examples = example_inputs(infos, rules)
    noise = _noise(examples, 0)
    yield Sample("zeros", {name: _filled(a, 0.0) for name, a in examples.items()})
    yield Sample("negative zeros", {name: _filled(a, -0.0) for name, a in examples.items()})
    yield Sample("ones", {name: _filled(a, 1.0) for name, a in examples.items()})
    size = next((n for n in LARGEST[:-1] if _is_finite(graph, _scaled(noise, n))), LARGEST[-1])
    yield Sample(f"largest {size:g}", _scaled(noise, size))
    yield Sample("smallest", _scaled(noise, SMALLEST))
    yield Sample("denormal", _scaled(noise, DENORMAL))
    if _mixes_nothing(graph):
        yield Sample("nan", {name: _with_one(a, np.nan) for name, a in noise.items()})
        yield Sample("infinity", {name: _with_one(a, np.inf) for name, a in noise.items()})
    for seed in range(count):
        yield Sample(f"noise {seed}", _noise(_larger(infos, rules, examples) if seed == 1 else examples, seed))


def without_integers(sample: Sample) -> Sample:
    """Return the sample with zeros for integers; itself if there are none."""
    if not any(array.dtype.kind in "iu" for array in sample.inputs.values()):
        return sample
    inputs = {name: np.zeros_like(a) if a.dtype.kind in "iu" else a for name, a in sample.inputs.items()}
    return Sample(f"{sample.kind}, integers 0", inputs)


def moved(inputs: Arrays) -> Arrays:
    """Return inputs with each float one unit in the last place larger or smaller; other types stay."""
    draw = np.random.default_rng(0)
    arrays: Arrays = {}
    for name, array in inputs.items():
        if array.dtype.kind == "f":
            ways = np.where(draw.integers(0, 2, array.shape) > 0, np.inf, -np.inf).astype(array.dtype)
            array = np.where(np.isfinite(array), np.nextafter(array, ways), array)
        arrays[name] = array
    return arrays


def _filled(array: Array, number: float) -> Array:
    return array if array.dtype == object else np.full(array.shape, number).astype(array.dtype)


def _scaled(noise: Arrays, size: float) -> Arrays:
    """Return floats of at most `size`; other types stay."""
    arrays: Arrays = {}
    for name, array in noise.items():
        if array.dtype.kind != "f":
            arrays[name] = array
            continue
        largest = float(np.abs(array).max()) if array.size else 1.0
        bound = min(size, float(np.finfo(array.dtype.name).max))
        arrays[name] = (array.astype(np.float64) * (bound / (largest or 1.0))).astype(array.dtype)
    return arrays


def _with_one(array: Array, number: float) -> Array:
    """Return an array with `number` as its first element, if it has floats."""
    result = array.copy()
    if result.dtype.kind == "f" and result.size:
        result.reshape(-1)[0] = number
    return result


def _noise(shapes: Arrays, seed: int) -> Arrays:
    draw = np.random.default_rng(seed)
    noise: Arrays = {}
    for name, array in shapes.items():
        match array.dtype.kind:
            case "f":
                noise[name] = draw.standard_normal(array.shape).astype(array.dtype)
            case "b":
                noise[name] = draw.integers(0, 2, array.shape).astype(array.dtype)
            case "i" | "u":
                noise[name] = draw.integers(0, INTEGERS, array.shape).astype(array.dtype)
            case _:
                noise[name] = array
    return noise


def _larger(infos: Sequence[TensorInfo], rules: Sequence[RuleInfo], examples: Arrays) -> Arrays:
    """Return inputs with larger dynamic dimensions, if the model has rules that allow that."""
    varying = {d.text: d for info in infos for d in info.shape if isinstance(d, Dim)}
    sizes = {name: max(LARGER, 2 * d.low) for name, d in varying.items()}
    dims = [(name, min(sizes[name], sizes[name] if d.high is None else d.high), None) for name, d in varying.items()]
    try:
        return example_inputs(infos, rules, dims=dims)
    except UsageError:
        return examples


def _is_finite(graph: Graph, inputs: Arrays) -> bool:
    """True if no value inside of the model overflows."""

    def observe(port: OutPort, value: Array) -> None:
        if port.node.constant_data is None and value.dtype.kind == "f" and not np.isfinite(value).all():
            raise _InfiniteError

    try:
        interpret(graph, in_order(graph, inputs), observe=observe)
    except (_InfiniteError, AotError):
        return False
    return True


class _InfiniteError(Exception):
    """A value that is not finite."""


def _mixes_nothing(graph: Graph) -> bool:
    """True if each element of an output depends on one element of each input, so that a NaN reaches no others."""
    return all(isinstance(n.op, Elementwise | ViewOp | Parameter | Constant | Result) for n in graph.nodes.values())
