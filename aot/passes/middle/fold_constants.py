"""Constant folding: nodes with outputs known at compile time become constants."""

from __future__ import annotations

from collections.abc import Callable
from math import prod

import numpy as np

from aot.codegen.dataclass import dataclass
from aot.ir.conditions import axis_of
from aot.ir.graph import Graph, Node, OutPort
from aot.ir.inference import UNDEFINED_RESULTS
from aot.ir.operand import Operand
from aot.ir.types import Array, TensorType, numpy_dtype
from aot.ir.values.deferred import Deferred, is_worth_deferring
from aot.ir.values.estimate import is_quick
from aot.opset.control.demands import InRange
from aot.opset.control.infrastructure import Constant
from aot.opset.deferred_parts import part_of
from aot.opset.elementwise.binary import Multiply, Subtract
from aot.opset.elementwise.conversion import Convert
from aot.opset.movement.movement import Split, Transpose, VariadicSplit
from aot.opset.movement.shape import Reshape
from aot.passes.rewrite import sweep
from aot.runtime.errors import AotError, InternalError

KEEPS_SMALL = (Convert, Subtract, Multiply, Reshape, Transpose)  # operations that decompress weights, or move them
GROWTH_LIMIT = 1 << 20  # bytes up to which a folded value may have more elements than its inputs


@dataclass(frozen=True, slots=True)
class FoldConstants:
    """Pass that evaluates nodes with constant inputs.

    A result with more elements than its inputs together, as of Broadcast and Tile, is folded only up to `limit` bytes:
    beyond, computing it at run time is cheaper than storing it. State, randomness and sub-graphs are never folded.
    `only`: a predicate for the nodes that are evaluated.
    """

    name: str = "fold_constants"
    limit: int = GROWTH_LIMIT
    only: Callable[[Node], bool] | None = None

    def __call__(self, graph: Graph) -> bool:
        changed = False
        for node in graph.order():
            if graph.nodes.get(node.id) is node and self._foldable(node):
                changed = self._fold(graph, node) or changed
        return changed

    def _foldable(self, node: Node) -> bool:
        if node.constant_data is not None or node.regions or not node.op.pure or node.type in ("Parameter", "Result"):
            return False
        if self.only is not None and not self.only(node):
            return False
        if isinstance(node.op, InRange) and _is_open(node):
            return False
        return any(p.destinations for p in node.out_ports().values())

    def _fold(self, graph: Graph, node: Node) -> bool:
        known = _known_outputs(node) or self._evaluated(node)
        if known is None:
            return False
        for port, value in zip(node.out_ports().values(), known, strict=True):
            if port.destinations:
                port.replace_by(_constant(graph, node, port, value))
        sweep(graph, [node])
        return True

    def _evaluated(self, node: Node) -> list[Array | Deferred] | None:
        """Return the values of the outputs, if every input is a constant and the budget allows."""
        sources = [s for s in node.sources() if s is not None]
        if not sources or any(s.node.constant_data is None for s in sources):
            return None
        if not self._within_budget([p.type for p in node.out_ports().values()], [s.type for s in sources]):
            return None
        if (later := _deferred(node) or _parts(node)) is not None:
            return list(later)
        inputs = [None if s is None else Operand(s.type, s.value, s) for s in node.sources()]
        try:
            with np.errstate(all="ignore"):
                quick = is_quick(node.op, inputs, [p.type for p in node.out_ports().values()])
                folded = node.op.fold(*inputs) if quick else None
        except AotError:
            raise
        except UNDEFINED_RESULTS:
            return None
        except Exception as error:
            raise InternalError(f"{node.type}: its reference fails: {type(error).__name__}: {error}") from error
        return None if folded is None else list(folded)

    def _within_budget(self, outputs: list[TensorType], inputs: list[TensorType]) -> bool:
        if not all(t.is_static for t in outputs):
            return False
        size = sum(_elements(t) * numpy_dtype(t.dtype).itemsize for t in outputs)
        return size <= self.limit or sum(map(_elements, outputs)) <= sum(map(_elements, inputs))


def _is_open(node: Node) -> bool:
    """True for a node with a rule that run time decides: a check of known data against sizes that vary."""
    operands = [s.node.operands()[s.idx] for s in node.sources() if s is not None]
    return any(not isinstance(n, int) for a, b, _ in node.op.conditions(*operands) for n in (a, b))


def _deferred(node: Node) -> list[Deferred] | None:
    """Return the deferred value of a node with constant inputs; None if it is computed at once."""
    if not isinstance(node.op, KEEPS_SMALL):
        return None
    pairs = [(s.node.constant_data, s.type) for s in node.sources() if s is not None]
    inputs, types = tuple(h for h, _ in pairs if h is not None), tuple(t for _, t in pairs)
    out = node.out_port(0).type
    is_worthwhile = len(inputs) == len(node.in_ports()) and is_worth_deferring(inputs, types, out)
    return [Deferred(node.op, inputs, types, out)] if is_worthwhile else None


def _parts(node: Node) -> list[Deferred] | None:
    """Return the outputs of a node that cuts a deferred constant into parts, if these are to be made later, too."""
    constant = node.source(0).node.constant_data if isinstance(node.op, Split | VariadicSplit) else None
    axis = node.source(1).value if isinstance(constant, Deferred) else None
    if not isinstance(constant, Deferred) or axis is None:
        return None
    k, begin = axis_of(int(axis.reshape(-1)[0]), len(constant.shape), node.type), 0
    parts = list[Deferred]()
    for port in node.out_ports().values():
        end = begin + port.type.static_shape[k]
        part = part_of(constant, k, begin, end)
        if not isinstance(part, Deferred):
            return None
        parts.append(part)
        begin = end
    return parts


def _elements(type: TensorType) -> int:
    return prod(type.static_shape)


def _known_outputs(node: Node) -> list[Array | Deferred] | None:
    """Return outputs that inference knows, for instance from ShapeOf; None if any has a symbolic dimension."""
    values = [o.value for o in node.operands()]
    outputs: list[Array | Deferred] = [v for v in values if v is not None and not _symbolic(v)]
    return outputs if len(outputs) == len(values) else None


def _symbolic(value: Array) -> bool:
    return value.dtype == object and not all(isinstance(d, int) for d in value.reshape(-1))


def _constant(graph: Graph, node: Node, port: OutPort, value: Array | Deferred) -> OutPort:
    name = node.name if len(node.out_ports()) == 1 else f"{node.name}.{port.idx}"
    dtype = port.type.dtype
    if isinstance(value, Deferred):
        return graph.add(Constant(dtype), name=name, origin=node.origin, data=value).out_port(0)
    data = np.ascontiguousarray(value, numpy_dtype(dtype)).reshape(value.shape)
    if value.dtype not in (data.dtype, np.dtype(object)):
        raise InternalError(f"{node.type}: its reference gives {value.dtype}, inference says {dtype.value}")
    return graph.add(Constant(dtype), name=name, origin=node.origin, data=data).out_port(0)


fold_constants = FoldConstants()
