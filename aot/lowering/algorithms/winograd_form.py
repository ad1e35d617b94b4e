"""Convolutions that suit Winograd's algorithm, and their transformed weights.

Sums of bytes take the transforms whose matrices are whole numbers. All of it is exact then: weights are
transformed to whole numbers, `factor` times as large, and the sums, modulo 2^32, are divided by it.
"""

from __future__ import annotations

from collections.abc import Container
from dataclasses import replace
from math import prod

import ml_dtypes
import numpy as np
from numpy.typing import NDArray

from aot.codegen.costs import COSTS
from aot.codegen.dataclass import dataclass
from aot.codegen.ir.access import typical
from aot.codegen.ir.definition import Definition
from aot.codegen.ir.index import normal
from aot.codegen.ir.loops import Const, Expr, Load, Prim, Reduce, Var, cast
from aot.ir.types import Array
from aot.lowering.algorithms.long_windows import LongTaps, split_load, split_places, split_taps, split_weights
from aot.lowering.algorithms.winograd_matrices import Kind, growth, weight_matrix, whole_factor
from aot.runtime.abi import DType

BLOCK = 64  # input channels that are transformed at a time
TAPS = (3, 4, 5)  # taps of a window in one direction
STRIDES = (1, 2)
MAX_BYTE, MAX_WEIGHT = 255, 128  # magnitudes of bytes and of their weights
MAX_I16_MAGNITUDE = 1 << 15  # magnitude that numbers in i16 must stay below
BYTE_TYPES = (DType.I16, DType.I16), (DType.U8, DType.I8)  # types of data and weights: transformed, in memory


@dataclass(frozen=True, slots=True)
class Tiling:
    """The transforms of a tile, in each direction.

    `phases`: where taps lie apart and each phase is one tile, the phases that have as many outputs as this one, in
    each direction; else tiles cover the image.
    """

    kinds: tuple[Kind, ...]
    phases: tuple[range, ...] = ()

    @property
    def points(self) -> int:
        """Return the number of products."""
        return prod(k.points for k in self.kinds)

    @property
    def sides(self) -> tuple[int, ...]:
        """Return the outputs of a tile in each direction; 0 where no transform has that number of products."""
        return tuple(k.sums for k in self.kinds)

    @property
    def name(self) -> str:
        """Return the part of the name of transformed weights that differs between tilings."""
        return "x".join(f"{k.points}" for k in self.kinds) + "_finite" if self.phases else f"{self.kinds[0].points}"


