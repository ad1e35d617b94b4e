"""The error for a network output whose rank depends on a condition."""

from __future__ import annotations

from aot.ir.graph import OutPort
from aot.ir.types import TensorType
from codegen.expressions import variables
from codegen.loops import Expr
from runtime.errors import UnsupportedError


def one_rank_needed(layer: str, then: TensorType, other: TensorType, condition: OutPort) -> UnsupportedError:
    """The error for an output of the network that has another rank in each branch of If `layer`, with what helps."""
    names = _sizes_behind(condition)
    fixed = f"fix what decides it (--dim {names[0]}=N, or --shape), or " if names else ""
    return UnsupportedError(
        f"If {layer!r}: an output of the network has one rank, got {then} where its condition holds, else {other}: "
        f"{fixed}give both branches one rank in the model (Unsqueeze, Reshape)"
    )


def _sizes_behind(port: OutPort) -> list[str]:
    """The names of the sizes that a value is computed from."""
    found, seen, todo = set[str](), set[int](), [port]
    while todo:
        port = todo.pop()
        if port.node.id in seen:
            continue
        seen.add(port.node.id)
        if port.value is not None:
            found |= {v.name for d in port.value.flat if isinstance(d, Expr) for v in variables(d)}
        else:
            todo += [s for s in port.node.sources() if s is not None]
    return sorted(found)
