"""Products, normalisation, recurrences, spectra, sorting, quantisation."""

from __future__ import annotations

import numpy as np

from aot.opset.elementwise.binary import AutoBroadcast
from aot.opset.elementwise.quantization import FakeConvert, FakeQuantize, Float8
from aot.opset.movement.embedding import (
    Bag,
    EmbeddingBagOffsets,
    EmbeddingBagOffsetsSum,
    EmbeddingBagPacked,
    EmbeddingBagPackedSum,
    EmbeddingSegmentsSum,
)
from aot.opset.products.attention import ScaledDotProductAttention
from aot.opset.products.einsum import Einsum
from aot.opset.products.linear_algebra import Inverse
from aot.opset.products.matmul import MatMul
from aot.opset.recurrent.recurrent import Direction, GRUSequence, LSTMSequence, RNNSequence
from aot.opset.recurrent.recurrent_cells import GRUCell, LSTMCell_1, LSTMCell_4, RNNCell, WeightsFormat
from aot.opset.reduction.nonzero import NonZero, Unique
from aot.opset.reduction.normalization import (
    GRN,
    LRN,
    MVN,
    MVN_1,
    BatchNormInference,
    BatchNormInference_1,
    EpsMode,
    GroupNormalization,
    Inside,
    NormalizeL2,
)
from aot.opset.reduction.segments import GroupedMatMul
from aot.opset.reduction.softmax import LogSoftmax, Softmax
from aot.opset.reduction.sorting import Mode, Order, TopK, TopK_1, TopK_3
from aot.opset.signal.short_time import ISTFT, STFT
from aot.opset.signal.spectrum import DFT, IDFT, IRDFT, RDFT
from aot.runtime.abi import DType
from tests.cases import EXACT, LOOSE
from tests.properties.drawing import INDICES, Draw, Trial, listed

ACTIVATIONS = ("sigmoid", "tanh", "relu")


def matmul(d: Draw) -> Trial:
    batch = d.shape((0, 3), (1, 3))
    m, k, n = d.ints(3, 1, 5)
    ta, tb, dtype = d.flag(), d.flag(), d.pick((DType.F32, DType.F32, DType.F16, DType.F64, DType.I32))
    one = tuple(1 if not d.integer(0, 3) else b for b in batch)
    a, b = (*batch, *((k, m) if ta else (m, k))), (*one[d.integer(0, len(one)) :], *((n, k) if tb else (k, n)))
    if not d.integer(0, 4):
        a, ta = (k,), False
    elif not d.integer(0, 4):
        b, tb = (k,), False
    return Trial(MatMul(ta, tb), [d.array(dtype, a), d.array(dtype, b)], tolerance=LOOSE)


def grouped(d: Draw) -> Trial:
    """Products of matrices in groups, of equal or of different sizes."""
    groups, m, k, n = d.ints(4, 1, 5)
    dtype = d.pick((DType.F32, DType.F32, DType.F16, DType.F64, DType.I32))
    b = d.array(dtype, (groups, n, k))
    if d.flag():
        return Trial(GroupedMatMul(), [d.array(dtype, (groups, m, k)), b], tolerance=LOOSE)
    ends = np.sort(d.whole(d.pick(INDICES), (groups,), 0, m))
    return Trial(GroupedMatMul(), [d.array(dtype, (m, k)), b, ends], tolerance=LOOSE)


def einsum(d: Draw) -> Trial:
    sizes = dict(zip("abcde", d.ints(5, 1, 4), strict=True))
    terms = ["".join(d.pick("abcde") for _ in range(d.integer(1, 3))) for _ in range(d.integer(1, 3))]
    terms = ["".join(dict.fromkeys(t)) for t in terms]
    letters = sorted(set("".join(terms)))
    out = "".join(letters[k] for k in d.subset(len(letters)))
    arrays = [d.array(DType.F32, [sizes[c] for c in t]) for t in terms]
    return Trial(Einsum(f"{','.join(terms)}->{out}"), arrays, tolerance=LOOSE)