@dataclass(frozen=True, slots=True)
class WinogradForm:
    """A convolution's parts: `x` and `w` loads of the product, its axes, and where `w` has them.

    `window`: one or two pairs of an output axis and the taps along it; `strides` of the outputs; `steps`: how far apart
    taps lie. `summed`: other axes of the sum: 3x3x3 is a sum of 3x3 over three images, and windows of many taps
    (`long`) are sums of short ones. `groups`: the axis of the groups of channels, if there are any. `dtype`: of the
    transforms, as of data and weights; i16 for bytes. `largest`: no sum of whole numbers is larger.
    """

    x: Load
    w: Load
    guarded: Expr  # x, inside of what asks for its bounds
    n: tuple[Var, ...]
    window: tuple[tuple[Var, Var], ...]
    strides: tuple[int, ...]
    steps: tuple[int, ...]
    oc: Var
    ic: Var
    summed: tuple[Var, ...]
    groups: tuple[Var, ...]
    dtype: DType
    long: tuple[LongTaps, ...] = ()
    largest: int = 0

    @property
    def reaching(self) -> tuple[Var, ...]:
        """Return the axes along which the zeros that pad a long window read elements after it."""
        beyond = {s.short for s in self.long if s.room > typical(s.taps.extent or 1)}
        return tuple(a for a, k in self.window if k in beyond)

    @property
    def outs(self) -> tuple[Var, ...]:
        return tuple(a for a, _ in self.window)

    @property
    def taps(self) -> tuple[Var, ...]:
        return tuple(k for _, k in self.window)

    @property
    def window_taps(self) -> tuple[int, ...]:
        """Return the number of taps in each direction."""
        return tuple(typical(k.extent or 1) for k in self.taps)

    @property
    def is_whole(self) -> bool:
        """True for sums of whole numbers."""
        return self.dtype is DType.I16

    @property
    def sum_type(self) -> DType:
        """Return the type of sums in transforms and products."""
        return DType.I32 if self.is_whole else DType.F32

    def number(self, e: Expr) -> Expr:
        """Return an element of data, weights or transforms as a number of the sum's type."""
        return cast(e, DType.I32) if self.is_whole else e

    def factor(self, tiling: Tiling) -> int:
        """Return the factor of transformed weights: 1 for floats; 0 if they are no whole numbers that fit i16."""
        if not self.is_whole:
            return 1
        product = prod(map(whole_factor, tiling.kinds))
        if not product:
            return 0
        data, weights = (prod(each) for each in zip(*map(growth, tiling.kinds), strict=True))
        fits = (
            data * MAX_BYTE < MAX_I16_MAGNITUDE
            and weights * MAX_WEIGHT < MAX_I16_MAGNITUDE
            and (product & -product) * self.largest < 1 << 31
        )
        return product if fits else 0

    @property
    def terms(self) -> int:
        """Return the terms of one point of the window."""
        return prod(typical(a.extent or 1) for a in (*self.summed, self.ic))

    @property
    def order(self) -> tuple[int, ...]:
        """Return the dimensions of the weights in the transform's order: taps, groups, other summed axes, ic, oc."""
        return tuple(self.w.index.index(a) for a in (*self.taps, *self.groups, *self.summed, self.ic, self.oc))

    @property
    def arrangement(self) -> str:
        """Return the properties, besides the number of points, that transformed weights depend on."""
        kind = () if self.dtype is DType.F32 else (self.dtype.value,)
        return "_".join(map(str, (*self.strides, *self.order, *kind)))

    @property
    def nameless(self) -> WinogradForm:
        """Return the form without the names of its operands, and without bounds: tilings depend on all else."""
        x, w = (Load(replace(load.buffer, name=""), load.index) for load in (self.x, self.w))
        return replace(self, x=x, w=w, guarded=x)

    def tiling(self, points: int) -> Tiling:
        """Return the tiling with these numbers of products in each direction."""
        pairs = zip(self.window_taps, self.strides, strict=True)
        return Tiling(tuple(Kind(points, r, stride, whole=self.is_whole) for r, stride in pairs))

    def with_largest(self, weights: NDArray[np.generic]) -> WinogradForm:
        """Return the form with `largest` set: a bound of its sums, which shows that a transform is exact."""
        sizes = np.abs(weights.astype(np.int64))
        if sizes.max(initial=0) > MAX_WEIGHT:
            return replace(self, largest=1 << 31)
        sums = sizes.sum(axis=tuple(map(self.w.index.index, (*self.taps, *self.summed, self.ic))))
        return replace(self, largest=MAX_BYTE * int(sums.max(initial=0)))


