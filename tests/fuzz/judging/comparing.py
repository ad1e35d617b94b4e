"""Judges compiled graphs against the references, at the sizes that were drawn and at others."""

from __future__ import annotations

import io
import tempfile
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np

from aot.compilation.driver import stages
from aot.compilation.jit import in_memory
from aot.frontends import front_passes, read_model
from aot.ir.graph import Graph
from aot.ir.interpret import interpret
from aot.ir.types import Array, numpy_dtype
from aot.opset.control.infrastructure import Parameter
from aot.options import CompileOptions
from aot.runtime.errors import AotError, InternalError, UnsupportedError
from aot.runtime.model import CompiledModel
from tests.fuzz.case import Case
from tests.fuzz.judging.bounds import Expected, expectations, no_states
from tests.fuzz.judging.peers import openvino_is_trusted, openvino_results
from tests.fuzz.server import PEER, REFERENCE, STAGE, Outcome, refusal

FAST = CompileOptions(level=None, verify=True)
FED = "inputs.npz"


def packed(arrays: Sequence[Array]) -> bytes:
    """The bytes of an .npz file with the arrays in their order."""
    file = io.BytesIO()
    np.savez_compressed(file, *arrays)
    return file.getvalue()


def unpacked(data: bytes, graph: Graph) -> list[Array]:
    """The arrays, in the types of the graph's parameters: NumPy's files do not know bf16."""
    with np.load(io.BytesIO(data)) as held:
        arrays = [held[f"arr_{k}"] for k in range(len(held.files))]
    types = [n.op.element_type if isinstance(n.op, Parameter) else None for n in graph.parameters]
    pairs = zip(arrays, types, strict=True)
    return [a.view(numpy_dtype(t)) if a.dtype.kind == "V" and t is not None else a for a, t in pairs]


def read(path: Path) -> Graph:
    """The graph as the references can run it."""
    graph = read_model(path)
    for run in front_passes():
        run(graph)
    return graph


def compiled(path: Path) -> CompiledModel | Outcome:
    """The model. A right graph may be unsupported, but nothing else."""
    STAGE.enter("compile")
    try:
        return in_memory(stages(path, FAST).built, 1)
    except UnsupportedError as error:
        return refusal(error)
    except AotError as error:
        found = refusal(error)
        return Outcome("bug", f"a right graph is refused: {found.text}", found.place, found.code)


def compare(
    model: CompiledModel, inputs: Sequence[Array], expected: Sequence[Expected], exact: bool = False
) -> Outcome:
    """One inference."""
    STAGE.enter("infer")
    try:
        result = model(list(inputs))
    except AotError as error:
        found = refusal(error)
        return Outcome("bug", f"right inputs are refused: {found.text}", found.place, found.code)
    for k, e in enumerate(expected):
        if difference := e.differs(np.asarray(result[k]), exact):
            return Outcome("wrong", f"result {k}: {difference}", "result")
    return Outcome("fine")


def other_sizes(graph: Graph, inputs: Sequence[Array]) -> list[Array] | None:
    """The inputs with every varying size one larger; None if none varies."""
    made, changed = list[Array](), False
    for node, array in zip(graph.parameters, inputs, strict=True):
        shape = node.out_port(0).type.shape
        for axis, n in enumerate(shape):
            if not isinstance(n, int):
                changed = True
                array = np.concatenate([array, _first(array, axis)], axis)
        made.append(array)
    return made if changed else None


def _first(array: Array, axis: int) -> Array:
    """One slice: the first, or zeros where there is none."""
    if array.shape[axis]:
        return np.take(array, [0], axis)
    return np.zeros((*array.shape[:axis], 1, *array.shape[axis + 1 :]), array.dtype)


def judge_graph(case: Case) -> Outcome:
    """Compiled code against the references and OpenVINO, twice: so that variables are read back, too."""
    with tempfile.TemporaryDirectory() as name:
        case.write(Path(name))
        path = Path(name) / "model.xml"
        graph = read(path)
        inputs = unpacked(case.files[FED], graph)
        STAGE.enter(REFERENCE)
        states = no_states()
        rounds = [(inputs, expectations(graph, inputs, states))]
        if graph.sinks:
            rounds.append((inputs, expectations(graph, inputs, states)))
        model = compiled(path)
        if isinstance(model, Outcome):
            return model
        for given, expected in rounds:
            found = compare(model, given, expected)
            if found.finding:
                return found
        if not graph.sinks and (larger := other_sizes(graph, inputs)) is not None:
            found = _at_other_sizes(model, path, larger)
            if found.finding:
                return found
        STAGE.enter(PEER)
        return _peer(path, graph, inputs, rounds[0][1])


def _at_other_sizes(model: CompiledModel, path: Path, inputs: Sequence[Array]) -> Outcome:
    """Results are those of the references, or both refuse the sizes."""
    STAGE.enter(REFERENCE)
    try:
        expected = expectations(read(path), inputs)
    except AotError:
        expected = None
    STAGE.enter("infer at other sizes")
    try:
        result = model(list(inputs))
    except InternalError as error:
        return refusal(error)
    except AotError as error:
        if expected is None or not _fits(path, inputs):
            return Outcome("fine")
        found = refusal(error)
        return Outcome("bug", f"other sizes are refused: {found.text}", found.place, found.code)
    if expected is None:
        return lenient(path, inputs)
    for k, e in enumerate(expected):
        if difference := e.differs(np.asarray(result[k])):
            return Outcome("wrong", f"other sizes, result {k}: {difference}", "result at other sizes")
    return Outcome("fine")


def _fits(path: Path, inputs: Sequence[Array]) -> bool:
    """True if the model with these sizes, as fixed ones, compiles: references do not check all rules of operations."""
    STAGE.enter("compile at other sizes")
    graph = read_model(path)
    shapes = tuple((n.name, a.shape) for n, a in zip(graph.parameters, inputs, strict=True))
    try:
        _ = stages(path, replace(FAST, shapes=shapes)).steps
    except AotError:
        return False
    return True


def lenient(path: Path, inputs: Sequence[Array]) -> Outcome:
    """A result for inputs that the references refuse is wrong, unless what refuses them is not needed for it."""
    STAGE.enter(REFERENCE)
    try:
        interpret(stages(path, FAST).optimized, inputs)
    except UnsupportedError:  # of a region that need not run, whose sizes are not known
        return Outcome("fine")
    except AotError as error:
        place = f"result of sizes that {str(error).partition(':')[0]} refuses"
        return Outcome("wrong", f"sizes that do not fit have a result: {error}", place)
    return Outcome("fine")


def _peer(path: Path, graph: Graph, inputs: Sequence[Array], expected: Sequence[Expected]) -> Outcome:
    if not openvino_is_trusted(graph):
        return Outcome("fine")
    try:
        results = openvino_results(path, inputs)
    except RuntimeError:  # it refuses some right graphs
        return Outcome("fine")
    for k, (e, found) in enumerate(zip(expected, results, strict=True)):
        wide = Expected(e.value, 16 * e.allowed + 1e-5)  # it computes exponentials and sums with fewer digits
        if difference := wide.differs(found):
            return Outcome("peer", f"OpenVINO, result {k}: {difference}", "OpenVINO")
    return Outcome("fine")
