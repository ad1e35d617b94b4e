"""Second moments of the data of products, over samples: the mean of x^T x."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence

import numpy as np
from numpy.typing import NDArray

from aot.compilation.compilation import Compilation
from aot.compilation.jit import in_memory
from aot.compilation.search.costly_layers import samples_of
from aot.ir.build import Builder
from aot.ir.copies import copy_graph
from aot.ir.graph import Graph, OutPort
from aot.ir.types import Array
from aot.opset.control.infrastructure import Result
from aot.options import CompileOptions, Event
from aot.runtime.abi import DType
from aot.runtime.errors import UsageError
from aot.runtime.generation.interface import IDS, step_inputs
from aot.runtime.model import CompiledModel

MAX_BYTES = 1 << 30  # bytes of moments in memory at once

Floats = NDArray[np.float64]


def batches(ports: Iterable[OutPort]) -> Iterator[list[OutPort]]:
    """Divide ports, in order, into batches with moments of `MAX_BYTES`, or of one port."""
    batch, size = list[OutPort](), 0
    for port in ports:
        more = 8 * columns_of(port) ** 2
        if batch and size + more > MAX_BYTES:
            yield batch
            batch = list[OutPort]()
            size = 0
        batch.append(port)
        size += more
    if batch:
        yield batch


def columns_of(port: OutPort) -> int:
    columns = port.type.shape[-1]
    assert isinstance(columns, int), "it is multiplied with a static matrix"
    return columns


def second_moments(
    graph: Graph,
    ports: Sequence[OutPort],
    options: CompileOptions,
    data: Sequence[Mapping[str, Array] | Array],
    observe: Event | None,
) -> Iterator[Floats]:
    """Yield the moments [columns, columns] of the data at each port. UsageError for data that are not finite.

    `observe` gets the number of samples that are done, and of all.
    """
    copy = copy_graph(graph)
    nodes = {node.name: node for node in copy.nodes.values()}
    for node in list(copy.results):
        copy.remove(node)
    build = Builder(copy)
    for port in ports:
        rows = build.const([-1, columns_of(port)], DType.I64)
        build(Result(), build.Reshape(nodes[port.node.name].out_port(port.idx), rows))
    model = in_memory(Compilation(copy, options).built)
    total = [np.zeros((columns_of(port),) * 2) for port in ports]
    samples = [s for one in data for s in _samples(model, one)]
    for n, sample in enumerate(samples):
        values = model.create_infer_request().infer(sample)
        for k, (port, moments) in enumerate(zip(ports, total, strict=True)):
            x = np.asarray(values[k], np.float32)
            if not np.isfinite(x).all():
                raise UsageError(f"quantize: data must give finite numbers, got others at {port.node.name}")
            moments += x.T @ x / (max(len(x), 1) * len(samples))
        if observe is not None:
            observe("measure", n + 1, len(samples))
    yield from total


def _samples(model: CompiledModel, data: Mapping[str, Array] | Array) -> Iterator[Mapping[str, Array]]:
    """Yield samples; to `input_ids` alone the other inputs of a stateful decoder are added, row by row."""
    names = {t.name for t in model.inputs}
    for sample in samples_of("quantize", model, data):
        if set(sample) == {IDS} != names:
            yield from (step_inputs(row.tolist(), 0, names) for row in np.atleast_2d(sample[IDS]))
        else:
            yield sample