def normalization(d: Draw) -> Trial:
    shape, dtype = d.shape((2, 5), (1, 5)), d.pick((DType.F32, DType.F32, DType.F16))
    rank, x = len(shape), d.array(dtype, shape)
    some = listed(d.pick(INDICES), d.signed(d.subset(rank, 1), rank))
    eps = d.pick([1e-5, 1e-2])
    channels = [d.array(dtype, (shape[1],), 0.2, 2) for _ in range(4)]
    grouped = d.array(dtype, (shape[0], 6, *shape[2:]))
    more = [d.array(dtype, (6,)), d.array(dtype, (6,))]
    return d.pick(
        [
            Trial(MVN(d.flag(), eps, d.pick(list(Inside))), [x, some], frozenset({1}), LOOSE),
            Trial(MVN_1(d.flag(), d.flag(), eps), [d.array(dtype, (*shape[:1], 2, 3, 4))], tolerance=LOOSE),
            Trial(NormalizeL2(eps, d.pick(list(EpsMode))), [x, some], frozenset({1}), LOOSE),
            Trial(BatchNormInference(eps), [x, *channels], tolerance=LOOSE),
            Trial(BatchNormInference_1(eps), [*channels[:2], x, *channels[2:]], tolerance=LOOSE),
            Trial(GroupNormalization(d.pick([1, 2, 3, 6]), eps), [grouped, *more], tolerance=LOOSE),
            Trial(GRN(eps), [x if rank < 5 else d.array(dtype, shape[:4])], tolerance=LOOSE),
            Trial(Softmax(d.axis(rank)), [x], tolerance=LOOSE),
            Trial(LogSoftmax(d.axis(rank)), [x], tolerance=LOOSE),
        ]
    )


def local_response(d: Draw) -> Trial:
    shape = d.shape((2, 4), (2, 5))
    axes = (1,) if d.flag() else tuple(range(2, len(shape))) or (1,)
    op = LRN(d.pick([1e-4, 0.3]), d.pick([0.75, 0.5]), d.pick([1.0, 2.0]), d.pick([1, 3, 5]))
    return Trial(op, [d.array(DType.F32, shape), listed(DType.I64, axes)], frozenset({1}), LOOSE)


def attention(d: Draw) -> Trial:
    batch, causal = d.shape((1, 2), (1, 3)), d.flag()
    rows, keys, width, out = d.ints(4, 1, 5)
    dtype = d.pick((DType.F32, DType.F32, DType.F16))
    inputs = [d.array(dtype, (*batch, *shape)) for shape in ((rows, width), (keys, width), (keys, out))]
    if d.flag() and not causal:
        shape = d.pick([(rows, keys), (*batch, rows, keys), (1, keys)])
        kind = d.pick((dtype, DType.BOOL))
        mask = np.ones(shape, np.bool_) if kind is DType.BOOL else d.array(kind, shape)
        if kind is DType.BOOL and keys > 1:
            mask[..., 0] = False
        inputs.append(mask)
        if d.flag():
            inputs.append(d.array(dtype, d.pick([(), (1,)]), 0.1, 1))
    return Trial(ScaledDotProductAttention(causal), inputs, tolerance=LOOSE)


def recurrent(d: Draw) -> Trial:
    """Cells and sequences, all of their attributes."""
    batch, width, size = d.ints(3, 1, 4)
    kind = d.pick(["rnn", "gru", "lstm"])
    gates, states = {"rnn": (1, 1), "gru": (3, 1), "lstm": (4, 2)}[kind]
    functions = {"rnn": 1, "gru": 2, "lstm": 3}[kind]
    named: dict[str, object] = {"hidden_size": size, "clip": d.pick([0.0, 0.0, 0.7])}
    standard = {"rnn": ("tanh",), "gru": ("sigmoid", "tanh"), "lstm": ("sigmoid", "tanh", "tanh")}[kind]
    named["activations"] = tuple(d.pick(ACTIVATIONS) for _ in range(functions)) if d.flag() else standard
    bias = gates
    if kind == "gru":
        named["linear_before_reset"] = d.flag()
        bias += bool(named["linear_before_reset"])

    def noise(*shape: int) -> np.ndarray:
        return d.array(DType.F32, shape, -1, 1)

    if d.flag():
        inputs = [noise(batch, width), *(noise(batch, size) for _ in range(states)), noise(gates * size, width)]
        inputs += [noise(gates * size, size), noise(bias * size)]
        cell = {"rnn": RNNCell, "gru": GRUCell, "lstm": LSTMCell_4}[kind]
        return Trial(cell(**named), inputs, frozenset({states + 1, states + 2, states + 3}), LOOSE)  # type: ignore[arg-type]
    steps, direction = d.integer(1, 5), d.pick(list(Direction))
    ways = 2 if direction is Direction.BIDIRECTIONAL else 1
    lengths = d.whole(d.pick(INDICES), (batch,), 1, steps) if d.flag() else np.full(batch, steps)
    inputs = [noise(batch, steps, width), *(noise(batch, ways, size) for _ in range(states)), lengths]
    inputs += [noise(ways, gates * size, width), noise(ways, gates * size, size), noise(ways, bias * size)]
    cell = {"rnn": RNNSequence, "gru": GRUSequence, "lstm": LSTMSequence}[kind]
    fixed = frozenset({states + 2, states + 3, states + 4})
    return Trial(cell(**named, direction=direction), inputs, fixed, LOOSE)  # type: ignore[arg-type]


