"""Connectionist temporal classification: the best path decoded, and the loss of a labelling."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from aot.ir.op import Condition, Elements, Input, LoopOp, Operand, Work, alike, at_least, op
from aot.ir.types import Array, Dim, TensorType, numpy_dtype
from codegen.loops import Buffer, Const, Expr, Space, as_expr, cast, dense, prim, select
from codegen.script import Scripted, loops, parallel, var
from runtime.abi import DType
from runtime.errors import ShapeError


@loops
def _best(x: Scripted, at: Scripted, classes: Scripted) -> Scripted:
    """The class with the largest score; the first one of equals."""
    place = var(0, DType.I64)
    score = var(x[at(0)], DType.F32)
    for c in range(1, classes):
        if x[at(c)] > score:
            score = x[at(c)]
            place = c
    return place


@op("opset1")
class CTCGreedyDecoder(LoopOp):
    """Scores [T, N, C], mask [T, N] to classes [N, T, 1, 1]: no blanks (C - 1), no repetitions, -1 behind the end."""

    elements = Elements.FLOAT

    ctc_merge_repeated: bool = True

    def infer(self, x: Operand, mask: Operand) -> TensorType:
        if x.rank != 3 or mask.rank != 2:
            raise ShapeError(f"CTCGreedyDecoder: scores of rank 3 and a mask of rank 2, got {x.type} and {mask.type}")
        return TensorType(x.dtype, (x.shape[1], x.shape[0], 1, 1))

    def conditions(self, x: Operand, mask: Operand) -> Sequence[Condition]:
        return alike("the mask has a number for each step and row of the batch", x.shape[:2], mask.shape)

    def nest(self, outs: tuple[Buffer, ...], x: Input, mask: Input) -> tuple[Work, ...]:
        return (_greedy_masked(outs[0], x.buffer, mask.buffer, x.shape, self.ctc_merge_repeated),)

    def reference(self, x: Array, mask: Array) -> Array:
        out = np.full((x.shape[1], x.shape[0], 1, 1), -1, x.dtype)
        for n in range(x.shape[1]):
            ended = np.flatnonzero(mask[:, n] == 0)
            length = int(ended[0]) if len(ended) else x.shape[0]
            found = _decoded(x[:length, n], x.shape[2] - 1, self.ctc_merge_repeated)
            out[n, : len(found), 0, 0] = found
        return out


def _decoded(x: Array, blank: int, merge: bool) -> list[int]:
    best = [int(b) for b in x.astype(np.float64).argmax(-1)]
    previous = [-1, *best[:-1]]
    return [b for b, p in zip(best, previous, strict=False) if b != blank and not (merge and b == p)]


@loops
def _greedy_masked(out: Scripted, x: Scripted, mask: Scripted, shape: Scripted, merge: bool) -> None:
    times, batch, classes = shape
    for n in parallel(batch):
        for t in range(times):
            out[n, t, 0, 0] = -1.0
        last = var(-1, DType.I64)
        count = var(0, DType.I64)
        t = var(0, DType.I64)
        while t < times and mask[t, n] != 0.0:
            found = _best(x, _Step(t, n), classes)
            if found != classes - 1 and (not merge or found != last):
                out[n, count, 0, 0] = cast(found, DType.F32)
                count += 1
            last = found
            t += 1


class _Step:
    """The scores of one step."""

    def __init__(self, *index: Scripted) -> None:
        self.index = index

    def __call__(self, c: Expr | int) -> tuple[Expr | int, ...]:
        return (*self.index, c)


@op("opset6")
class CTCGreedyDecoderSeqLen(LoopOp):
    """Scores [N, T, C] and lengths [N] to classes [N, T], -1 behind the end, and how many there are."""

    elements = Elements.FLOAT

    merge_repeated: bool = True
    classes_index_type: DType = DType.I32
    sequence_length_type: DType = DType.I32

    def infer(self, x: Operand, lengths: Operand, blank: Operand | None = None) -> tuple[TensorType, TensorType]:
        if x.rank != 3 or lengths.rank != 1:
            raise ShapeError(f"{self.type}: scores of rank 3, lengths of rank 1, got {x.type} and {lengths.type}")
        found = TensorType(self.classes_index_type, x.shape[:2])
        return found, TensorType(self.sequence_length_type, x.shape[:1])

    def conditions(self, x: Operand, lengths: Operand, *_: Operand | None) -> Sequence[Condition]:
        return alike("there is a length for each row of the batch", x.shape[:1], lengths.shape)

    def nest(
        self, outs: tuple[Buffer, ...], x: Input, lengths: Input, blank: Input | None = None
    ) -> tuple[Work, ...]:
        held = None if blank is None else blank.buffer
        return (_greedy_lengths(*outs, x.buffer, lengths.buffer, held, x.shape, self.merge_repeated),)

    def reference(self, x: Array, lengths: Array, blank: Array | None = None) -> tuple[Array, Array]:
        out = np.full(x.shape[:2], -1, numpy_dtype(self.classes_index_type))
        counts = np.zeros(len(x), numpy_dtype(self.sequence_length_type))
        none = x.shape[2] - 1 if blank is None else int(blank.reshape(-1)[0])
        for n, length in enumerate(lengths):
            found = _decoded(x[n, : int(length)], none, self.merge_repeated)
            out[n, : len(found)], counts[n] = found, len(found)
        return out, counts


@loops
def _blank(held: Scripted, classes: Scripted) -> Scripted:
    return classes - 1 if held is None else cast(held[(0,) * len(held.shape)], DType.I64)


@loops
def _greedy_lengths(
    out: Scripted, counts: Scripted, x: Scripted, lengths: Scripted, held: Scripted, shape: Scripted, merge: bool
) -> None:
    batch, times, classes = shape
    for n in parallel(batch):
        blank = _blank(held, classes)
        for t in range(times):
            out[n, t] = -1
        last = var(-1, DType.I64)
        count = var(0, DType.I64)
        for t in range(min(cast(lengths[n], DType.I64), times)):
            found = _best(x, _Step(n, t), classes)
            if found != blank and (not merge or found != last):
                out[n, count] = found
                count += 1
            last = found
        counts[n] = count


@op("opset4")
class CTCLoss(LoopOp):
    """-log of the probability that logits [N, T, C] read as labels [N, T], over all alignments: the forward algorithm.

    `ctc_merge_repeated`: equal neighbours of a path are one label; `preprocess_collapse_repeated` and `unique`: equal
    labels in a row, or all equal ones, are dropped from the labels first.
    """

    elements = Elements.FLOAT

    preprocess_collapse_repeated: bool = False
    ctc_merge_repeated: bool = True
    unique: bool = False

    def infer(
        self, logits: Operand, logit_lengths: Operand, labels: Operand, label_lengths: Operand,
        blank: Operand | None = None,
    ) -> TensorType:  # fmt: skip
        if (logits.rank, logit_lengths.rank, labels.rank, label_lengths.rank) != (3, 1, 2, 1):
            found = f"{logits.type}, {labels.type}"
            raise ShapeError(f"CTCLoss: logits of rank 3, labels of rank 2, lengths of rank 1, got {found}")
        return TensorType(logits.dtype, logits.shape[:1])

    def conditions(
        self, logits: Operand, logit_lengths: Operand, labels: Operand, label_lengths: Operand, *_: Operand | None
    ) -> Sequence[Condition]:
        given = (logit_lengths.shape[0], labels.shape[0], label_lengths.shape[0])
        pairs = alike("batches must be equal", given, (logits.shape[0],) * 3)
        return [*pairs, at_least("there are classes", logits.shape[2], 1)]

    def nest(
        self, outs: tuple[Buffer, ...], logits: Input, logit_lengths: Input, labels: Input, label_lengths: Input,
        blank: Input | None = None,
    ) -> tuple[Work, ...]:  # fmt: skip
        batch, width = logits.shape[0], labels.shape[1]
        kept = dense("kept", batch, width + 1, space=Space.ARENA, dtype=DType.I64)
        forward = dense("forward", batch, 2, 2 * width + 1, space=Space.ARENA)
        buffers = (logits.buffer, logit_lengths.buffer, labels.buffer, label_lengths.buffer)
        held = None if blank is None else blank.buffer
        return (_loss(outs[0], buffers, held, kept, forward, logits.shape, self),)

    def reference(
        self, logits: Array, logit_lengths: Array, labels: Array, label_lengths: Array, blank: Array | None = None
    ) -> Array:
        wide = logits.astype(np.float64)
        scores = wide - np.logaddexp.reduce(wide, -1, keepdims=True)
        none = logits.shape[2] - 1 if blank is None else int(blank.reshape(-1)[0])
        out = np.zeros(len(logits))
        for n in range(len(logits)):
            kept: list[int] = []
            for label in labels[n, : int(label_lengths[n])]:
                again = self.preprocess_collapse_repeated and kept[-1:] == [int(label)]
                dropped = int(label) in kept if self.unique else again
                kept += [] if dropped else [int(label)]
            out[n] = -self._path(scores[n, : int(logit_lengths[n])], kept, none)
        return out.astype(logits.dtype)

    def _path(self, scores: Array, kept: list[int], blank: int) -> float:
        """log of the sum over all paths; states are blank, label, blank, label, ... blank."""
        states = [blank, *(s for label in kept for s in (label, blank))]
        now = np.array([0.0] + [-np.inf] * (len(states) - 1))
        begin = True
        for row in scores:
            following = np.full(len(states), -np.inf)
            for s, label in enumerate(states):
                odd = s % 2 == 1
                ways = [now[s]] if not odd or (self.ctc_merge_repeated and not begin) else []
                ways += [now[s - 1]] if s else []
                skips = s > 1 and odd and (not self.ctc_merge_repeated or states[s - 2] != label)
                ways += [now[s - 2]] if skips else []
                following[s] = np.logaddexp.reduce(ways) + row[label]
            now, begin = following, False
        return float(np.logaddexp.reduce(now[-2:]))


def _within(number: Expr, most: Dim) -> Expr:
    """An integer that data give, held in 0..most: nothing outside of a tensor is read."""
    return prim("max", prim("min", cast(number, DType.I64), as_expr(most, DType.I64)), 0)


@loops
def _kept_labels(
    kept: Scripted, labels: Scripted, n: Scripted, length: Scripted, classes: Scripted, op: Scripted
) -> Scripted:
    """The labels that count, in front of `kept`; how many."""
    count = var(0, DType.I64)
    for j in range(length):
        label = _within(labels[n, j], classes - 1)
        dropped = var(0, DType.I64)
        if op.unique:
            for k in range(count):
                if kept[n, k] == label:
                    dropped = 1
        elif op.preprocess_collapse_repeated and count > 0 and kept[n, count - 1] == label:
            dropped = 1
        if dropped == 0:
            kept[n, count] = label
            count += 1
    return count


def _either(a: Expr, b: Expr) -> Expr:
    """log(exp a + exp b)."""
    top, low = prim("max", a, b), prim("min", a, b)
    rest = prim("log", 1.0 + prim("exp", low - top))
    return select(prim("eq", low, Const(-math.inf, DType.F32)), top, top + rest)


@loops
def _scale(logits: Scripted, n: Scripted, t: Scripted, classes: Scripted) -> Scripted:
    """log of the sum of the exponentials of all scores at a time."""
    top = var(logits[n, t, 0], DType.F32)
    for c in range(1, classes):
        top = max(top, logits[n, t, c])
    total = var(0.0, DType.F32)
    for c in range(classes):
        total += prim("exp", logits[n, t, c] - top)
    return top + prim("log", total)


@loops
def _loss(
    out: Scripted, inputs: Scripted, held: Scripted, kept: Scripted, forward: Scripted, shape: Scripted, op: Scripted
) -> None:
    logits, logit_lengths, labels, label_lengths = inputs
    batch, steps, classes = shape
    for n in parallel(batch):
        blank = _within(_blank(held, classes), classes - 1)
        count = _kept_labels(kept, labels, n, _within(label_lengths[n], labels.shape[1]), classes, op)
        states = 2 * count + 1
        for s in range(states):
            forward[n, 0, s] = -math.inf
        forward[n, 0, 0] = 0.0
        times: Scripted = _within(logit_lengths[n], steps)
        for t in range(times):
            scale = _scale(logits, n, t, classes)
            now = t % 2
            for s in range(states):
                sum = var(-math.inf, DType.F32)
                if s % 2 == 0:
                    sum = forward[n, now, s]
                    if s > 0:
                        sum = _either(sum, forward[n, now, s - 1])
                    forward[n, 1 - now, s] = sum + logits[n, t, blank] - scale
                else:
                    sum = forward[n, now, s - 1]
                    label = kept[n, s // 2]
                    if op.ctc_merge_repeated:
                        sum = _either(sum, forward[n, now, s])
                        if s > 1 and kept[n, s // 2 - 1] != label:
                            sum = _either(sum, forward[n, now, s - 2])
                    elif s > 1:
                        sum = _either(sum, forward[n, now, s - 2])
                    forward[n, 1 - now, s] = sum + logits[n, t, label] - scale
        last = times % 2
        result = var(forward[n, last, states - 1], DType.F32)
        if states > 1:
            result = _either(result, forward[n, last, states - 2])
        out[n] = 0.0 - result