def forms_of(
    d: Definition, constants: frozenset[str], short: Container[DType] = (), bytes_: Container[str] = ()
) -> tuple[WinogradForm, ...]:
    """Return the forms, if `d` convolves 3 taps or more in one or two directions, stride 1 or 2, constant weights.

    Windows of more than 5 taps, which move by one, have a form of their own, which splits them.

    `short`: types of 16 bits of which instructions sum products, so that both operands may have one. `bytes_`: values
    whose elements are bytes, in i16 or u8; their weights are, too.
    """
    r = d.reduction
    if r is None or r.fn != "add" or r.init is not None or d.where:
        return ()
    if not (isinstance(r.body, Prim) and r.body.fn == "mul"):
        return ()
    whole = r.dtype is DType.I32
    if not whole and r.dtype is not DType.F32:
        return ()
    factors = [_narrow(e) for e in r.body.args] if whole else list(r.body.args)
    for guarded, w in (factors, factors[::-1]):
        x = _unguarded(guarded, whole)
        if not isinstance(w, Load) or not isinstance(x, Load):
            continue
        if w.buffer.name not in constants or x.buffer.name in constants:
            continue
        types = (x.buffer.dtype, w.buffer.dtype)
        if whole:
            fits = types in BYTE_TYPES and x.buffer.name in bytes_
        else:
            fits = types[0] is DType.F32 or (types[0] in short and types[0] is types[1])
        return _matched(d, r, x, w, guarded) if fits else ()
    return ()


def _narrow(e: Expr) -> Expr:
    """Return the operand of a conversion to i32."""
    return e.args[0] if isinstance(e, Prim) and e.fn == "cast" and e.dtype is DType.I32 else e


def _unguarded(e: Expr, is_integer: bool) -> Expr:
    """Return the value inside the tests of padding; outside the bounds it is 0, or any integer."""
    zero = Const(0.0, DType.F32)
    while isinstance(e, Prim) and e.fn == "within":
        if not all(isinstance(x, Const) and (is_integer or x == zero) for x in e.args[3:]):
            break
        e = e.args[2]
    return e


def _matched(d: Definition, r: Reduce, x: Load, w: Load, guarded: Expr) -> tuple[WinogradForm, ...]:
    if not all(isinstance(i, Var | Const) for i in w.index):
        return ()
    reads = _places_read(d, r, x)
    if reads is None:
        return ()
    pairs, plain = reads
    grouped = [p for p in pairs if p.out in w.index]
    if any((p.step, p.stride) != (1, p.tap.extent) for p in grouped):
        return ()
    windows = [p for p in pairs if p not in grouped]
    channels = [a for a in (*plain, *(p.tap for p in grouped)) if a in r.axes]
    groups = tuple(p.out for p in grouped)
    lanes = [a for a in d.axes if a in w.index and a not in groups]
    if len(channels) != 1 or len(r.axes) != 1 + len(windows) or len(lanes) != 1 or not set(r.axes) <= set(w.index):
        return ()
    if not all(isinstance(a.extent, int) for a in (*groups, lanes[0], *r.axes)):
        return ()
    short = tuple(p for p in windows if p.tap.extent in TAPS)[-2:]
    wide = x.buffer.dtype is DType.F32 and typical(channels[0].extent or 1) >= COSTS.min_winograd_channels
    long = tuple(p for p in windows if p.tap.extent in TAPS or (wide and p.is_long))[-2:]
    forms: list[WinogradForm] = []
    for window in dict.fromkeys((short, long)):
        if not window or not all(_supports_stride(p.stride, p.step, p in window) for p in windows):
            continue
        others = [p for p in windows if p not in window]
        batch = (*(a for a in plain if a in d.axes), *(p.out for p in others))
        if {*batch, *groups, *(p.out for p in window), *lanes} != set(d.axes):
            continue
        form = WinogradForm(
            x=x,
            w=w,
            guarded=guarded,
            n=batch,
            window=tuple((p.out, p.tap) for p in window),
            strides=tuple(p.stride for p in window),
            steps=tuple(p.step for p in window),
            oc=lanes[0],
            ic=channels[0],
            summed=tuple(p.tap for p in others),
            groups=groups,
            dtype=DType.I16 if x.buffer.dtype is DType.U8 else x.buffer.dtype,
        )
        forms.append(_in_parts(form, tuple(split_taps(p.tap) for p in window if p.is_long)))
    return tuple(forms)


