"""Connectionist temporal classification: the best path decoded, and the loss of a labelling."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from aot.codegen.dataclass import dataclass
from aot.codegen.ir.definition import Definition
from aot.codegen.ir.loops import Buffer, Const, Expr, Reduce, Space, Var, as_expr, cast, dense, prim, select
from aot.codegen.script.script import MAX_LANES, Scripted, array, lanes, loops, parallel, var
from aot.ir.conditions import Condition, alike, at_least
from aot.ir.op import Elements, LoopOp, Work
from aot.ir.operand import Input, Operand
from aot.ir.registry import op
from aot.ir.types import Array, Dim, TensorType, numpy_dtype
from aot.runtime.abi import DType
from aot.runtime.errors import ShapeError

LOG_ZERO = Const(-math.inf, DType.F32)  # log of the probability 0


@loops
def _best(x: Scripted, at: Scripted, classes: Scripted) -> Scripted:
    """Return the class with the largest score, the first of equal ones. A score that is NaN is the least."""
    wide, kind = not isinstance(classes, int) or classes >= MAX_LANES, x.dtype.compute
    place = var(0, DType.I64)
    score = var(-math.inf, kind)
    if wide:
        scores = array(MAX_LANES, dtype=kind)
        places = array(MAX_LANES, dtype=DType.I32)
        for v in lanes(MAX_LANES):
            scores[v] = -math.inf
            places[v] = cast(v, DType.I32)
        for part in range(classes // MAX_LANES):
            for v in lanes(MAX_LANES):
                c = part * MAX_LANES + v
                places[v] = select(x[at(c)] > scores[v], cast(c, DType.I32), places[v])
                scores[v] = select(x[at(c)] > scores[v], x[at(c)], scores[v])
        for half in (8, 4, 2, 1):
            for v in lanes(half):
                places[v] = select(
                    _precedes((scores[v + half], places[v + half]), (scores[v], places[v])), places[v + half], places[v]
                )
                scores[v] = select(scores[v + half] > scores[v], scores[v + half], scores[v])
        place = cast(places[0], DType.I64)
        score = scores[0]
    for c in range(classes - classes % MAX_LANES if wide else 0, classes):
        if x[at(c)] > score:
            score = x[at(c)]
            place = c
    return place


def _precedes(a: tuple[Expr, Expr], b: tuple[Expr, Expr]) -> Expr:
    """True if a score is larger, or equal and the place lower."""
    return prim("or", prim("gt", a[0], b[0]), prim("and", prim("eq", a[0], b[0]), prim("lt", a[1], b[1])))


@op("opset1")
class CTCGreedyDecoder(LoopOp):
    """Scores [T, N, C], mask [T, N] to classes [N, T, 1, 1]: no blanks (C - 1), no repetitions, -1 after the end."""

    elements = Elements.FLOAT
    uniform = (0, 1)

    ctc_merge_repeated: bool = True

    def infer(self, x: Operand, mask: Operand) -> TensorType:
        if x.rank != 3 or mask.rank != 2:
            raise ShapeError(
                f"CTCGreedyDecoder: inputs must be scores of rank 3 and a mask of rank 2, got {x.type} and {mask.type}"
            )
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
            classes = _decoded(x[:length, n], x.shape[2] - 1, self.ctc_merge_repeated)
            out[n, : len(classes), 0, 0] = classes
        return out


def _decoded(x: Array, blank: int, merge: bool) -> list[int]:
    classes = [int(b) for b in x.astype(np.float64).argmax(-1)]
    previous = [-1, *classes[:-1]]
    return [b for b, p in zip(classes, previous, strict=False) if b != blank and not (merge and b == p)]


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
                out[n, count, 0, 0] = cast(found, out.dtype.compute)
                count += 1
            last = found
            t += 1


class _Step:
    """Index of a step's scores: called with a class, it returns the index of its score."""

    def __init__(self, *index: Scripted) -> None:
        self.index = index

    def __call__(self, c: Expr | int) -> tuple[Expr | int, ...]:
        return (*self.index, c)


