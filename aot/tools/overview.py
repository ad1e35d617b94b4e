"""Overview of a model file, in words and as JSON: tensors, operations, control flow, variables; nothing is compiled.

m: 9 nodes
  input   x: f32[n,4]
  control Loop 'repeat': body of 5 nodes
            If 'small': then of 3 nodes, else of 2 nodes
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import cast

from aot.codegen.ir.expressions import Expr, variables
from aot.compilation.about import about
from aot.compilation.implied_precision import asks_for_bf16
from aot.extensions.folder import load_extensions
from aot.frontends import framework_of, front_passes, read_model
from aot.ir.graph import Graph
from aot.ir.scope import within
from aot.ir.values.small_weights import rounded_products
from aot.lowering.program.interface_tensors import result_name
from aot.runtime.describe import size_text

Facts = dict[str, object]


def facts(graph: Graph, operations: Counter[str]) -> Facts:
    """`operations`: types as the file has them."""
    return {
        "name": graph.name,
        "inputs": {node.name: str(node.out_port().type) for node in graph.parameters},
        "outputs": {result_name(node): str(node.source().type) for node in graph.results},
        "sizes": {name: {"min": low, "max": high} for name, (low, high) in _ranges(graph).items()},
        "operations": dict(operations.most_common()),
        "weights": _weights(graph),
        "rounded_products": rounded_products(graph),
        "control": _control(graph),
        "variables": sorted(set(_variables(graph))),
        **({"about": _about(graph)} if _about(graph) else {}),
    }


def read(file: Path, extensions: Path | None = None, signature: str | None = None) -> tuple[Graph, Counter[str]]:
    """Return a file's graph, and how many nodes there are of each type that the file has, bodies not counted.

    `extensions`: a folder with operations and conversions that the file needs; its passes do not run. `signature`:
    which one of a SavedModel.
    """
    extension = None if extensions is None else load_extensions(extensions, framework=framework_of(file))
    with within(None if extension is None else extension.scope):
        graph = read_model(file, signature=signature)
        counts = Counter(node.type for node in graph.order())
        for convert in front_passes():
            convert(graph)
    return graph, counts


def text(graph: Graph, operations: Counter[str]) -> str:
    """Return the facts as text."""
    lines = [f"{graph.name}: {operations.total()} nodes"]
    lines += [f"  about   {name}: {value}" for name, value in _about(graph).items()]
    lines += [f"  input   {node.name}: {node.out_port().type}" for node in graph.parameters]
    lines += [f"  output  {result_name(node)}: {node.source().type}" for node in graph.results]
    lines += [f"  size    {name}: {low} to {high}" for name, (low, high) in _ranges(graph).items()]
    sizes = ", ".join(f"{kind} {size_text(size)}" for kind, size in _weights(graph).items())
    lines += [f"  weights {sizes or 'none'}"]
    lines += [f"  control {'  ' * depth}{line}" for depth, line in _control_lines(graph, 0)]
    lines += [f"  state   {name}" for name in sorted(set(_variables(graph)))]
    if asks_for_bf16(graph):
        lines.append("  note    weights have 16 bits: layers compute in bf16 where the target is faster in it;")
        lines.append("            --precision f32 keeps layers in f32")
    if products := rounded_products(graph):
        lines.append(f"  note    {products} products have large weights of 8 bits or fewer, and round data to 8 bits:")
        lines.append("            --activations f32 keeps data in f32")
    elif products := rounded_products(graph, 0):
        lines.append(f"  note    {products} products have small weights of 8 bits or fewer, and data of f32:")
        lines.append("            --activations int8 rounds data to 8 bits, too")
    counts = ", ".join(f"{count} {kind}" for kind, count in operations.most_common())
    return "\n".join([*lines, f"  nodes   {counts}"])


def _about(graph: Graph) -> dict[str, str]:
    """Return texts of the file for people: all that a .tflite has, licence, author and description of others."""
    recorded = graph.rt_info.get("about")
    return cast("dict[str, str]", recorded) if isinstance(recorded, dict) else about(graph.rt_info)


def _ranges(graph: Graph) -> dict[str, tuple[int, int]]:
    """Return the least and the greatest size of the dimensions of inputs, if the file has both."""
    ranges: dict[str, tuple[int, int]] = {}
    for node in graph.parameters:
        for symbol in sorted(variables(*(d for d in node.out_port().type.dims or () if isinstance(d, Expr))), key=str):
            if isinstance(symbol.extent, int):
                ranges[symbol.name] = symbol.low, symbol.extent - 1
    return ranges


def _weights(graph: Graph) -> dict[str, int]:
    """Return the bytes of constants by element type, without the constants of bodies; the most first."""
    sizes = Counter[str]()
    for node in graph.nodes.values():
        if node.constant_data is not None and node.out_ports():
            sizes[node.out_port().type.dtype.value] += int(node.constant_data.nbytes)
    return dict(sizes.most_common())


def _control(graph: Graph) -> list[Facts]:
    nodes = [node for node in graph.order() if node.regions]
    return [{"layer": n.name, "type": n.type, "bodies": {k: _body(b) for k, b in n.regions.items()}} for n in nodes]


def _body(body: Graph) -> Facts:
    return {"nodes": len(body.nodes), "control": _control(body)}


def _control_lines(graph: Graph, depth: int) -> Iterator[tuple[int, str]]:
    for node in graph.order():
        if node.regions:
            bodies = ", ".join(f"{key} of {len(body.nodes)} nodes" for key, body in node.regions.items())
            yield depth, f"{node.type} {node.name!r}: {bodies}"
            for body in node.regions.values():
                yield from _control_lines(body, depth + 1)


def _variables(graph: Graph) -> Iterator[str]:
    for node in graph.order():
        if node.type in ("ReadValue", "Assign"):
            yield str(getattr(node.op, "variable_id", ""))
        for body in node.regions.values():
            yield from _variables(body)
