"""The change of layout, NHWC to NCHW, where Model Optimizer does it: after the middle phase.

Operations that are layout-agnostic by the compiler's own rules (`layout_agnostic.carrier`) get their tensors of four
dimensions or more with channels first, and their attributes follow. All others stay as they are, between Transposes,
and so do inputs, outputs, bodies, and the nodes that an extension has marked as in the right layout. An operation that
no set has gets its tensors with channels first, too; its attributes and inputs follow as its `PermuteAttrs` and
`PermuteInputs` say.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import numpy as np

from aot.ir.build import Builder
from aot.ir.graph import Graph, Node, OutPort
from aot.mo.bridge.carried import Carried
from aot.mo.bridge.extension import Extension
from aot.mo.bridge.windows import to_first, to_last
from aot.mo.ops.permutations import PermuteAttrs
from aot.mo.ops.permute_inputs import LEAST_RANK, PermuteInputs
from aot.opset.control.infrastructure import Constant
from aot.opset.movement.shape import ShapeOf
from aot.passes.middle.layout.layout_agnostic import carrier
from aot.passes.permutation import Order, compose, is_identity, order_of
from aot.runtime.abi import DType
from aot.runtime.errors import AotError

_MARKS = ("nchw_layout", "correct_in_data_layout", "correct_out_data_layout", "reinterp_shape")
_RULES = {rule: name for name, rule in PermuteInputs.input_permutes.items()}
_VARYING = ("Parameter", "ReadValue", "RandomUniform", "Multinomial")  # operations whose results are no constants


def change_layout(graph: Graph, marks: Carried) -> None:
    """Change the layout of a graph and of its bodies; `marks`: attributes of the nodes by their names."""
    _Change(graph, marks.nodes).run()
    for node in graph.nodes.values():
        for name, body in node.regions.items():
            change_layout(body, marks.bodies.get((node.name, name), Carried()))


class _Change:
    """The change of one graph. `views`: of a replaced tensor, the one with its elements, and its order."""

    def __init__(self, graph: Graph, attrs: Mapping[str, Mapping[str, Any]]) -> None:
        self.graph, self.attrs = graph, attrs
        self.views: dict[OutPort, tuple[OutPort, Order]] = {}
        self.made: dict[tuple[OutPort, Order], OutPort] = {}
        self.replaced: list[Node] = []
        self.varying: set[Node] = set()

    def run(self) -> None:
        """Visit the nodes in order, then remove those that are replaced."""
        for node in self.graph.order():
            if node.type.startswith(_VARYING) or any(s is not None and s.node in self.varying for s in node.sources()):
                self.varying.add(node)
            self._visit(node)
        for node in reversed(self.replaced):
            self._remove(node)

    def _visit(self, node: Node) -> None:
        """Take a Transpose as a view, rebuild another node if it varies, or let it read tensors in their old order."""
        order = order_of(node)
        if order is not None and len(order) >= LEAST_RANK and node.out_port(0).destinations:
            base, before = self._view(node.source(0))
            self.views[node.out_port(0)] = base, compose(before, order)
            self.replaced.append(node)
        elif node not in self.varying or self._is_marked(node) or not self._rebuild(node):
            for port in node.in_ports().values():
                if port.source in self.views:
                    port.connect(self._natural(port.source, node.type == "Result"))

    def _rebuild(self, node: Node) -> bool:
        """Rebuild an operation for the new layout; False for one that has none."""
        if isinstance(node.op, Extension):
            return self._follow(node, node.op)
        if isinstance(node.op, ShapeOf) and node.source(0) in self.views:
            return self._measure(node)
        return self._carry(node)

    def _is_marked(self, node: Node) -> bool:
        return any(self.attrs.get(node.name, {}).get(mark) for mark in _MARKS)

    def _view(self, port: OutPort | None) -> tuple[OutPort, Order]:
        assert port is not None, "an input of a Transpose is connected"
        return self.views.get(port) or (port, tuple(range(port.type.rank)))

    def _natural(self, port: OutPort, named: bool = False) -> OutPort:
        """Return a tensor in the order that it had; `named`: with its names, for a Result reads it."""
        base, order = self._view(port)
        result = self._at(base, order, port.node)
        if named and result is not base:
            result.add_tensor_names(base.names)
            base.names = ()
        return result

    def _first(self, port: OutPort | None) -> OutPort | None:
        """Return a tensor with its channels first; one with few dimensions as it is."""
        if port is None or port.type.rank < LEAST_RANK:
            return port if port is None else self._natural(port)
        base, order = self._view(port)
        return self._at(base, compose(order, to_first(port.type.rank - 2)), port.node)

    def _at(self, base: OutPort, order: Order, node: Node) -> OutPort:
        """Return a tensor in an order, by a Transpose that is made once; `node` says where it comes from."""
        if is_identity(order):
            return base
        port = self.made.get((base, order))
        if port is None:
            data = base.node.data
            if isinstance(base.node.op, Constant) and data is not None:
                turned = np.ascontiguousarray(data.transpose(order))
                port = self.graph.add(base.node.op, name=base.node.name, origin=node.origin, data=turned).out_port(0)
            else:
                build = Builder(self.graph, node.origin)
                name = f"{base.node.name}/Transpose"
                port = build.Transpose(base, build.const(order, DType.I64, f"{name}/order"), name=name)
            self.made[base, order] = port
        return port

    def _carry(self, node: Node) -> bool:
        """Rebuild a layout-agnostic operation with channels first; False for another one."""
        try:
            ranks = {port.type.rank for port in node.out_ports().values()}
            carries = carrier(node) if len(ranks) == 1 and min(ranks) >= LEAST_RANK else None
            if carries is None:
                return False
            inputs = [node.source(i) for i in carries.inputs]
        except AotError:  # its types depend on what an extension has still to replace
            return False
        if any(s.type.rank not in ranks for s in inputs):
            return False
        given = [
            self._first(s) if i in carries.inputs else s if s not in self.views else self._natural(s)
            for i, s in enumerate(node.sources())
        ]
        new_node = carries.rebuild(node, to_first(ranks.pop() - 2), given, Builder(self.graph, node.origin))
        new_node.rt_info = node.rt_info
        self._replace(node, new_node)
        return True

    def _replace(self, node: Node, new_node: Node) -> None:
        """Note that a node with channels first stands for another one and gets its name."""
        for old, new in zip(node.out_ports().values(), new_node.out_ports().values(), strict=True):
            rank = old.type.rank
            self.views[old] = new, to_last(rank - 2) if rank >= LEAST_RANK else tuple(range(rank))
            new.names = old.names
        node.name, new_node.name = new_node.name, node.name
        self.replaced.append(node)

    def _measure(self, node: Node) -> bool:
        """Let ShapeOf read the tensor that there is, and put its sizes into the order that they had."""
        base, order = self._view(node.source(0))
        build = Builder(self.graph, node.origin)
        new_node = build.node(node.op, base)
        sizes = build.Gather(new_node.out_port(0), build.const(order, DType.I64), build.const(0, DType.I64))
        self.views[node.out_port(0)] = sizes, (0,)
        new_node.name, node.name = node.name, new_node.name
        self.replaced.append(node)
        return True

    def _follow(self, node: Node, op: Extension) -> bool:
        """Give an operation that no set has its tensors with channels first; False if its `infer` marks it."""
        known = op.shown(*(None if s is None else s.node.operands()[s.idx] for s in node.sources()))
        if any(known.has_and_set(mark) for mark in _MARKS):
            return False
        for data in (*known.in_nodes().values(), *known.out_nodes().values()):
            shape = data.soft_get("shape", None)
            if shape is not None and len(shape) >= LEAST_RANK and not data.has_and_set("nchw_layout"):
                data["permutation"] = PermuteAttrs.get_nhwc_to_nchw_permutation(len(shape))
        if known.has_valid("permute_attrs"):
            known.permute_attrs.permute_attrs(known)
        sources: list[OutPort | None] = [self._first(source) for source in node.sources()]
        for idx, edge in known.in_edges().items():
            sources[int(idx)] = self._input(sources[int(idx)], known, edge.get("input_permutation"))
        attrs = {key: value for key, value in known.attrs().items() if key not in ("_in_ports", "_out_ports")}
        new_node = self.graph.add(
            replace(op, attrs=attrs, layout="NCHW"),
            *sources,
            name=node.name,
            origin=node.origin,
            outputs=len(node.out_ports()),
        )
        self._replace(node, new_node)
        return True

    def _input(self, source: OutPort | None, known: Any, permutation: Any) -> OutPort | None:
        """Return an input that names axes or sizes of another tensor, for the new order of that tensor."""
        if permutation is None or source is None:
            return source
        rule, port, check = _RULES[permutation[0]], permutation[1], permutation[2]
        side, _, number = port.partition(":")
        data = known.in_node(int(number)) if side == "input" else known.out_node(int(number))
        checked = known.in_port(int(number)) if side == "input" else known.out_port(int(number))
        if not data.has_valid("permutation") or not check(checked):
            return source
        perm, inv = (np.asarray(order) for order in data.permutation)
        count = source.shape[0] if rule == "slice" else None  # a slice may have fewer bounds than there are dimensions
        if isinstance(count, int):
            perm = PermuteAttrs.get_nhwc_to_nchw_permutation(count).perm
        build, result = Builder(self.graph, source.node.origin), source
        if rule in ("shape", "slice", "order"):
            result = build.Gather(result, build.const(perm, DType.I64), build.const(0, DType.I64))
        if rule in ("axis", "order"):
            result = build.Gather(build.const(inv, source.type.dtype), result, build.const(0, DType.I64))
        return result  # else a tensor, which has its channels first already

    def _remove(self, node: Node) -> None:
        """Remove a node that is replaced; the layer's name goes from a Transpose to the operation before it."""
        if any(port.destinations for port in node.out_ports().values()):
            return
        source = node.source(0) if order_of(node) is not None else None
        name, layers = node.name, node.origin.layers
        names = node.out_port(0).names
        self.graph.remove(node)
        if source is not None and source.node not in self.replaced and source.node.origin.layers == layers:
            source.node.name = name
            source.add_tensor_names(names)
