"""Cases of ONNX's operations: what they are made of, and what the oracle gives for them.

    CASES = [case("Celu", f32(2, 3), alpha=0.5), case("com.microsoft.BiasGelu", f32(2, 8), known(f32(8))), ...]

Arrays are inputs of the network, `known(..)` are initializers, None is an input that is left out. All cases of a family
and an opset are one model, and ONNX Runtime gives the expected values; where it has no kernel, onnx's evaluator does.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cache
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import onnxruntime
from onnx import compose, helper, numpy_helper
from onnx.reference import ReferenceEvaluator

from tests.frontends.onnx.models import Array

OPSETS = {"": 26, "ai.onnx.ml": 5, "com.microsoft": 1, "ai.onnx.preview.training": 1}
FAMILIES = sorted(p.stem for p in (Path(__file__).parent / "op_cases").glob("[a-z]*.py"))
BOUNDS = {"float16": 2e-3, "bfloat16": 1.6e-2, "float32": 1e-5, "float64": 1e-11}  # relative; tenths absolute
SHOWN = 24  # elements in a text about a difference
MAX_APART = 0.02  # of the elements of a quantised tensor, as a share


@dataclass(frozen=True)
class Known:
    """An initializer."""

    value: Array


def known(value: Any, dtype: Any = None) -> Known:
    return Known(np.asarray(value, dtype))


@dataclass(frozen=True)
class Row:
    """An input of which some axes, the last one unless it says others, always have their size."""

    value: Array
    axes: tuple[int, ...] = (-1,)


def row(value: Array, *axes: int) -> Row:
    return Row(value, axes or (-1,))


@dataclass(frozen=True)
class Case:
    """An operation, `Kind` or `DOMAIN.Kind`, with its inputs and attributes."""

    op: str
    inputs: tuple[Any, ...]
    attrs: dict[str, Any] = field(default_factory=dict[str, Any])
    version: int = 0  # of the operation set of its domain; 0: the one in `OPSETS`
    outputs: int | tuple[int, ...] = 1  # how many, or the places of those that are read
    tolerance: float = 0.0  # of floats, relative; tenths absolute
    levels: int = 0  # by which few integers may differ, where ONNX Runtime rounds a quantised number otherwise
    open: bool = True  # True if a second case leaves all sizes open
    by_evaluator: bool = False  # ONNX Runtime has no kernel, or a wrong one
    nodes: Sequence[onnx.NodeProto] = ()  # of a case of several nodes, which read x0, x1, .. and give y0, y1, ..

    @property
    def domain(self) -> str:
        return self.op.rpartition(".")[0]

    @property
    def places(self) -> tuple[int, ...]:
        return self.outputs if isinstance(self.outputs, tuple) else tuple(range(self.outputs))


_OWN = ("version", "outputs", "tolerance", "levels", "open", "by_evaluator", "nodes")


def case(op: str, *inputs: Any, **attrs: Any) -> Case:
    """Return a case; keywords that are no fields of it are attributes of the operation."""
    own = {name: attrs.pop(name) for name in _OWN if name in attrs}
    return Case(op, inputs, attrs, **own)


Group = tuple[tuple[int, Case], ...]


def _graph(one: Case, prefix: str, opens: bool) -> onnx.GraphProto:
    """Return a graph of one case; names begin with `prefix`."""
    inputs, held, names = [], [], []
    for i, given in enumerate(one.inputs):
        names.append("" if given is None else f"x{i}")
        if isinstance(given, Known):
            held.append(numpy_helper.from_array(given.value, f"x{i}"))
        elif given is not None:
            value, fixed = (given.value, given.axes) if isinstance(given, Row) else (np.asarray(given), ())
            own = {a % value.ndim for a in fixed} if opens else range(value.ndim)
            shape = [n if a in own else f"{prefix}x{i}_{a}" for a, n in enumerate(value.shape)]
            inputs.append(helper.make_tensor_value_info(f"x{i}", helper.np_dtype_to_tensor_dtype(value.dtype), shape))
    kind = one.op.rpartition(".")[2]
    made = [f"y{i}" if i in one.places else "" for i in range(max(one.places) + 1)]
    nodes = one.nodes or [helper.make_node(kind, names, made, kind, domain=one.domain, **one.attrs)]
    results = [onnx.ValueInfoProto(name=f"y{i}") for i in one.places]
    graph = helper.make_graph(nodes, "case", inputs, results, held)
    return compose.add_prefix_graph(graph, prefix)


def model_of(group: Group, opens: bool = False) -> onnx.ModelProto:
    """Return one model of cases of one opset; the number of a case is in the names of its tensors."""
    whole = onnx.GraphProto(name="cases")
    for number, one in group:
        graph = _graph(one, f"c{number}_", opens)
        for part in ("node", "input", "output", "initializer"):
            getattr(whole, part).extend(getattr(graph, part))
    own = {one.domain: one.version for _, one in group if one.version}
    sets = [helper.make_opsetid(domain, version) for domain, version in (OPSETS | own).items()]
    return helper.make_model(whole, opset_imports=sets, ir_version=11)


def feeds(group: Group) -> dict[str, Array]:
    """Return the inputs of cases by name."""
    return {
        f"c{number}_x{i}": given.value if isinstance(given, Row) else np.asarray(given)
        for number, one in group
        for i, given in enumerate(one.inputs)
        if given is not None and not isinstance(given, Known)
    }


@cache
def groups(family: str) -> tuple[Group, ...]:
    """Return the cases of a family, with their numbers, by opset."""
    found: dict[tuple[str, int], list[tuple[int, Case]]] = {}
    for number, one in enumerate(import_module(f"tests.frontends.onnx.op_cases.{family}").CASES):
        found.setdefault((one.domain if one.version else "", one.version), []).append((number, one))
    return tuple(map(tuple, found.values()))


@cache
def expected(family: str) -> dict[str, Array]:
    """Return the values of the outputs of all cases of a family."""
    found: dict[str, Array] = {}
    for group in groups(family):
        for one in (entry for entry in group if entry[1].by_evaluator):
            evaluator = ReferenceEvaluator(model_of((one,)))
            found |= dict(zip(evaluator.output_names, evaluator.run(None, feeds((one,))), strict=True))
        if run := tuple(entry for entry in group if not entry[1].by_evaluator):
            found |= _by_onnx_runtime(run)
    return found


def _by_onnx_runtime(group: Group) -> dict[str, Array]:
    """Return the values of the outputs of cases; no node is optimised."""
    options = onnxruntime.SessionOptions()
    options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL
    options.intra_op_num_threads = 1
    options.log_severity_level = 3
    model = model_of(group).SerializeToString()
    session = onnxruntime.InferenceSession(model, options, providers=["CPUExecutionProvider"])
    return dict(zip([o.name for o in session.get_outputs()], session.run(None, feeds(group)), strict=True))


def problems(family: str, group: Group, found: dict[str, Array]) -> list[str]:
    """Return texts about the outputs of cases that differ from those of the oracle."""
    given = expected(family)
    return [
        f"{one.op} ({family} {number}), output {i}: {text}"
        for number, one in group
        for i in one.places
        if (text := _difference(found[f"c{number}_y{i}"], given[f"c{number}_y{i}"], one))
    ]


def _difference(found: Array, wanted: Array, one: Case) -> str:
    """Return a text about the difference of two arrays; empty if there is none above the bound."""
    if found.dtype.kind == "u" and wanted.dtype.kind not in "biu" and found.dtype.itemsize == wanted.dtype.itemsize:
        found = found.view(wanted.dtype)  # compiled networks give the bits of types that NumPy lacks
    if (found.dtype, found.shape) != (wanted.dtype, wanted.shape):
        return f"{found.dtype}{found.shape} instead of {wanted.dtype}{wanted.shape}"
    if str(wanted.dtype) not in BOUNDS and wanted.dtype.kind in "biu":
        apart = np.abs(found.astype(np.int64) - wanted.astype(np.int64))
        is_close = apart.max(initial=0) <= one.levels and apart.sum() <= MAX_APART * apart.size
    elif str(wanted.dtype) in BOUNDS:
        bound = one.tolerance or BOUNDS[str(wanted.dtype)]
        wide = (a.astype(np.float64) for a in (found, wanted))
        is_close = np.allclose(*wide, rtol=bound, atol=bound / 10, equal_nan=True)
    else:
        is_close = found.tolist() == wanted.tolist()
    return "" if is_close else f"{found.reshape(-1)[:SHOWN].tolist()} instead of {wanted.reshape(-1)[:SHOWN].tolist()}"