def first_cell(d: Draw) -> Trial:
    """LSTMCell-1: peepholes, and all orders of the gates."""
    batch, width, size = d.ints(3, 1, 4)
    shapes = [(batch, width), (batch, size), (batch, size), (4 * size, width), (4 * size, size), (4 * size,)]
    shapes += [(3 * size,)] if d.flag() else []
    op = LSTMCell_1(size, input_forget=d.flag(), weights_format=d.pick(list(WeightsFormat)))
    return Trial(op, [d.array(DType.F32, s, -1, 1) for s in shapes], frozenset({3, 4, 5, 6}), LOOSE)


def spectrum(d: Draw) -> Trial:
    kind = d.pick([DFT, IDFT, RDFT, IRDFT])
    shape = d.shape((1, 4), (1, 7))
    axes = d.subset(len(shape), 1)
    real = kind is RDFT
    data = d.array(DType.F32, shape if real else (*shape, 2))
    given = d.signed(axes, len(shape)) if real else tuple(a if d.flag() else a - len(shape) - 1 for a in axes)
    if not real:
        given = tuple(a if a >= 0 else a + 1 for a in given)  # the last dimension holds real and imaginary parts
    inputs = [data, listed(d.pick(INDICES), given)]
    if d.flag() or kind is IRDFT:
        inputs.append(listed(DType.I64, tuple(-1 if not d.integer(0, 3) else d.integer(1, 9) for _ in axes)))
    return Trial(kind(), inputs, frozenset({1, 2}), LOOSE)