@op("opset6")
class CTCGreedyDecoderSeqLen(LoopOp):
    """Scores [N, T, C] and lengths [N] to classes [N, T], -1 after the end, and how many there are."""

    elements = Elements.FLOAT

    merge_repeated: bool = True
    classes_index_type: DType = DType.I32
    sequence_length_type: DType = DType.I32

    def infer(self, x: Operand, lengths: Operand, blank: Operand | None = None) -> tuple[TensorType, TensorType]:
        if x.rank != 3 or lengths.rank != 1:
            raise ShapeError(
                f"{self.type}: inputs must be scores of rank 3, lengths of rank 1, got {x.type} and {lengths.type}"
            )
        classes = TensorType(self.classes_index_type, x.shape[:2])
        return classes, TensorType(self.sequence_length_type, x.shape[:1])

    def conditions(self, x: Operand, lengths: Operand, *_: Operand | None) -> Sequence[Condition]:
        return alike("there is a length for each row of the batch", x.shape[:1], lengths.shape)

    def nest(self, outs: tuple[Buffer, ...], x: Input, lengths: Input, blank: Input | None = None) -> tuple[Work, ...]:
        held = None if blank is None else blank.buffer
        return (_greedy_lengths(*outs, x.buffer, lengths.buffer, held, x.shape, self.merge_repeated),)

    def reference(self, x: Array, lengths: Array, blank: Array | None = None) -> tuple[Array, Array]:
        out: Array = np.full(x.shape[:2], -1, numpy_dtype(self.classes_index_type))
        counts = np.zeros(len(x), numpy_dtype(self.sequence_length_type))
        none = x.shape[2] - 1 if blank is None else int(blank.reshape(-1)[0])
        for n, length in enumerate(lengths):
            classes = _decoded(x[n, : int(length)], none, self.merge_repeated)
            out[n, : len(classes)], counts[n] = classes, len(classes)
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
        length: Scripted = cast(lengths[n], DType.I64)
        for t in range(min(length, times)):
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
        self,
        logits: Operand,
        logit_lengths: Operand,
        labels: Operand,
        label_lengths: Operand,
        blank: Operand | None = None,
    ) -> TensorType:
        if (logits.rank, logit_lengths.rank, labels.rank, label_lengths.rank) != (3, 1, 2, 1):
            types = f"{logits.type}, {labels.type}"
            raise ShapeError(
                f"CTCLoss: inputs must be logits of rank 3, labels of rank 2, lengths of rank 1, got {types}"
            )
        return TensorType(logits.dtype, logits.shape[:1])

    def conditions(
        self, logits: Operand, logit_lengths: Operand, labels: Operand, label_lengths: Operand, *_: Operand | None
    ) -> Sequence[Condition]:
        batches = (logit_lengths.shape[0], labels.shape[0], label_lengths.shape[0])
        pairs = alike("batches must be equal", batches, (logits.shape[0],) * 3)
        return [*pairs, at_least("there are classes", logits.shape[2], 1)]

    def nest(
        self,
        outs: tuple[Buffer, ...],
        logits: Input,
        logit_lengths: Input,
        labels: Input,
        label_lengths: Input,
        blank: Input | None = None,
    ) -> tuple[Work, ...]:
        batch, steps, _ = logits.shape
        width = labels.shape[1]
        room = (width * 2 + MAX_LANES) // MAX_LANES * MAX_LANES
        n, t, c = (Var(name, extent) for name, extent in zip("ntc", logits.shape, strict=True))
        top, scale = (dense(name, batch, steps, space=Space.ARENA) for name in ("most", "norm"))
        score = cast(logits(n, t, c), DType.F32)
        total = Reduce("add", (c,), prim("exp", score - top[n, t]))
        kept = dense("kept", batch, width + 1, space=Space.ARENA, dtype=DType.I64)
        states = _States(
            dense("of", batch, room, space=Space.ARENA, dtype=DType.I64),
            dense("skip", batch, room, space=Space.ARENA),
            dense("forward", batch, 2, room + 2, space=Space.ARENA),
        )
        buffers = (logits.buffer, logit_lengths.buffer, labels.buffer, label_lengths.buffer)
        blank_buffer = None if blank is None else blank.buffer
        return (
            Definition(top, (n, t), Reduce("max", (c,), score)),
            Definition(scale, (n, t), prim("log", total) + top[n, t]),
            _loss(outs[0], buffers, blank_buffer, scale, kept, states, logits.shape, self),
        )

    def reference(
        self, logits: Array, logit_lengths: Array, labels: Array, label_lengths: Array, blank: Array | None = None
    ) -> Array:
        wide = logits.astype(np.float64)
        scores = wide - np.logaddexp.reduce(wide, -1, keepdims=True)
        none = logits.shape[2] - 1 if blank is None else int(blank.reshape(-1)[0])
        out = np.zeros(len(logits))
        for n in range(len(logits)):
            labelling: list[int] = []
            for label in labels[n, : int(label_lengths[n])]:
                again = self.preprocess_collapse_repeated and labelling[-1:] == [int(label)]
                dropped = int(label) in labelling if self.unique else again
                labelling += [] if dropped else [int(label)]
            out[n] = -self._path(scores[n, : int(logit_lengths[n])], labelling, none)
        return out.astype(logits.dtype)

    def _path(self, scores: Array, labelling: list[int], blank: int) -> float:
        """Return the log of the sum over all paths; states are blank, label, blank, label, ... blank."""
        states = [blank, *(s for label in labelling for s in (label, blank))]
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
    """Clamp a data-dependent integer to 0..most, so that nothing outside of a tensor is read."""
    return prim("max", prim("min", cast(number, DType.I64), as_expr(most, DType.I64)), 0)


