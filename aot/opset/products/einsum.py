"""Einstein summation: products of tensors with named axes, summed over the names the output lacks.

abc,cd,de->abe      two at a time, from the left: each pair is a matrix product, or an elementwise one
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from math import prod

import numpy as np

from aot.codegen.dataclass import dataclass
from aot.ir.build import Builder
from aot.ir.conditions import Condition
from aot.ir.graph import OutPort
from aot.ir.op import DecomposedOp, Elements, ViewOp
from aot.ir.operand import Operand, Piece
from aot.ir.registry import op
from aot.ir.types import Array, Dim, TensorType
from aot.opset.base.decomposition import narrowed, numbers, wide, widened
from aot.opset.base.families import broadcast
from aot.runtime.abi import DType
from aot.runtime.errors import ShapeError

Labels = tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Term:
    """A tensor and the names of its axes."""

    port: OutPort
    labels: Labels

    def dim(self, label: str) -> Dim:
        return self.port.shape[self.labels.index(label)]


@op("opset7")
class Einsum(DecomposedOp):
    """Products and sums that `equation` names, as NumPy has it.

    Letters name axes, `...` stands for axes that broadcast, and without `->` the output has the letters seen once.
    """

    elements = Elements.NUMBER

    equation: str = ""

    def infer(self, *xs: Operand) -> TensorType:
        inputs, output = parse(self.equation, [x.rank for x in xs])
        dims: dict[str, Dim] = {}
        for x, labels in zip(xs, inputs, strict=True):
            if x.dtype is not xs[0].dtype:
                raise ShapeError(f"Einsum: element types must be equal, got {xs[0].dtype.value} and {x.dtype.value}")
            for label, n in zip(labels, x.shape, strict=True):
                (dims[label],) = broadcast((dims.get(label, 1),), (n,), what=f"Einsum: axis {label}")
        return TensorType(xs[0].dtype, tuple(dims[label] for label in output))

    def decompose(self, build: Builder, *xs: OutPort) -> OutPort:
        inputs, output = parse(self.equation, [x.type.rank for x in xs])
        terms = [diagonal(build, Term(widened(build, x), labels)) for x, labels in zip(xs, inputs, strict=True)]
        terms = without_ones(build, terms)
        for i, t in enumerate(terms):
            other_labels = {label for other in (*terms[:i], *terms[i + 1 :]) for label in other.labels} | set(output)
            terms[i] = summed(build, t, other_labels)
        total = terms[0]
        for i, t in enumerate(terms[1:], 1):
            other_labels = {label for other in terms[i + 1 :] for label in other.labels} | set(output)
            total = pair(build, total, t, other_labels)
        return narrowed(build, ordered(build, total, output).port, xs[0].type.dtype)

    def reference(self, *xs: Array) -> Array:
        exact = xs if xs[0].dtype.kind in "iu" else [wide(x) for x in xs]
        return np.asarray(np.einsum(self.equation.replace(" ", ""), *exact)).astype(xs[0].dtype)


def parse(equation: str, ranks: Sequence[int]) -> tuple[list[Labels], Labels]:
    """Return the axis names of all inputs and of the output; an ellipsis has `.0`, `.1`, ..., aligned at the end."""
    text = equation.replace(" ", "")
    left, arrow, right = text.partition("->")
    parts = left.split(",")
    if not all(re.fullmatch(r"[A-Za-z]*(\.\.\.)?[A-Za-z]*", part) for part in (*parts, right)):
        raise ShapeError(f"Einsum: equation must be letters, commas and '...', got {equation!r}")
    if len(parts) != len(ranks):
        raise ShapeError(f"Einsum: equation has {len(parts)} inputs, got {len(ranks)}")
    extra = [rank - len(p.replace("...", "")) if "..." in p else 0 for p, rank in zip(parts, ranks, strict=True)]
    most = max(extra)
    inputs: list[Labels] = []
    for p, n, rank in zip(parts, extra, ranks, strict=True):
        names = _names(p, most, n)
        if n < 0 or len(names) != rank:
            raise ShapeError(f"Einsum: {p!r} names {len(names)} axes, got rank {rank}")
        inputs.append(names)
    if arrow:
        output = _names(right, most, most)
    else:
        once = [c for c in left if c.isalpha() and left.count(c) == 1]
        output = (*_names("..." if most else "", most, most), *sorted(once))
    known = {label for names in inputs for label in names}
    if len(set(output)) != len(output) or not known.issuperset(output):
        raise ShapeError(f"Einsum: output names must be of inputs, each once, got {right!r}")
    return inputs, output


def _names(part: str, most: int, count: int) -> Labels:
    before, dots, after = part.partition("...")
    hidden = [f".{i}" for i in range(most - count, most)] if dots else []
    return (*before, *hidden, *after)


def diagonal(build: Builder, t: Term) -> Term:
    """Replace axes of the same name by their diagonal, two at a time."""
    for label in dict.fromkeys(t.labels):
        while t.labels.count(label) > 1:
            first = t.labels.index(label)
            second = t.labels.index(label, first + 1)
            others = [i for i in range(len(t.labels)) if i not in (first, second)]
            last = transposed(build, t.port, t.labels, [*others, first, second])
            t = Term(build(Diagonal(), last), (*(t.labels[i] for i in others), label))
    return t


@op()
class Diagonal(ViewOp):
    """out[.., i] = x[.., i, i]"""

    def infer(self, x: Operand) -> TensorType:
        *others, n, m = x.shape
        if isinstance(n, int) and isinstance(m, int) and n != m:
            raise ShapeError(f"Einsum: axes of a diagonal must be equal, got {n} and {m}")
        return TensorType(x.dtype, (*others, n if isinstance(n, int) else m))

    def conditions(self, x: Operand) -> list[Condition]:
        return [(x.shape[-2], x.shape[-1], "axes of a diagonal must be equal")]

    def pieces(self, outs: tuple[TensorType, ...], x: Operand) -> tuple[Piece, ...]:
        shape = outs[0].shape
        return (Piece(0, (0,) * len(shape), shape, lambda *index: (*index, index[-1])),)

    def reference(self, x: Array) -> Array:
        return np.diagonal(x, 0, -2, -1).copy()


def without_ones(build: Builder, terms: Sequence[Term]) -> list[Term]:
    """Drop axes of size 1 if another term has the same name with another size: they broadcast."""
    wider = {x for t in terms for x, n in zip(t.labels, t.port.shape, strict=True) if not _is_one(n)}
    reduced: list[Term] = []
    for t in terms:
        gone = [i for i, x in enumerate(t.labels) if x in wider and _is_one(t.port.shape[i])]
        port = build.Squeeze(t.port, numbers(build, gone)) if gone else t.port
        reduced.append(Term(port, tuple(x for i, x in enumerate(t.labels) if i not in gone)))
    return reduced


def _is_one(size: Dim) -> bool:
    return isinstance(size, int) and size == 1


def transposed(build: Builder, port: OutPort, labels: Labels, order: Sequence[int]) -> OutPort:
    return port if list(order) == list(range(len(labels))) else build.Transpose(port, numbers(build, order))


def ordered(build: Builder, t: Term, labels: Iterable[str]) -> Term:
    """Transpose the axes to the order of `labels`."""
    output = tuple(labels)
    return Term(transposed(build, t.port, t.labels, [t.labels.index(x) for x in output]), output)


def summed(build: Builder, t: Term, labels: set[str]) -> Term:
    """Sum over the names that are not in `labels`."""
    gone = [i for i, label in enumerate(t.labels) if label not in labels]
    if not gone:
        return t
    port = build.ReduceSum(t.port, numbers(build, gone), keep_dims=False)
    return Term(port, tuple(label for label in t.labels if label in labels))


def pair(build: Builder, a: Term, b: Term, labels: set[str]) -> Term:
    """Return the product of two, summed over their common names that are not in `labels`."""
    both = [x for x in a.labels if x in b.labels]
    batch, inner = [x for x in both if x in labels], [x for x in both if x not in labels]
    rows, columns = [x for x in a.labels if x not in both], [x for x in b.labels if x not in both]
    left, right = ordered(build, a, (*batch, *rows, *inner)), ordered(build, b, (*batch, *inner, *columns))
    if not inner:
        return _outer(build, left, right, batch, rows, columns)
    start = len(batch)
    m = merged(build, merged(build, left.port, start, len(rows)), start + 1, len(inner))
    n = merged(build, merged(build, right.port, start, len(inner)), start + 1, len(columns))
    product = build.MatMul(m, n)
    if len(rows) != 1 or len(columns) != 1:
        sides = (left.port, range(start, start + len(rows))), (right.port, range(start + len(inner), len(right.labels)))
        product = build.Reshape(product, joined(build, (product, range(start)), *sides), special_zero=False)
    return Term(product, (*batch, *rows, *columns))


def joined(build: Builder, *parts: tuple[OutPort, Sequence[int]]) -> OutPort:
    """Return a shape made of the sizes of axes of ports."""
    sizes = [port.shape[a] for port, axes in parts for a in axes]
    if all(isinstance(n, int) for n in sizes):
        return numbers(build, [n for n in sizes if isinstance(n, int)])
    first = build.const(0, DType.I64)
    groups = [build.Gather(build.ShapeOf(port), numbers(build, axes), first) for port, axes in parts if axes]
    return groups[0] if len(groups) == 1 else build.Concat(*groups, axis=0)


def _outer(build: Builder, a: Term, b: Term, batch: list[str], rows: list[str], columns: list[str]) -> Term:
    left, right = a.port, b.port
    if columns:
        start = len(a.labels)
        left = build.Unsqueeze(left, numbers(build, range(start, start + len(columns))))
    if rows:
        right = build.Unsqueeze(right, numbers(build, range(len(batch), len(batch) + len(rows))))
    return Term(build.Multiply(left, right), (*batch, *rows, *columns))


def merged(build: Builder, port: OutPort, start: int, count: int) -> OutPort:
    """Merge `count` axes from `start` on into one; no axes become one of size 1."""
    if count == 1:
        return port
    if count == 0:
        return build.Unsqueeze(port, numbers(build, (start,)))
    before, group, after = range(start), range(start, start + count), range(start + count, len(port.shape))
    sizes = [n for n in port.shape if isinstance(n, int)]
    if len(sizes) == len(port.shape):
        merged_sizes = (*sizes[:start], prod(sizes[start : start + count]), *sizes[start + count :])
        return build.Reshape(port, numbers(build, merged_sizes), special_zero=False)
    total = build.ReduceProd(joined(build, (port, group)), numbers(build, (0,)), keep_dims=True)
    lead, tail = ([joined(build, (port, axes))] if axes else [] for axes in (before, after))
    return build.Reshape(port, build.Concat(*lead, total, *tail, axis=0), special_zero=False)
