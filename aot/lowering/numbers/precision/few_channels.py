"""Convolutions of few channels as products over pixels and channels together.

    add[ic in 3, kh, kw in 7](x[ic, h + kh, w + kw] * f[c, ic, kh, kw])
    chains[kh, t in 28](x.pixels[h + kh, w + t // 4, t % 4] * f.pixels[c, kh, t])          t = kw * 4 + ic

The 3 channels of an image do not fill a block of terms. Pixels padded to 4 channels, the last of them zero, lie side by
side. A window of 16 columns needs no such zeros: its 48 terms are two blocks.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TypeVar

import ml_dtypes
import numpy as np

from aot.codegen.dataclass import dataclass
from aot.codegen.ir.definition import Definition
from aot.codegen.ir.expressions import rewrite, variables
from aot.codegen.ir.index import normal
from aot.codegen.ir.loops import Buffer, Const, Expr, Load, Reduce, Var, dense, prim, select
from aot.codegen.ir.numbers.bf16_chains import block_terms
from aot.ir.types import Array
from aot.runtime.abi import DType

T = TypeVar("T")
MAX_CHANNELS = 4  # with more, zeros would fill most of a block, or the channels fill one themselves


@dataclass(frozen=True, slots=True)
class FewChannels:
    """A convolution `d` of the image `x` by filters `w`, with its axes of channels and of columns of the window.

    `width`: elements of a pixel, padded with zeros.
    """

    d: Definition
    x: Load
    w: Load
    channel: Var
    column: Var
    width: int

    @property
    def terms(self) -> Var:
        """Axis of columns and channels together."""
        assert isinstance(self.column.extent, int)
        return Var(f"{self.column.name}.{self.channel.name}", self.column.extent * self.width)

    def pixels(self, name: str) -> Buffer:
        """Return the image with its channels innermost."""
        return dense(name, *self._channels_last(self.x.buffer.shape, self.width), dtype=DType.BF16)

    def copy(self, buffer: Buffer) -> Definition:
        """Return the definition that writes the pixels: their channels, then zeros.

        A select chooses the zeros instead of a bounds check: loads at constant indices become shuffles.
        """
        channels = self.channel.extent
        assert isinstance(channels, int)
        dims = [k for k, n in enumerate(self.x.buffer.shape) if n != 1 or k == self._dim]
        channel = Var(f"d{self._dim}", self.width)
        axes = tuple(channel if k == self._dim else Var(f"d{k}", self.x.buffer.shape[k]) for k in dims)
        at = dict(zip(dims, axes, strict=True))
        index: tuple[Expr, ...] = tuple(at.get(k, Const(0)) for k in range(len(self.x.buffer.shape)))
        value: Expr = Load(self.x.buffer, index)
        if self.width != channels:
            inside = tuple(prim("min", i, channels - 1) if i == channel else i for i in index)
            value = select(prim("lt", channel, channels), Load(self.x.buffer, inside), 0.0)
        return Definition(buffer, axes, value, self._channels_last(index, channel))

    def filters(self, data: Array) -> Array:
        """Return the weights with columns and channels as one axis of terms, zero where pixels are padded."""
        dims = [self.w.index.index(a) for a in (self.column, self.channel)]
        channels_last = np.moveaxis(np.asarray(data, np.float32), dims, (-2, -1))
        padded = np.pad(
            channels_last, [(0, 0)] * (channels_last.ndim - 1) + [(0, self.width - channels_last.shape[-1])]
        )
        return padded.reshape(*channels_last.shape[:-2], -1).astype(ml_dtypes.bfloat16)

    def product(self, pixels: Buffer, filters: Buffer, fn: str) -> Definition:
        """Return the convolution as a product of `pixels` and `filters`, reduced by `fn`."""
        r, t = self.d.reduction, self.terms
        assert r is not None
        columns: dict[Expr, Expr] = {self.column: t // self.width}
        index = tuple(rewrite(i, columns) for i in self.x.index)
        others = tuple(i for i in self.w.index if i not in (self.column, self.channel))
        change: dict[Expr, Expr] = {
            self.x: Load(pixels, self._channels_last(index, t % self.width)),
            self.w: Load(filters, (*others, t)),
        }
        body = rewrite(rewrite(r.body, change), columns)
        axes = (*(a for a in r.axes if a not in (self.column, self.channel)), t)
        total: Expr = Reduce(fn, axes, body)
        return replace(self.d, value=rewrite(self.d.value, {r: total if r.init is None else total + r.init}))

    @property
    def _dim(self) -> int:
        return self.x.index.index(self.channel)

    def _channels_last(self, parts: tuple[T, ...], last: T) -> tuple[T, ...]:
        """Return the items of the image's other dimensions, then `last`, the item of the channels."""
        return (*parts[: self._dim], *parts[self._dim + 1 :], last)


def few_channels(d: Definition, x: Load, w: Load) -> FewChannels | None:
    """Return the convolution that `d` is, if its channels are few."""
    r = d.reduction
    if r is None or not all(isinstance(i, Var) for i in w.index) or not x.index:
        return None
    channels = [a for a in r.axes if a in x.index and a in w.index and sum(a in variables(i) for i in x.index) == 1]
    if len(channels) != 1 or len(x.index) < 2:
        return None
    channel = channels[0]
    across = max(k for k, i in enumerate(x.index) if i != channel)  # the dimension of columns
    taps = [a for a in r.axes if a in w.index and normal(x.index[across], {}).terms.get(a) == 1]
    if len(taps) != 1 or sum(taps[0] in variables(i) for i in x.index) != 1:
        return None
    column = taps[0]
    if not isinstance(channel.extent, int) or not isinstance(column.extent, int) or channel.extent > MAX_CHANNELS:
        return None
    if x.buffer.shape[x.index.index(channel)] != channel.extent:
        return None
    even = channel.extent + channel.extent % 2
    width = next((n for n in (channel.extent, even, even + 2) if block_terms(column.extent * n)), 0)
    return FewChannels(d, x, w, channel, column, width) if width else None
