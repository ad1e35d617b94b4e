"""Random ONNX graphs, against ONNX Runtime."""

from __future__ import annotations

import io
import tempfile
from collections.abc import Callable, Sequence
from pathlib import Path

import numpy as np
import onnx
from onnx import helper
from onnx.reference import ReferenceEvaluator

from aot.ir.graph import OutPort
from aot.ir.interpret import interpret
from aot.ir.types import Array
from aot.runtime.errors import AotError, InternalError
from aot.runtime.model import CompiledModel
from tests.fuzz.case import Case
from tests.fuzz.graphs.growing import Refused
from tests.fuzz.graphs.onnx_growing import OPSETS, OnnxGrowing, grow
from tests.fuzz.graphs.onnx_steps import STEPS
from tests.fuzz.judging.bounds import Expected, expectations
from tests.fuzz.judging.comparing import FED, compare, compiled, lenient, other_sizes, packed, read, unpacked
from tests.fuzz.judging.peers import onnxruntime_results, onnxruntime_takes
from tests.fuzz.reduce import fewest
from tests.fuzz.server import PEER, REFERENCE, STAGE, Outcome, refusal
from tests.properties.drawing import random_draw

TYPES = (np.float32, np.float32, np.float32, np.float32, np.float16, np.float64, np.int64, np.int32, np.bool_, np.uint8)


def random_model(seed: int) -> tuple[onnx.ModelProto, list[Array]]:
    d = random_draw(seed)
    made = OnnxGrowing(d, d.pick(OPSETS), d.flag())
    shape = d.shape((1, 4), (1, 7))
    for _ in range(d.integer(1, 3)):
        used = shape if d.flag() else d.shape((1, 4), (1, 7))
        dtype = d.pick(TYPES)
        rng = d.generator()
        low, high = (0, 2) if dtype is np.bool_ else (0, 5) if dtype is np.uint8 else (-4, 4)
        drawn = rng.uniform(low, high, used) if np.dtype(dtype).kind == "f" else rng.integers(low, high, used)
        made.parameter(drawn.astype(dtype))
    grow(made, d.pick([1, 2, 4, 8, 12]), STEPS)
    read_names = {n for node in made.nodes for n in node.input}
    outputs = [o for n in made.nodes for o in n.output if o not in read_names or not d.integer(0, 9)]
    return made.model(outputs or list(made.values)[:1]), made.fed


def judge_onnx(case: Case) -> Outcome:
    """Compiled code against ONNX Runtime; our references say how far both may be apart."""
    with tempfile.TemporaryDirectory() as name:
        case.write(Path(name))
        path = Path(name) / "model.onnx"
        STAGE.enter("read")
        try:
            graph = read(path)
        except AotError as error:
            return _refused(path, case, refusal(error))
        inputs = unpacked(case.files[FED], graph)
        model = compiled(path)
        if isinstance(model, Outcome):
            return _refused(path, case, model)
        STAGE.enter(REFERENCE)
        bounds = expectations(graph, inputs)
        found = compare(model, inputs, bounds)
        if found.finding:
            return found
        found = _against_runtime(model, path, inputs, bounds)
        if found.finding or (larger := other_sizes(read(path), inputs)) is None:
            return found
        return _at_other_sizes(model, path, larger)


def _refused(path: Path, case: Case, found: Outcome) -> Outcome:
    """A finding, unless it is no bug and ONNX Runtime refuses the model, too: some graphs are not right.

    ONNX Runtime finds shapes that do not fit only when it runs.
    """
    if found.kind == "bug" and found.code == 1:
        return found
    STAGE.enter(PEER)
    with np.load(io.BytesIO(case.files[FED])) as held:
        inputs = [held[f"arr_{k}"] for k in range(len(held.files))]
    if found.code == 3 or not onnxruntime_takes(path) or _runtime(path, inputs) is None:
        return Outcome("refused", found.text, found.place, found.code)
    return Outcome("bug", f"a right graph is refused: {found.text}", found.place, found.code)


def _against_runtime(model: CompiledModel, path: Path, inputs: Sequence[Array], bounds: Sequence[Expected]) -> Outcome:
    STAGE.enter(PEER)
    results = None if _selects_nan(path, inputs) else _runtime(path, inputs)
    if results is None:
        return Outcome("skipped")
    expected = [Expected(np.asarray(r), 2 * b.allowed) for r, b in zip(results, bounds, strict=True)]
    for e, b in zip(expected, bounds, strict=True):
        if e.value.shape != b.value.shape:
            return Outcome("peer", f"ONNX Runtime: {e.value.shape}, not {b.value.shape}", "shape")
    found = compare(model, inputs, expected)
    if not found.finding or _evaluator_agrees(model, path, inputs, bounds):
        return Outcome("fine")
    return Outcome("peer", f"ONNX Runtime: {found.text}", found.place)


def _evaluator_agrees(model: CompiledModel, path: Path, inputs: Sequence[Array], bounds: Sequence[Expected]) -> bool:
    """True if ONNX's reference gives the same as the model: ONNX Runtime is wrong then.

    Its Scan gives memory that nobody wrote where the next state is the state itself, out of a branch of If.
    """
    made = onnx.ModelProto.FromString(path.read_bytes())
    fed = {i.name: x for i, x in zip(made.graph.input, inputs, strict=True)}
    try:
        results: list[Array] = ReferenceEvaluator(made).run(None, fed)  # type: ignore[reportUnknownMemberType]
    except Exception:  # it has no error classes
        return False
    expected = [Expected(np.asarray(r), 2 * b.allowed) for r, b in zip(results, bounds, strict=True)]
    if any(e.value.shape != b.value.shape for e, b in zip(expected, bounds, strict=True)):
        return False
    return not compare(model, inputs, expected).finding


