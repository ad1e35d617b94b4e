"""Logits of the last token only: the product that makes them reads one row of each sequence.

    logits = MatMul(x, head)     --last-logits     ->     logits = MatMul(Gather(x, [-1], axis -2), head)

A prompt's other logits, which the choice of the next token does not need, take a fifth of its time in small networks,
and more memory than all else.
"""

from __future__ import annotations

from aot.codegen.dataclass import dataclass
from aot.ir.build import Builder
from aot.ir.graph import Graph, Node
from aot.ir.op import Stateful
from aot.opset.products.matmul import MatMul
from aot.runtime.abi import DType
from aot.runtime.errors import UsageError

LOGITS = "logits"
# Operations after the logits: precision, scales, biases and soft caps
EPILOGUE = ("Convert", "Multiply", "Divide", "Add", "Tanh")


@dataclass(frozen=True, slots=True)
class LastLogits:
    """Pass for `--last-logits`: changes the product before the output `logits`, or before the only output.

    UsageError for other networks.
    """

    name: str = "last_logits"
    required: bool = True
    run_not_recursively: bool = True  # the model's own outputs only

    def __call__(self, graph: Graph) -> bool:
        results = graph.results
        node = next((r for r in results if LOGITS in (r.name, *r.out_port(0).names)), None)
        node = results[0] if node is None and len(results) == 1 else node
        product = None if node is None else _product(node)
        if product is None or not any(isinstance(n.op, Stateful) for n in graph.nodes.values()):
            rule = f"the model must be a language model with state, whose output {LOGITS!r} is a product"
            raise UsageError(f"--last-logits: {rule}, got outputs {', '.join(r.name for r in results)}")
        build = Builder(graph, product.origin)
        last, axis = build.const([-1], DType.I64), build.const(-2, DType.I64)
        product.in_port(0).connect(build.Gather(product.source(0), last, axis))
        return True


def _product(node: Node) -> Node | None:
    """Return the product that computes the rows of a node's value; None without one."""
    while True:
        varying = [idx for idx in range(len(node.in_ports())) if node.input(idx).value is None]
        if len(varying) != 1:
            return None
        node = node.source(varying[0]).node
        if isinstance(node.op, MatMul):
            return None if node.op.transpose_a else node
        if node.type not in EPILOGUE:
            return None
