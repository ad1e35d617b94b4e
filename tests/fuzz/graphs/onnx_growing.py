"""An ONNX graph in the making, with a value for each name, which ONNX's reference evaluator gives."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import onnx
from onnx import helper, numpy_helper
from onnx.reference import ReferenceEvaluator

from aot.ir.types import Array
from tests.fuzz.graphs.growing import LARGE, MAX_ELEMENTS, Refused
from tests.properties.drawing import Draw

OPSETS = (18, 20, 21)


@dataclass
class Names:
    """Numbers for new names: bodies share them with what is around."""

    count: int = 0

    def new(self, base: str) -> str:
        self.count += 1
        return f"{base.lower()}{self.count}"


@dataclass
class OnnxGrowing:
    """`values`: of all names that nodes may read; those of `outer` are made outside of this body."""

    d: Draw
    opset: int = 18
    varying: bool = False
    values: dict[str, Array] = field(default_factory=dict[str, Array])
    nodes: list[onnx.NodeProto] = field(default_factory=list[onnx.NodeProto])
    constants: list[onnx.TensorProto] = field(default_factory=list[onnx.TensorProto])
    inputs: list[onnx.ValueInfoProto] = field(default_factory=list[onnx.ValueInfoProto])
    fed: list[Array] = field(default_factory=list[Array])
    outer: frozenset[str] = frozenset()
    names: Names = field(default_factory=Names)
    depth: int = 0
    symbols: dict[str, int] = field(default_factory=dict[str, int])

    def parameter(self, array: Array) -> str:
        name = self.names.new("x")
        shape = [self._size(f"{name}_{k}", n) for k, n in enumerate(array.shape)]
        self.inputs.append(helper.make_tensor_value_info(name, helper.np_dtype_to_tensor_dtype(array.dtype), shape))
        self.fed.append(array)
        self.values[name] = array
        return name

    def _size(self, own: str, size: int) -> int | str:
        """The size, or a name for it: one of its own, or one that other dimensions of this size have."""
        if not self.varying or self.d.flag():
            return size
        name = self.d.pick(["n", "m", own])
        return name if self.symbols.setdefault(name, size) == size else own

    def constant(self, array: Array) -> str:
        name = self.names.new("c")
        self.constants.append(numpy_helper.from_array(np.ascontiguousarray(array), name))
        self.values[name] = array
        return name

    def ints(self, *values: int) -> str:
        return self.constant(np.array(values, np.int64))

    def node(self, kind: str, *inputs: str, outputs: int = 1, **attributes: Any) -> list[str]:
        """The outputs' names of a new node; Refused if the reference does not take the inputs."""
        made = [self.names.new(kind) for _ in range(outputs)]
        node = helper.make_node(kind, inputs, made, **attributes)
        results = self._evaluated(node)
        if any(not isinstance(r, np.ndarray | np.generic) or r.size > MAX_ELEMENTS for r in results):
            raise Refused("too large")
        self.nodes.append(node)
        self.values |= {n: np.asarray(r) for n, r in zip(made, results, strict=True)}
        return made

    def one(self, kind: str, *inputs: str, **attributes: Any) -> str:
        return self.node(kind, *inputs, **attributes)[0]

    def _evaluated(self, node: onnx.NodeProto) -> list[Any]:
        """Results of one node; names that its bodies read are given to it, too."""
        read = [n for n in dict.fromkeys([*node.input, *_captured(node)]) if n in self.values]
        infos = [
            helper.make_tensor_value_info(n, helper.np_dtype_to_tensor_dtype(self.values[n].dtype), None) for n in read
        ]
        graph = helper.make_graph([node], "one", infos, [onnx.ValueInfoProto(name=n) for n in node.output])
        model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", self.opset)])
        try:
            with np.errstate(all="ignore"):
                return ReferenceEvaluator(model).run(None, {n: self.values[n] for n in read})
        except Exception as error:  # the reference evaluator has no exceptions of its own
            raise Refused(str(error)) from error

    def pick(self, ok: Callable[[Array], bool] = lambda _: True) -> str:
        """A name for whose value `ok` is True, later ones more often; Refused if there is none."""
        constants = {c.name for c in self.constants}
        found = [n for n, v in self.values.items() if n not in constants and ok(v)]
        if not found:
            raise Refused("no value fits")
        return found[-1 - min(self.d.integer(0, len(found) - 1), self.d.integer(0, len(found) - 1))]

    def tame(self, name: str) -> str:
        """Clipped if it is large."""
        value = self.values[name]
        if value.dtype.kind == "f" and value.size:
            with np.errstate(all="ignore"):
                if not np.abs(value.astype(np.float64)).max() <= LARGE:
                    ends = [self.constant(np.array(x, value.dtype)) for x in (-8, 8)]
                    return self.one("Clip", name, *ends)
        return name

    def noise(self, *shape: int, dtype: Any = np.float32) -> str:
        depth = max(1, int(np.prod(shape[1:]))) ** 0.5
        return self.constant((self.d.generator().standard_normal(shape) / depth).astype(dtype))

    def inside(self) -> OnnxGrowing:
        """A body, which may read all that is here."""
        return OnnxGrowing(
            self.d,
            self.opset,
            self.varying,
            dict(self.values),
            outer=frozenset(self.values),
            names=self.names,
            depth=self.depth + 1,
        )

    def graph(self, outputs: list[str], name: str = "body") -> onnx.GraphProto:
        """Outputs that are not made here are passed through an Identity: a graph's outputs are its own."""
        made = {o for n in self.nodes for o in n.output}
        own = [o if o in made else self.one("Identity", o) for o in outputs]
        infos = [
            helper.make_tensor_value_info(o, helper.np_dtype_to_tensor_dtype(self.values[o].dtype), None) for o in own
        ]
        return helper.make_graph(self.nodes, name, self.inputs, infos, self.constants)

    def model(self, outputs: list[str]) -> onnx.ModelProto:
        opsets = [helper.make_opsetid("", self.opset)]
        return helper.make_model(self.graph(outputs, "random"), opset_imports=opsets, ir_version=9)


Step = Callable[[OnnxGrowing], object]


def _captured(node: onnx.NodeProto) -> list[str]:
    """Names that the bodies of a node read."""
    bodies = [a.g for a in node.attribute if a.type == onnx.AttributeProto.GRAPH]
    inner = [n for b in bodies for n in b.node]
    return [name for n in inner for name in (*n.input, *_captured(n))]


def grow(g: OnnxGrowing, steps: int, kinds: tuple[Step, ...]) -> None:
    """So many steps; those that do not fit are drawn again, a few times."""
    tries = 6 * steps
    while steps and tries:
        tries -= 1
        try:
            g.d.pick(kinds)(g)
            steps -= 1
        except Refused:
            continue