def _selects_nan(path: Path, inputs: Sequence[Array]) -> bool:
    """True if ArgMax and its like may select NaN: what ONNX Runtime gives then depends on the place of NaN."""
    nodes = onnx.load(path).graph.node
    if not {"ArgMax", "ArgMin", "Hardmax"} & {n.op_type for n in nodes}:
        return False
    found = False

    def look(_: OutPort, value: Array) -> None:
        nonlocal found
        found = found or (value.dtype.kind == "f" and bool(np.isnan(value).any()))

    interpret(read(path), inputs, observe=look)
    return found


def _at_other_sizes(model: CompiledModel, path: Path, inputs: Sequence[Array]) -> Outcome:
    STAGE.enter("infer at other sizes")
    try:
        _ = model(list(inputs))
    except InternalError as error:
        return refusal(error)
    except AotError as error:
        STAGE.enter(PEER)
        if _runtime(path, inputs) is None:
            return Outcome("fine")
        found = refusal(error)
        return Outcome("bug", f"other sizes are refused: {found.text}", found.place, found.code)
    STAGE.enter(REFERENCE)
    try:
        bounds = expectations(read(path), inputs)
    except AotError:
        return lenient(path, inputs)
    found = compare(model, inputs, bounds)
    if found.finding:
        return Outcome(found.kind, f"other sizes: {found.text}", f"{found.place} at other sizes", found.code)
    return _against_runtime(model, path, inputs, bounds)


def _runtime(path: Path, inputs: Sequence[Array]) -> list[Array] | None:
    """Results, or None where ONNX Runtime cannot run the model."""
    try:
        return onnxruntime_results(path, inputs)
    except Exception:  # its exceptions have no base of their own
        return None


class OnnxGraphs:
    """Random graphs as ONNX."""

    name = "onnx-graphs"

    def draw(self, seed: int) -> Case:
        model, fed = random_model(seed)
        return Case({"model.onnx": model.SerializeToString(), FED: packed(fed)})

    def judge(self, case: Case) -> Outcome:
        return judge_onnx(case)

    def smallest(self, case: Case, holds: Callable[[Case], bool]) -> Case:
        """The fewest outputs, and then the fewest nodes: what others give becomes inputs."""
        model = onnx.ModelProto.FromString(case.files["model.onnx"])
        outputs = [o.name for o in model.graph.output]
        left = fewest(outputs, lambda kept: bool(kept) and holds(_part(case, kept, None)))
        case = _part(case, left, None)
        model = onnx.ModelProto.FromString(case.files["model.onnx"])
        nodes = fewest(range(len(model.graph.node)), lambda kept: holds(_part(case, left, kept)))
        return _part(case, left, nodes)


def _part(case: Case, outputs: Sequence[str], nodes: Sequence[int] | None) -> Case:
    """Return a case with these outputs and nodes (None: all); other values become inputs, static if sizes are known."""
    model = onnx.ModelProto.FromString(case.files["model.onnx"])
    graph = model.graph
    with np.load(io.BytesIO(case.files[FED])) as held:
        fed = {i.name: held[f"arr_{k}"] for k, i in enumerate(graph.input)}
    if nodes is not None:
        values = _all_values(model, list(fed.values()))
        kept = [graph.node[k] for k in nodes]
        lost = [o for k, n in enumerate(graph.node) if k not in set(nodes) for o in n.output if o in values]
        for name in lost:
            dtype = helper.np_dtype_to_tensor_dtype(values[name].dtype)
            graph.input.append(helper.make_tensor_value_info(name, dtype, values[name].shape))
            fed[name] = values[name]
        copies = [onnx.NodeProto.FromString(n.SerializeToString()) for n in kept]
        del graph.node[:]
        graph.node.extend(copies)
    infos = [o for o in graph.output if o.name in outputs]
    del graph.output[:]
    graph.output.extend(infos)
    _prune(model)
    names = [i.name for i in graph.input]
    return Case({"model.onnx": model.SerializeToString(), FED: packed([fed[n] for n in names])}, case.facts)


def _all_values(model: onnx.ModelProto, inputs: Sequence[Array]) -> dict[str, Array]:
    """All that nodes give."""
    made = onnx.ModelProto.FromString(model.SerializeToString())
    names = [o for n in made.graph.node for o in n.output if o]
    del made.graph.output[:]
    made.graph.output.extend(onnx.ValueInfoProto(name=n) for n in names)
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "all.onnx"
        path.write_bytes(made.SerializeToString())
        results = _runtime(path, inputs)
    if results is None:
        raise Refused("ONNX Runtime cannot run it")
    return dict(zip(names, results, strict=True))


def _prune(model: onnx.ModelProto) -> None:
    """Remove nodes, inputs and constants that no output needs."""
    graph = model.graph
    needed = {o.name for o in graph.output}
    for k, node in reversed(list(enumerate(graph.node))):
        if needed & set(node.output):
            needed |= set(_reads(node))
        else:
            del graph.node[k]
    for held in (graph.input, graph.initializer):
        for k, item in reversed(list(enumerate(held))):
            if item.name not in needed:
                del held[k]


def _reads(node: onnx.NodeProto) -> list[str]:
    inner = [n for a in node.attribute if a.type == onnx.AttributeProto.GRAPH for n in a.g.node]
    outer = [o.name for a in node.attribute if a.type == onnx.AttributeProto.GRAPH for o in a.g.output]
    return [*node.input, *outer, *(name for n in inner for name in _reads(n))]
