"""Shapes of the inputs as given by the user: fixed, named, or with ranges.

x: f32[x.d0,3,x.d2,x.d3]     --shape x=batch,3,480,640 --dim batch=1..64     ->     x: f32[batch,3,480,640]
"""

from __future__ import annotations

from dataclasses import replace

from aot.codegen.dataclass import dataclass
from aot.codegen.ir.expressions import rewrite, variables
from aot.codegen.ir.loops import Expr, Var, as_expr
from aot.ir.graph import Graph, Node
from aot.ir.types import Dim, Shape, dim_text, simplify
from aot.opset.control.infrastructure import Parameter
from aot.runtime.describe import range_text
from aot.runtime.errors import UsageError

BATCH, PIXELS, ELEMENTS = 4, 256, 64  # assumed sizes for choosing schedules, where nothing is known


@dataclass(frozen=True, slots=True)
class InputShapes:
    """Pass for `--shape` and `--dim`. `shapes`: for each input numbers, names or `?`; `dims`: (name, least, greatest).

    The name of the only input may be empty. A dimension that the file fixes may become another number, or dynamic.
    Equal names mean equal sizes. Names of `dims` are in `shapes` or in the file, as `x.d0` where it has none. Ranges of
    the file hold, too. A size with one possible value is a number. UsageError for shapes, names and ranges that do not
    fit the model.
    """

    shapes: tuple[tuple[str, tuple[int | str, ...]], ...] = ()
    dims: tuple[tuple[str, int, int | None], ...] = ()
    name: str = "input_shapes"
    required: bool = True
    run_not_recursively: bool = True  # bodies of sub-graphs get their shapes from outside

    def __call__(self, graph: Graph) -> bool:
        fixed = {parameter_named(graph, name, "--shape").id: shape for name, shape in self.shapes}
        before = [n.op for n in graph.parameters]
        symbols: dict[str, Var] = {}
        for node in graph.parameters:
            op = node.op
            if not isinstance(op, Parameter):
                continue
            shape = op.shape
            if node.id in fixed:
                shape = _fitting(node, fixed[node.id], shape)
            if shape is not None:
                dims = tuple(self._ranged(d, k, len(shape), symbols) for k, d in enumerate(shape))
                if dims != op.shape:
                    node.op = replace(op, shape=dims)
        unknown = [n for n, *_ in self.dims if n not in symbols]
        if unknown:
            rule = f"no dimension is called {unknown[0]!r}, there are {', '.join(symbols) or 'none'}"
            raise UsageError(f"--dim: {rule}", advice=_advice(graph, unknown[0]))
        return any(a is not b for a, b in zip(before, (n.op for n in graph.parameters), strict=True))

    def _ranged(self, dim: Dim, k: int, rank: int, symbols: dict[str, Var]) -> Dim:
        """Return `dim` with the range given for its name, and a typical size for choosing schedules."""
        if isinstance(dim, int):
            return dim
        if not isinstance(dim, Var):
            names = sorted(variables(dim), key=lambda v: v.name)
            ranged: dict[Expr, Expr] = {v: as_expr(self._ranged(v, k, rank, symbols), v.dtype) for v in names}
            return simplify(rewrite(dim, ranged))
        if dim.name not in symbols:
            low, high = dim.low, None if dim.extent is None else int(str(dim.extent)) - 1
            allowed, ranges = (
                range_text(low, high),
                [(least, most) for name, least, most in self.dims if name == dim.name],
            )
            for least, most in ranges:
                low, high = max(low, least), most if high is None else high if most is None else min(high, most)
            if high is not None and high < low:
                given_ranges = " and ".join(range_text(*pair) for pair in ranges)
                raise UsageError(f"--dim {dim.name}: the file allows {allowed}, got {given_ranges}")
            typical = BATCH if k == 0 and rank > 1 else PIXELS if rank > 3 and k > 1 else ELEMENTS
            symbols[dim.name] = Var(dim.name, None if high is None else high + 1, low, typical)
        symbol = symbols[dim.name]
        return symbol.low if symbol.extent == symbol.low + 1 else symbol


def parameter_named(graph: Graph, name: str, option: str) -> Node:
    """Return the input named `name`, an empty name for the only one; UsageError if there is none."""
    for node in graph.parameters:
        if node.name == name or name in node.out_port(0).names or (not name and len(graph.parameters) == 1):
            return node
    names = ", ".join(n.name for n in graph.parameters)
    rule = f"no input {name!r}" if name else "the only input needs no name"
    raise UsageError(f"{option}: {rule}, the inputs are {names}")


def _fitting(node: Node, sizes: tuple[int | str, ...], shape: Shape | None) -> Shape:
    """Return the given shape, with the file's dimension for `?`; dynamic dimensions keep the file's range."""
    text = ",".join(map(str, sizes))
    if shape is None and "?" in sizes:
        raise UsageError(
            f"--shape: the rank of {node.name!r} is not known, so every dimension must have a name, got {text}"
        )
    old: tuple[Dim | None, ...] = shape if shape is not None else (None,) * len(sizes)
    if len(old) != len(sizes):
        raise UsageError(f"--shape: input {node.name!r} has rank {len(old)}, got {text}")
    return tuple(_one(node, d, o) for d, o in zip(sizes, old, strict=True))


def _one(node: Node, size: int | str, old: Dim | None) -> Dim:
    if size == "?" and old is not None:
        return old
    low, extent = (old.low, old.extent) if isinstance(old, Var) else (0, None)
    if isinstance(size, str):
        return Var(size, extent, low)
    if size < low or (isinstance(extent, int) and size >= extent):
        raise UsageError(f"--shape: dimension {dim_text(old or 0)} of input {node.name!r} is out of range, got {size}")
    return size


def _advice(graph: Graph, name: str) -> str:
    """Return how a dimension gets a new name, by the example of the first one that varies, or else the first one."""
    shapes = [(n.name, n.op.shape) for n in graph.parameters if isinstance(n.op, Parameter) and n.op.shape]
    positions = [(not isinstance(d, Var), i, k) for i, (_, shape) in enumerate(shapes) for k, d in enumerate(shape)]
    if not positions:
        return f"--shape gives names to dimensions: --shape INPUT={name},3,480,640"
    _, i, k = min(positions)
    node, shape = shapes[i]
    parts = [name if n == k else "?" for n in range(len(shape))]
    return f"--shape gives new names to dimensions, for example --shape {node}={','.join(parts)}"