@loops
def _compact_labels(
    kept: Scripted, labels: Scripted, n: Scripted, length: Scripted, classes: Scripted, op: Scripted
) -> Scripted:
    """Copy the labels that count to the front of `kept` and return their number."""
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


@dataclass(frozen=True)
class _States:
    """States blank, label, blank, label, ... blank of a labelling, padded to whole vectors.

    of[n, s]: class of state s; skip[n, s]: 0 if a path may come from state s - 2, else minus infinity;
    forward[n, side, s + 2]: log of the probability of state s, on two sides that alternate by step. Two entries of
    probability 0 precede the first state.
    """

    of: Scripted
    skip: Scripted
    forward: Scripted


def _sum(*terms: Expr) -> Expr:
    """Return the log of the sum of the exponentials of three."""
    top = prim("max", prim("max", terms[0], terms[1]), terms[2])
    parts = [prim("exp", term - top) for term in terms]
    return select(prim("eq", top, LOG_ZERO), top, top + prim("log", parts[0] + parts[1] + parts[2]))


@loops
def _begin(states: _States, kept: Scripted, n: Scripted, count: Scripted, blank: Scripted, op: Scripted) -> None:
    """Initialise the states: before the first step the first state has probability 1."""
    for s in range(states.forward.shape[2]):
        for side in (0, 1):
            states.forward[n, side, s] = LOG_ZERO
    states.forward[n, 0, 2] = 0.0
    for s in range(states.of.shape[1]):
        states.of[n, s] = blank
        states.skip[n, s] = LOG_ZERO
    for j in range(count):
        states.of[n, 2 * j + 1] = kept[n, j]
        if j > 0 and (not op.ctc_merge_repeated or kept[n, j - 1] != kept[n, j]):
            states.skip[n, 2 * j + 1] = 0.0


@loops
def _step(states: _States, n: Scripted, now: Scripted, scores: Scripted, count: Scripted, merge: bool) -> None:
    """Advance all states by one step; `scores`: logits, the step, the number subtracted from each logit."""
    logits, t, scale = scores
    forward = states.forward
    for part in range((count + (MAX_LANES - 1)) // MAX_LANES):
        for v in lanes(MAX_LANES):
            s = part * MAX_LANES + v
            forward[n, 1 - now, s + 2] = (cast(logits[n, t, states.of[n, s]], DType.F32) - scale) + _sum(
                forward[n, now, s + 2] if merge else select(s % 2 == 0, forward[n, now, s + 2], LOG_ZERO),
                forward[n, now, s + 1],
                forward[n, now, s] + states.skip[n, s],
            )


@loops
def _loss(
    out: Scripted,
    inputs: Scripted,
    held: Scripted,
    scale: Scripted,
    kept: Scripted,
    states: _States,
    shape: Scripted,
    op: Scripted,
) -> None:
    logits, logit_lengths, labels, label_lengths = inputs
    batch, steps, classes = shape
    for n in parallel(batch):
        blank = _within(_blank(held, classes), classes - 1)
        count = _compact_labels(kept, labels, n, _within(label_lengths[n], labels.shape[1]), classes, op)
        _begin(states, kept, n, count, blank, op)
        times: Scripted = _within(logit_lengths[n], steps)
        for t in range(times):
            _step(states, n, t % 2, (logits, t, scale[n, t]), 2 * count + 1, op.ctc_merge_repeated)
        last = times % 2
        result = var(states.forward[n, last, 2 * count + 2], DType.F32)
        result = _sum(result, states.forward[n, last, 2 * count + 1], LOG_ZERO)
        out[n] = 0.0 - result
