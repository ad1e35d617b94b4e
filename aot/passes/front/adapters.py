"""Low-rank adapters (LoRA) that a caller chooses: `--lora-rank N` adds them to the matrices of a language model.

    y = x W^T     ->     y = x W^T + (x A^T) B     A: lora_a[rank, columns of W]     B: lora_b[rank, rows of W]

The two inputs hold the matrices of all layers side by side. Their rank varies from 0, which changes nothing, to N.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from aot.codegen.dataclass import dataclass
from aot.codegen.ir.loops import Var
from aot.ir.build import Builder
from aot.ir.graph import Graph, Node, OutPort
from aot.opset.control.infrastructure import Parameter
from aot.opset.products.matmul import MatMul
from aot.runtime.abi import DType
from aot.runtime.errors import UsageError
from aot.runtime.generation.interface import LORA_A, LORA_B
from aot.text.library_texts import ADAPTER

NAME = re.compile(r"(blk\.\d+\.(?:attn_(?:q|k|v|qkv|output)|ffn_(?:gate|up|down)))\.weight")
DECOMPRESSION = ("Convert", "Subtract", "Multiply", "Reshape")  # operations that decompress small weights


@dataclass(frozen=True, slots=True)
class Product:
    """A product with a matrix that can be adapted; `heads`: the parts that its rows are split into, 1 for none."""

    name: str
    columns: int
    rows: int
    heads: int


@dataclass(frozen=True, slots=True)
class Adapters:
    """Pass for `--lora-rank`; the products go to the graph's information.

    UsageError for networks without matrices of a language model's layers.
    """

    rank: int
    name: str = "adapters"
    required: bool = True
    run_not_recursively: bool = True  # the layers of language models are in no body

    def __call__(self, graph: Graph) -> bool:
        products = list(_products(graph))
        if not products:
            raise UsageError(
                "--lora-rank: the model must be a language model of GGUF or of a folder, got another network"
            )
        rank = Var("lora_rank", self.rank + 1, 0, self.rank)
        a = _input(graph, LORA_A, (rank, sum(p.columns for _, p in products)))
        b = _input(graph, LORA_B, (rank, sum(p.rows for _, p in products)))
        column = row = 0
        for node, p in products:
            build = Builder(graph, node.origin)
            users = node.out_port(0).get_destinations()
            low = build.MatMul(node.source(0), _columns(build, a, column, p.columns), transpose_b=True)
            adapted = build.Add(node.out_port(0), build.MatMul(low, _columns(build, b, row, p.rows)))
            for user in users:
                user.connect(adapted)
            column, row = column + p.columns, row + p.rows
        graph.rt_info[ADAPTER] = [[p.name, p.columns, p.rows, p.heads] for _, p in products]
        return True


def _input(graph: Graph, name: str, shape: tuple[Var, int]) -> OutPort:
    port = graph.add(Parameter(element_type=DType.F32, shape=shape), name=name).out_port(0)
    port.names = (name,)
    return port


def _columns(build: Builder, matrices: OutPort, begin: int, count: int) -> OutPort:
    return build.Slice(matrices, *(build.const([n], DType.I64) for n in (begin, begin + count, 1, 1)))


def _products(graph: Graph) -> Iterator[tuple[Node, Product]]:
    """Yield the products with the matrices of layers, in the order of the graph."""
    for node in graph.order():
        if not isinstance(node.op, MatMul) or not node.op.transpose_b:
            continue
        name = NAME.fullmatch(_constant(node.source(1).node).name)
        rows, columns = node.input(1).shape[-2:]
        if name is not None and isinstance(rows, int) and isinstance(columns, int):
            yield node, Product(name[1], columns, rows, _heads(node.out_port(0)))


def _constant(node: Node) -> Node:
    """Return the node that holds a matrix's numbers, before any decompression."""
    while node.type in DECOMPRESSION:
        node = node.source(0).node
    return node


def _heads(port: OutPort) -> int:
    """Return the number of heads that the rows of a product become, 1 for rows that are not split."""
    for end in port.get_destinations():
        if end.node.type == "Add":
            return _heads(end.node.out_port(0))
        shape = end.node.input(1).value if end.node.type == "Reshape" else None
        if shape is not None and len(shape) == 4:
            return int(shape[2])
    return 1
