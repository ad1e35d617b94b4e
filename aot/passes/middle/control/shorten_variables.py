"""Variables that grow in place, as keys and values of a language model, in bf16 where their layers compute in bf16.

    v = Append("v")(x, ..)     --precision bf16     ->     v = Convert(f32)(Append("v")(Convert(bf16)(x), ..))

They take half the memory, and a token reads half as much of them. All variables share memory, so all have one type.
"""

from __future__ import annotations

from dataclasses import replace

from aot.codegen.dataclass import dataclass
from aot.ir.build import Builder
from aot.ir.graph import Graph
from aot.opset.control.growing_variables import Append, CacheSizes
from aot.opset.control.state import AssignCarried
from aot.precision import BF16, Precision
from aot.runtime.abi import DType


@dataclass(frozen=True, slots=True)
class ShortenVariables:
    """Pass for `--precision bf16`; after `append_variables`."""

    precision: Precision
    name: str = "shorten_variables"
    required: bool = True
    run_not_recursively: bool = True  # variables that grow in place are the model's own

    def __call__(self, graph: Graph) -> bool:
        appends = [n for n in graph.order() if isinstance(n.op, Append)]
        types = {n.out_port(0).type.dtype for n in appends}
        if types != {DType.F32} or any(self.precision.of(n.origin.layers) != BF16 for n in appends):
            return False
        for node in appends:
            build = Builder(graph, node.origin)
            node.in_port(0).connect(build.Convert(node.source(0), destination_type=DType.BF16))
            consumers = node.out_port(0).get_destinations()
            whole = build.Convert(node.out_port(0), destination_type=DType.F32)
            for port in consumers:
                op = port.node.op
                if isinstance(op, AssignCarried):
                    port.node.op = replace(op, element_type=DType.BF16)
                else:
                    port.connect(whole)
        for node in [n for n in graph.nodes.values() if isinstance(n.op, CacheSizes)]:
            assert isinstance(node.op, CacheSizes)
            node.op = replace(node.op, element_type=DType.BF16)
        return True
