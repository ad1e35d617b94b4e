"""The dialect of TensorFlow: a node's conversion, its view of the node, and the node's name in errors."""

from __future__ import annotations

from typing import Any

from aot.frontends.conversion.dialect import Dialect, Facts
from aot.frontends.tf.math.complex_numbers import refuse_complex
from aot.frontends.tf.registry import CONVERSIONS, TfNode
from aot.frontends.unsupported import Problem, unconverted
from aot.ir.graph import Graph
from aot.opset.control.infrastructure import Parameter


class _TensorFlow(Dialect):
    """Nodes may have complex inputs, which few conversions take."""

    def context(self, attrs: Facts, *parts: Any) -> TfNode:
        context = TfNode(*parts)
        refuse_complex(context, self.conversion(context.kind, attrs))
        return context

    def check(self, graph: Graph) -> None:
        inputs = [n for n in graph.parameters if n.out_port(0).destinations]
        unknown = [n.name for n in inputs if isinstance(n.op, Parameter) and n.op.shape is None]
        if unknown:
            reason = f"its rank is not known: give the shape of the input, as --shape {unknown[0]}=1,224,224,3"
            problems = [Problem(name, "Placeholder", "", 0, reason) for name in unknown]
            raise unconverted(graph.file or graph.name, problems)


TENSORFLOW = _TensorFlow("tf", "TensorFlow", CONVERSIONS, TfNode)