def short_time(d: Draw) -> Trial:
    size, step = d.integer(4, 16), d.integer(1, 6)
    window = d.array(DType.F32, (d.integer(2, size),), 0.3, 1)
    numbers = [np.array(size), np.array(step)]
    batch = () if d.flag() else (d.integer(1, 3),)
    if d.flag():
        signal = d.array(DType.F32, (*batch, size + d.integer(0, 20)))
        return Trial(STFT(d.flag()), [signal, window, *numbers], frozenset({2, 3}), LOOSE)
    step = d.integer(1, max(len(window) // 2, 1))
    data = d.array(DType.F32, (*batch, size // 2 + 1, d.integer(2, 6), 2))
    inputs = [data, window, np.array(size), np.array(step)]
    if d.flag():
        inputs.append(np.array(d.integer(5, 30)))
    return Trial(ISTFT(d.flag(), d.flag()), inputs, frozenset({2, 3, 4}), LOOSE)


def topk(d: Draw) -> Trial:
    shape = d.shape((1, 4), (1, 7))
    axis = d.axis(len(shape))
    dtype = d.pick((DType.F32, DType.F16, DType.I32, DType.I64, DType.U8, DType.I8))
    count = np.array(d.integer(1, shape[axis]), d.pick(["i4", "i8"]))
    kind, mode = d.pick([TopK, TopK_3, TopK_1]), d.pick(list(Mode))
    data = d.generator().permutation(np.arange(np.prod(shape))).reshape(shape).astype(d.array(dtype, ()).dtype)
    if kind is TopK:
        data = d.array(dtype, shape)  # with equal ones
        op = TopK(axis, mode, d.pick(list(Order)), d.pick(INDICES), True)
        return Trial(op, [data, count], frozenset({1}), EXACT)
    op = kind(axis, mode, d.pick([Order.VALUE, Order.INDEX]), d.pick(INDICES))
    return Trial(op, [data, count], frozenset({1}), EXACT)


def nonzero(d: Draw) -> Trial:
    x = d.whole(d.pick((DType.F32, DType.I32, DType.U8)), d.shape((0, 4)), -1, 1)
    return Trial(NonZero(d.pick(INDICES)), [x], tolerance=EXACT)


def unique(d: Draw) -> Trial:
    shape = d.shape((1, 3), (1, 4))
    x = d.whole(d.pick((DType.F32, DType.I32, DType.I64)), shape, 0, 3)
    inputs = [x, np.array(d.axis(len(shape)))] if d.flag() else [x]
    op = Unique(d.flag(), d.pick(INDICES), d.pick(INDICES))
    return Trial(op, inputs, frozenset({1}), EXACT)


def fake_quantize(d: Draw) -> Trial:
    shape, dtype = d.shape((1, 4), (1, 4)), d.pick((DType.F32, DType.F32, DType.F16))
    limits = (1,) * len(shape) if d.flag() else (1, shape[1], *(1,) * (len(shape) - 2)) if len(shape) > 1 else ()
    low = d.array(dtype, limits, -4, -1)
    inputs = [d.array(dtype, shape, -6, 6), low, (low + d.array(dtype, limits, 2, 6)).astype(low.dtype)]
    inputs += [d.array(dtype, limits, -4, -1), d.array(dtype, limits, 1, 4)]
    op = FakeQuantize(d.pick([2, 5, 16, 255, 256]), AutoBroadcast.NUMPY)
    return Trial(op, inputs, frozenset({1, 2, 3, 4}), LOOSE)


def fake_convert(d: Draw) -> Trial:
    shape, dtype = d.shape((1, 3), (1, 5)), d.pick((DType.F32, DType.F16, DType.BF16))
    x = d.array(dtype, shape, -600, 600)
    inputs = [x, d.array(dtype, d.pick([(1,), shape]), 0.3, 2)]
    if d.flag():
        inputs.append(d.array(dtype, inputs[1].shape, -2, 2))
    return Trial(FakeConvert(d.pick(list(Float8))), inputs, tolerance=LOOSE)


def embedding(d: Draw) -> Trial:
    rows, width, count, bags = d.integer(2, 6), d.integer(1, 4), d.integer(1, 6), d.integer(1, 4)
    index = d.pick(INDICES)
    table = d.array(DType.F32, (rows, width))
    if not d.integer(0, 2):
        places = d.whole(index, (bags, count), 0, rows - 1)
        if d.flag():
            return Trial(d.pick([EmbeddingBagPacked(Bag.MEAN), EmbeddingBagPackedSum()]), [table, places])
        return Trial(EmbeddingBagPacked(Bag.SUM), [table, places, d.array(DType.F32, places.shape)])
    places, spare = d.whole(index, (count,), 0, rows - 1), d.whole(index, (), 0, rows - 1)
    weights = [d.array(DType.F32, (count,))] if d.flag() else []
    if d.flag():
        starts = np.sort(d.whole(index, (bags,), 0, count))
        starts[0] = 0
        how = Bag.SUM if weights else d.pick(list(Bag))
        op = EmbeddingBagOffsetsSum() if how is Bag.SUM and d.flag() else EmbeddingBagOffsets(how)
        return Trial(op, [table, places, starts, spare, *weights])
    ids = np.sort(d.whole(index, (count,), 0, bags - 1))
    number = np.array(bags, ids.dtype)
    return Trial(EmbeddingSegmentsSum(), [table, places, ids, number, spare, *weights], frozenset({3}))


def inverse(d: Draw) -> Trial:
    n = d.integer(1, 5)
    x = d.array(DType.F32, (*d.shape((0, 2), (1, 3)), n, n), -1, 1) + 3 * np.eye(n, dtype=np.float32)
    return Trial(Inverse(d.flag()), [x.astype(np.float32)], tolerance=LOOSE)


TRIALS = [
    matmul,
    grouped,
    einsum,
    normalization,
    local_response,
    attention,
    recurrent,
    first_cell,
    spectrum,
    short_time,
    topk,
    nonzero,
    unique,
    fake_quantize,
    fake_convert,
    embedding,
    inverse,
]
