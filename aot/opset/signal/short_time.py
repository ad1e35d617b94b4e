"""Short-time Fourier transforms: a spectrum of each frame of a signal, and the inverse."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from aot.codegen.ir.loops import Buffer, Const, Expr, Reduce, Var, as_expr, cast, prim, select
from aot.ir.conditions import Condition, alike, at_least, at_most_equal
from aot.ir.op import Elements, LoopOp, Work
from aot.ir.operand import Input, Operand
from aot.ir.registry import op
from aot.ir.types import Array, Dim, TensorType, differs
from aot.opset.signal.fourier import Index, Signal, Transforms, indices
from aot.opset.signal.spectrum import half, mirrored
from aot.runtime.abi import DType
from aot.runtime.errors import ShapeError


def _scalar(x: Operand, what: str) -> int:
    numbers = x.ints(what)
    if len(numbers) != 1 or numbers[0] < 1:
        raise ShapeError(f"{what} must be one positive number, got {list(numbers)}")
    return numbers[0]


def _centred(window: Input, t: Expr, frame: int, dtype: DType) -> Expr:
    """Return the window centred in its frame, padded with zeros."""
    n = window.shape[0]
    if n == frame:
        return cast(window(t), dtype)
    at = t - (frame - n) // 2
    return prim("within", at, as_expr(n, DType.I64), cast(window(at), dtype), 0.0)


def _padded(window: Array, frame: int) -> Array:
    left = (frame - len(window)) // 2
    return np.pad(window.astype(np.float64), (left, frame - len(window) - left))


def _check_window(what: str, window: Operand, frame: int) -> None:
    if window.rank != 1 or (isinstance(window.shape[0], int) and not 1 <= window.shape[0] <= frame):
        raise ShapeError(f"{what}: the window must have one dimension of 1..{frame}, got {window.type}")


@op("opset15")
class STFT(LoopOp):
    """Signal [batch, length], window, frame size, frame step to [batch, frames, size // 2 + 1, 2].

    The batch may be absent; `transpose_frames`: frames are the axis after frequencies.
    """

    elements = Elements.FLOAT

    transpose_frames: bool = False

    def infer(self, x: Operand, window: Operand, size: Operand, step: Operand) -> TensorType:
        frame, hop = _scalar(size, "STFT: frame size"), _scalar(step, "STFT: frame step")
        if x.rank not in (1, 2):
            raise ShapeError(f"STFT: the signal must have rank 1 or 2, got {x.type}")
        _check_window("STFT", window, frame)
        length = x.shape[-1]
        shape: list[Dim] = [(length - frame) // hop + 1, frame // 2 + 1]
        return TensorType(x.dtype, (*x.shape[:-1], *(shape[::-1] if self.transpose_frames else shape), 2))

    def conditions(self, x: Operand, window: Operand, size: Operand, step: Operand) -> Sequence[Condition]:
        frame = _scalar(size, "STFT: frame size")
        short = at_most_equal("the window is at most as long as a frame", window.shape[0], frame)
        return [at_least("the signal must be as long as a frame", x.shape[-1], frame), short]

    def nest(self, outs: tuple[Buffer, ...], x: Input, window: Input, size: Input, step: Input) -> tuple[Work, ...]:
        frame, hop = size.operand().ints("STFT: frame size")[0], step.operand().ints("STFT: frame step")[0]
        frames = outs[0].shape[-2 if self.transpose_frames else -3]
        transforms = Transforms.of(x.dtype)

        def framed(index: Index) -> Expr:
            *first, f, t, c = index
            value = cast(x(*first, f * hop + t), transforms.dtype) * _centred(window, t, frame, transforms.dtype)
            return select(prim("eq", c, 0), value, 0.0)

        signal = Signal((*x.shape[:-1], frames, frame, 2), framed)
        work = half(transforms.transform(signal, x.rank, False), x.rank)
        axes, index = indices(outs[0].shape)
        at = (*index[:-3], index[-2], index[-3], index[-1]) if self.transpose_frames else index
        transforms.define(outs[0], work.at(at), axes, index)
        return tuple(transforms.works)

    def reference(self, x: Array, window: Array, size: Array, step: Array) -> Array:
        frame, hop = int(size.reshape(-1)[0]), int(step.reshape(-1)[0])
        starts = np.arange(int(x.shape[-1] - frame) // hop + 1) * hop
        framed = x.astype(np.float64)[..., starts[:, None] + np.arange(frame)]
        spectra = np.fft.rfft(framed * _padded(window, frame))
        spectra = spectra.swapaxes(-1, -2) if self.transpose_frames else spectra
        return np.stack([spectra.real, spectra.imag], -1).astype(x.dtype)


@op("opset16")
class ISTFT(LoopOp):
    """Spectra [batch, size // 2 + 1, frames, 2], window, frame size, frame step and optional length to [batch, length].

    Windowed frames are added where they overlap, and divided by the sum of the squared windows. `center`: the signal
    was padded by half a frame on both sides; `normalized`: spectra were divided by the root of the frame size.
    """

    elements = Elements.FLOAT

    center: bool = False
    normalized: bool = False

    def infer(
        self, x: Operand, window: Operand, size: Operand, step: Operand, length: Operand | None = None
    ) -> TensorType:
        frame, hop = _scalar(size, "ISTFT: frame size"), _scalar(step, "ISTFT: frame step")
        if x.rank not in (3, 4) or differs(x.shape[-1], 2):
            raise ShapeError(f"ISTFT: spectra must have rank 3 or 4, the last dimension 2, got {x.type}")
        _check_window("ISTFT", window, frame)
        count = (x.shape[-2] - 1) * hop + (0 if self.center else frame)
        full = count if length is None else _scalar(length, "ISTFT: signal length")
        return TensorType(x.dtype, (*x.shape[:-3], full))

    def conditions(
        self, x: Operand, window: Operand, size: Operand, step: Operand, length: Operand | None = None
    ) -> Sequence[Condition]:
        frame = _scalar(size, "ISTFT: frame size")
        rule = f"a frame of {frame} has {frame // 2 + 1} complex numbers"
        short = at_most_equal("the window is at most as long as a frame", window.shape[0], frame)
        return [*alike(rule, (x.shape[-3], x.shape[-1]), (frame // 2 + 1, 2)), short]

    def nest(
        self, outs: tuple[Buffer, ...], x: Input, window: Input, size: Input, step: Input, length: Input | None = None
    ) -> tuple[Work, ...]:
        frame, hop = size.operand().ints("ISTFT: frame size")[0], step.operand().ints("ISTFT: frame step")[0]
        frames, transforms = x.shape[-2], Transforms.of(x.dtype)
        last = len(x.shape) - 2

        def turned(index: Index) -> Expr:
            return cast(x(*index[:-3], index[-2], index[-3], index[-1]), transforms.dtype)

        spectra = Signal((*x.shape[:-3], frames, frame // 2 + 1, 2), turned)
        work = transforms.transform(mirrored(spectra, last, frame), last, True)
        total = transforms.buffer(*outs[0].shape, 2)
        outer, first = indices(x.shape[:-3])
        o, j, c = Var("t", outs[0].shape[-1]), Var("j", -(-frame // hop)), Var("c", 2)
        place = o + (frame // 2 if self.center else 0)
        f = place // hop - j
        t = place - f * hop
        weight = _centred(window, t, frame, transforms.dtype)
        scale = float(np.sqrt(frame)) if self.normalized else 1.0
        value = weight * select(prim("eq", c, 0), work.at((*first, f, t, Const(0))) * scale, weight)
        value = prim("within", f, as_expr(frames, DType.I64), prim("within", t, frame, value, 0.0), 0.0)
        transforms.define(total, Reduce("add", (j,), value), (*outer, o, c), (*first, o, c))
        above, below = total[(*first, o, Const(0))], total[(*first, o, Const(1))]
        full = (frames - 1) * hop + frame - (frame // 2 if self.center else 0)
        result = prim("div", above, select(prim("eq", below, 0.0), 1.0, below))
        result = select(prim("lt", o, as_expr(full, DType.I64)), result, 0.0)
        transforms.define(outs[0], result, (*outer, o), (*first, o))
        return tuple(transforms.works)

    def reference(self, x: Array, window: Array, size: Array, step: Array, length: Array | None = None) -> Array:
        frame, hop, frames = int(size.reshape(-1)[0]), int(step.reshape(-1)[0]), x.shape[-2]
        wide = x.astype(np.float64).swapaxes(-2, -3)
        weight = _padded(window, frame)
        signal = np.fft.irfft(wide[..., 0] + 1j * wide[..., 1], frame) * weight
        signal *= np.sqrt(frame) if self.normalized else 1.0
        total, below = np.zeros((*x.shape[:-3], (frames - 1) * hop + frame)), np.zeros((frames - 1) * hop + frame)
        for f in range(frames):
            total[..., f * hop : f * hop + frame] += signal[..., f, :]
            below[f * hop : f * hop + frame] += weight**2
        total /= np.where(below == 0, 1, below)
        if self.center:
            total = total[..., frame // 2 : None if length is not None else frame // 2 + (frames - 1) * hop]
        if length is not None:
            n = int(length.reshape(-1)[0])
            total = np.pad(total, [(0, 0)] * (total.ndim - 1) + [(0, max(0, n - total.shape[-1]))])[..., :n]
        return total.astype(x.dtype)
