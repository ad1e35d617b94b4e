"""Ranks that depend on sizes: the sizes that may be 1, and the errors that say which option decides."""

from __future__ import annotations

from aot.codegen.ir.expressions import variables
from aot.codegen.ir.index import bounds, normal
from aot.codegen.ir.loops import Expr
from aot.ir.graph import OutPort
from aot.ir.types import Dim, TensorType, dim_text
from aot.runtime.errors import UnsupportedError


def can_be_one(n: Dim) -> bool:
    """True if a dynamic size can be 1."""
    low, high = bounds(normal(n, {})) if isinstance(n, Expr) else (0, 0)
    return low <= 1 <= high


def which_are_one(type: TensorType) -> str:
    """Return the rule for Squeeze without axes, with the options that help."""
    names = sorted({v.name for n in type.shape if can_be_one(n) and isinstance(n, Expr) for v in variables(n)})
    remedy = " ".join(f"--dim {name}=N" for name in names)
    return f"without axes, which dimensions are 1 must be known, got {type}: fix them ({remedy}, or --shape)"


def one_rank_needed(
    layer: str, then: TensorType, other: TensorType, condition: OutPort, size: Dim | None = None
) -> UnsupportedError:
    """Return the error for an output that has a rank for each branch of If `layer`, with the options that help.

    `size`: the layer is a Squeeze, whose condition is that this size is 1.
    """
    names = _sizes_behind(condition)
    fixed = f"fix what decides it (--dim {names[0]}=N, or --shape), or " if names else ""
    rule = "an output of the network has one rank"
    if size is not None:
        rule = f"{rule}, got {then} where {dim_text(size)} is 1, else {other}: {fixed}name the axes in the model"
        return UnsupportedError(f"Squeeze {layer!r}: {rule}")
    return UnsupportedError(
        f"If {layer!r}: {rule}, got {then} where its condition holds, else {other}: "
        f"{fixed}give both branches one rank in the model (Unsqueeze, Reshape)"
    )


def _sizes_behind(port: OutPort) -> list[str]:
    """Return the names of the sizes that a value is computed from."""
    names, seen, todo = set[str](), set[int](), [port]
    while todo:
        port = todo.pop()
        if port.node.id in seen:
            continue
        seen.add(port.node.id)
        if port.value is not None:
            names |= {v.name for d in port.value.flat if isinstance(d, Expr) for v in variables(d)}
        else:
            todo += [s for s in port.node.sources() if s is not None]
    return sorted(names)
