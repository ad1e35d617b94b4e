"""A network that is quantised: variants of it with further outputs, and its values in samples.

The variants are compiled, so that samples take the time of inferences; only extremes, histograms and means leave them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from math import prod
from typing import Any

import numpy as np

from aot.codegen.dataclass import dataclass
from aot.compilation.compilation import Compilation
from aot.compilation.jit import in_memory
from aot.compilation.search.costly_layers import Samples
from aot.ir.build import Builder
from aot.ir.copies import copy_graph
from aot.ir.graph import Graph, OutPort
from aot.ir.types import Array
from aot.opset.control.infrastructure import Result
from aot.options import CompileOptions
from aot.passes.weights.matrices import small_weights
from aot.runtime.abi import DType
from aot.runtime.model import CompiledModel
from aot.tools.quantizing.changes import Change, in_levels
from aot.tools.quantizing.choices import Ranges
from aot.tools.quantizing.products import Product
from aot.tools.quantizing.ranges import Seen

UNKNOWN_SIZE = 256  # elements that are assumed along an axis whose size varies
MAX_BYTES = 256 << 20  # bytes of layers' values in memory at once


@dataclass(frozen=True, slots=True)
class Fault:
    """Errors of a quantised product: their means by channels, and powers of signal and noise."""

    mean: Array
    signal: float
    noise: float

    @property
    def decibels(self) -> float:
        """Signal over noise in dB."""
        return 10 * float(np.log10(max(self.signal, 1e-30) / max(self.noise, 1e-30)))


class Network:
    """A graph in operations of the opset, which stays as it is, with the products that may be quantised."""

    def __init__(self, graph: Graph, products: Sequence[Product], options: CompileOptions) -> None:
        """`options`: those for compiling variants; options that change the graph have been applied."""
        self.graph, self.products, self.options = graph, products, options

    def variant(self) -> tuple[Graph, list[Product]]:
        """Return a copy of the graph, and its products."""
        copy = copy_graph(self.graph)
        nodes = {node.name: node for node in copy.nodes.values()}
        return copy, [replace(p, node=nodes[p.node.name]) for p in self.products]

    def compiled(self, graph: Graph, threads: int | None = None, **changes: Any) -> CompiledModel:
        """Compile a variant in memory."""
        return in_memory(Compilation(graph, replace(self.options, **changes)).built, threads)

    def ranges(self, samples: Samples, how: Ranges, percentile: float, progress: Callable[[], object]) -> list[Seen]:
        """Return the values that the data of each product have in the samples; `progress` is called after each."""
        names = list(dict.fromkeys(self._source(p) for p in self.products))
        seen = {name: Seen() for name in names}
        model = self._with_outputs(names, _extremes)
        for sample in samples:
            outputs = model(**sample)
            for k, name in enumerate(names):
                seen[name].widen(outputs[2 * k].item(), outputs[2 * k + 1].item(), name[0])
            progress()
        if how is not Ranges.MINMAX:
            for batch in self._batches(names):
                self._count(batch, samples, seen)
        return [seen[self._source(p)] for p in self.products]

    def faults(self, changes: Sequence[Change], samples: Samples, progress: Callable[[], object]) -> list[Fault]:
        """Return the error that each change causes in its product alone, on the f32 data."""
        graph, products = self.variant()
        _drop_results(graph)
        build = Builder(graph)
        for product, change in zip(products, changes, strict=True):
            _compare(build, product, change)
        model = self.compiled(graph, plain_products=True)
        total: list[list[Array]] = [[] for _ in changes]
        for sample in samples:
            outputs = model(**sample)
            for k, rows in enumerate(total):
                rows.append(np.concatenate([np.array(outputs[3 * k + j], np.float64).reshape(-1) for j in range(3)]))
            progress()
        means = [np.mean(rows, 0) for rows in total]
        return [Fault(m[:-2].astype(np.float32), float(m[-2]), float(m[-1])) for m in means]

    @staticmethod
    def _source(product: Product) -> tuple[str, int]:
        return product.data.node.name, product.data.idx

    def _batches(self, names: Sequence[tuple[str, int]]) -> Iterator[list[tuple[str, int]]]:
        """Yield groups of tensors with `MAX_BYTES` of values together."""
        sizes = {self._source(p): 4 * _elements(p.data) for p in self.products}
        batch, size = list[tuple[str, int]](), 0
        for name in names:
            if batch and size + sizes[name] > MAX_BYTES:
                yield batch
                batch = list[tuple[str, int]]()
                size = 0
            batch.append(name)
            size += sizes[name]
        if batch:
            yield batch

    def _count(self, names: Sequence[tuple[str, int]], samples: Samples, seen: Mapping[tuple[str, int], Seen]) -> None:
        model = self._with_outputs(names, lambda build, port: (port,))
        for sample in samples:
            outputs = model(**sample)
            for k, name in enumerate(names):
                seen[name].count(np.asarray(outputs[k]))

    def _with_outputs(
        self, names: Sequence[tuple[str, int]], outputs_of: Callable[[Builder, OutPort], tuple[OutPort, ...]]
    ) -> CompiledModel:
        """Compile the network with the results of `outputs_of` for some tensors as its only outputs."""
        graph = copy_graph(self.graph)
        nodes = {node.name: node for node in graph.nodes.values()}
        _drop_results(graph)
        build = Builder(graph)
        for name, idx in names:
            for port in outputs_of(build, nodes[name].out_port(idx)):
                build(Result(), port)
        return self.compiled(graph)


def _drop_results(graph: Graph) -> None:
    for node in list(graph.results):
        graph.remove(node)


def _elements(port: OutPort) -> int:
    return prod(d if isinstance(d, int) else UNKNOWN_SIZE for d in port.shape)


def _extremes(build: Builder, port: OutPort) -> tuple[OutPort, ...]:
    axes = build.const(range(port.type.rank), DType.I64)
    return build.ReduceMin(port, axes), build.ReduceMax(port, axes)


def _compare(build: Builder, product: Product, change: Change) -> None:
    """Add outputs: differences of the product from the quantised one over channels, signal and noise."""
    exact = product.node.out_port()
    data = in_levels(build, product.data, change.limits)
    port = build(product.node.op, data, small_weights(build, change.weights))
    difference = build.Subtract(exact, port)
    axes = range(exact.type.rank)
    other_axes = build.const([k for k in axes if k != product.channel], DType.I64)
    all_axes = build.const(axes, DType.I64)
    build(Result(), build.ReduceMean(difference, other_axes))
    for x in (exact, difference):
        build(Result(), build.ReduceMean(build.Multiply(x, x), all_axes))