def _in_parts(form: WinogradForm, splits: tuple[LongTaps, ...]) -> WinogradForm:
    """Return the form with its long windows as sums of short ones."""
    if not splits:
        return form
    short = {s.taps: s.short for s in splits}
    x = split_places(form.x, splits)
    assert isinstance(x, Load)
    return replace(
        form,
        x=x,
        w=split_load(form.w, splits),
        guarded=split_places(form.guarded, splits),
        window=tuple((out, short.get(tap, tap)) for out, tap in form.window),
        summed=(*form.summed, *(s.parts for s in splits)),
        long=splits,
    )


@dataclass(frozen=True, slots=True)
class _Pair:
    """An output axis and an axis of the sum that index one dimension: `stride` * out + `step` * tap."""

    out: Var
    tap: Var
    stride: int
    step: int

    @property
    def is_long(self) -> bool:
        """True for windows that are split into short ones."""
        return self.stride == 1 and isinstance(self.tap.extent, int) and self.tap.extent > max(TAPS)


def _places_read(d: Definition, r: Reduce, x: Load) -> tuple[list[_Pair], list[Var]] | None:
    """Return the index pairs of `x`, and the axes that index it alone; None if the index has any other form."""
    pairs: list[_Pair] = []
    single_axes: list[Var] = []
    for i in x.index:
        at = normal(i, {})
        axes = [a for a in at.terms if isinstance(a, Var)]
        taps, outs = [a for a in axes if a in r.axes], [a for a in axes if a in d.axes]
        if len(axes) != len(at.terms) or any(at.terms[a] < 1 for a in axes):
            return None
        if len(taps) == len(outs) == 1:
            pairs.append(_Pair(outs[0], taps[0], at.terms[outs[0]], at.terms[taps[0]]))
        elif len(axes) == 1 and (axes[0] in r.axes or at.terms[axes[0]] == 1):
            single_axes.append(axes[0])
        elif axes:
            return None
    return pairs, single_axes


def _supports_stride(stride: int, step: int, inside: bool) -> bool:
    """True if a transform exists for a window of this stride; axes outside of the window must have stride 1."""
    return stride == 1 or (inside and step == 1 and stride in STRIDES)


def transformed(weights: NDArray[np.generic], form: WinogradForm, tiling: Tiling) -> Array:
    """Transform the weights to [groups.., points in all directions, summed.., ic, oc], computed in f64.

    They get the form's type; whole numbers are multiplied by `form.factor`.
    """
    order, weights = form.order, split_weights(weights, tuple(typical(n) for n in form.w.buffer.shape))
    rest = [k for k in range(weights.ndim) if k not in order]
    shape = [weights.shape[k] for k in order]
    taps, (*summed, oc) = shape[: len(form.taps)], shape[len(form.taps) :]
    ic = prod(summed)
    taps_first = weights.transpose(*rest, *order).reshape(*taps, ic, oc)
    first, *second = map(weight_matrix, tiling.kinds)
    products = np.empty((*(k.points for k in tiling.kinds), ic, oc), np.float32)
    for start in range(0, ic, BLOCK):  # f64 takes twice the memory
        part = np.asarray(taps_first[..., start : start + BLOCK, :], np.float64)
        across = _product(first, part.reshape(taps[0], -1)).reshape(len(first), *taps[1:], -1)
        for matrix in second:
            across = _product(matrix, across)
        products[..., start : start + BLOCK, :] = across.reshape(*products.shape[:-2], -1, oc)
    ordered = np.moveaxis(products.reshape(tiling.points, *summed, oc), 0, len(form.groups))
    if form.is_whole:
        return np.rint(ordered * np.float32(form.factor(tiling))).astype(np.int16)
    return ordered if form.dtype is DType.F32 else ordered.astype(ml_dtypes.bfloat16)


def _product(matrix: NDArray[np.float64], data: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return `matrix @ data`, with sums in one order: BLAS sums in an order that depends on the compiling machine."""
    total = matrix[:, 0, None] * data[..., 0, None, :]
    for k in range(1, matrix.shape[1]):
        total += matrix[:, k, None] * data[..., k, None, :]
    return total
