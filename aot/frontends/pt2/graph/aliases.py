"""Operations in place: tensors that share memory become values that follow each other.

    row = select(x, 0, 2)                  row = select(x, 0, 2)
    row.add_(1)                   ->       row' = add(row, 1);   x' = select_scatter(x, row', 0, 2)

A write goes through views to the tensor that they look into. Other views of it are made again when they are read next.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from typing import Any

from aot.codegen.dataclass import dataclass
from aot.ir.graph import OutPort
from aot.runtime.errors import UnsupportedError

Add = Callable[..., OutPort]  # adds a foreign operation: kind, tensors, and arguments by name
Inverse = Callable[[Add, OutPort, OutPort, "View"], OutPort]
IN_PLACE = re.compile(r"(?<!_)_$")
# Functional counterparts whose overloads have other names than those in place.
OVERLOADS = {
    "floor_divide.Tensor": "floor_divide.default",
    "pow.Tensor": "pow.Tensor_Tensor",
    "pow.Scalar": "pow.Tensor_Scalar",
    "float_power.Tensor": "float_power.Tensor_Tensor",
    "float_power.Scalar": "float_power.Tensor_Scalar",
    "transpose.default": "transpose.int",
}


@dataclass(slots=True)
class View:
    """The operation that makes a view, its arguments, its number among the outputs. `again(base)` makes it anew."""

    packet: str
    again: Callable[[OutPort], OutPort]
    arguments: Mapping[str, Any]
    output: int = 0
    sizes: tuple[int, ...] = ()  # of the views before it along the axis, for parts of a tensor


@dataclass(slots=True, eq=False)
class Tensor:
    """A value of the graph at the place that is reached. `version`: how often it was written to."""

    port: OutPort
    base: Tensor | None = None
    view: View | None = None
    version: int = 0
    seen: int = 0  # version of the base that the view was made of

    def read(self) -> OutPort:
        """Return the value at this place."""
        if self.base is not None and self.view is not None:
            port = self.base.read()
            if self.seen != self.base.version:
                self.port, self.seen = self.view.again(port), self.base.version
                self.version += 1
        return self.port

    def write(self, port: OutPort, add: Add) -> None:
        """Set the value, and that of the tensor that it looks into. UnsupportedError if the view has no inverse."""
        self.port = port
        self.version += 1
        if self.base is None or self.view is None:
            return
        inverse = INVERSES[self.view.packet]
        self.base.write(inverse(add, self.base.read(), port, self.view), add)
        self.seen = self.base.version


def functional(kind: str) -> str | None:
    """Return the functional counterpart of an operation in place."""
    packet, dot, overload = kind.partition(".")
    if not IN_PLACE.search(packet):
        return None
    functional_name = f"{IN_PLACE.sub('', packet)}{dot}{overload}"
    return OVERLOADS.get(functional_name, functional_name)


def _same(add: Add, base: OutPort, value: OutPort, view: View) -> OutPort:
    del add, base, view
    return value


def _reshaped(add: Add, base: OutPort, value: OutPort, view: View) -> OutPort:
    del view
    return add("view_as.default", value, base)


def _scattered(kind: str, *names: str) -> Inverse:
    def inverse(add: Add, base: OutPort, value: OutPort, view: View) -> OutPort:
        return add(kind, base, value, **{n: view.arguments[n] for n in names if n in view.arguments})

    return inverse


def _permuted(add: Add, base: OutPort, value: OutPort, view: View) -> OutPort:
    del base
    dims = [d % len(view.arguments["dims"]) for d in view.arguments["dims"]]
    return add("permute.default", value, dims=tuple(dims.index(i) for i in range(len(dims))))


def _swapped(add: Add, base: OutPort, value: OutPort, view: View) -> OutPort:
    del base
    return add("transpose.int", value, dim0=view.arguments["dim0"], dim1=view.arguments["dim1"])


def _transposed(add: Add, base: OutPort, value: OutPort, view: View) -> OutPort:
    del base, view
    return add("t.default", value)


def _moved(add: Add, base: OutPort, value: OutPort, view: View) -> OutPort:
    del base
    pair = {"source": view.arguments["destination"], "destination": view.arguments["source"]}
    return add("movedim.intlist" if isinstance(pair["source"], tuple) else "movedim.int", value, **pair)


def _narrowed(add: Add, base: OutPort, value: OutPort, view: View) -> OutPort:
    arguments = view.arguments
    if not isinstance(arguments["start"], int) or not isinstance(arguments["length"], int):
        raise UnsupportedError("narrow: a write into a part at a place that is known at run time only")
    attrs = {"start": arguments["start"], "end": arguments["start"] + arguments["length"]}
    return add("slice_scatter.default", base, value, dim=arguments["dim"], **attrs)


def _unbound(add: Add, base: OutPort, value: OutPort, view: View) -> OutPort:
    return add("select_scatter.default", base, value, dim=view.arguments.get("dim", 0), index=view.output)


def _part(add: Add, base: OutPort, value: OutPort, view: View) -> OutPort:
    if len(view.sizes) <= view.output:
        raise UnsupportedError("a write into a part of a tensor whose size is known at run time only")
    start = sum(view.sizes[: view.output])
    attrs = {"start": start, "end": start + view.sizes[view.output]}
    return add("slice_scatter.default", base, value, dim=view.arguments.get("dim", 0), **attrs)


def _refused(add: Add, base: OutPort, value: OutPort, view: View) -> OutPort:
    del add, base, value
    raise UnsupportedError(f"{view.packet}: a write through this view")


INVERSES: dict[str, Inverse] = {
    **dict.fromkeys(
        ("alias", "detach", "contiguous", "dropout", "feature_dropout", "alpha_dropout", "lift_fresh"), _same
    ),
    **dict.fromkeys(
        ("view", "reshape", "flatten", "unflatten", "squeeze", "unsqueeze", "view_as", "_unsafe_view"), _reshaped
    ),
    **dict.fromkeys(("transpose", "swapaxes", "swapdims"), _swapped),
    **dict.fromkeys(("split", "split_with_sizes", "chunk", "tensor_split"), _part),
    **dict.fromkeys(
        ("expand", "expand_as", "unfold", "as_strided", "broadcast_to", "real", "imag", "view_as_real"), _refused
    ),
    "permute": _permuted,
    "t": _transposed,
    "numpy_T": _transposed,
    "movedim": _moved,
    "moveaxis": _moved,
    "select": _scattered("select_scatter.default", "dim", "index"),
    "slice": _scattered("slice_scatter.default", "dim", "start", "end", "step"),
    "diagonal": _scattered("diagonal_scatter.default", "offset", "dim1", "dim2"),
    "narrow": _narrowed,
    "unbind": _unbound,
}
