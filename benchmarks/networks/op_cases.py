"""An operation, or a form of one, each on at least 1e5 elements."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from benchmarks.networks.folder import Array
from benchmarks.networks.op_models import Attribute, Case, Given

RNG = np.random.default_rng(0)
UNARY = {
    "Abs": 1,
    "Acos": 1,
    "Acosh": 4,
    "Asin": 1,
    "Asinh": 4,
    "Atan": 1,
    "Atanh": 4,
    "Ceiling": 1,
    "Cos": 1,
    "Cosh": 1,
    "Elu": 1,
    "Erf": 1,
    "Exp": 1,
    "Floor": 1,
    "Gelu": 7,
    "HSigmoid": 5,
    "HSwish": 4,
    "Log": 1,
    "Mish": 4,
    "Negative": 1,
    "ReLU": 1,
    "Round": 5,
    "Sigmoid": 1,
    "Sign": 1,
    "Sin": 1,
    "Sinh": 1,
    "SoftPlus": 4,
    "SoftSign": 9,
    "Sqrt": 1,
    "Swish": 4,
    "Tan": 1,
    "Tanh": 1,
}
BINARY = (
    "Add",
    "Divide",
    "FloorMod",
    "Maximum",
    "Minimum",
    "Mod",
    "Multiply",
    "Power",
    "SquaredDifference",
    "Subtract",
    "Less",
    "LessEqual",
    "Greater",
    "GreaterEqual",
    "Equal",
    "NotEqual",
)
REDUCTIONS = {
    "ReduceSum": 1,
    "ReduceMax": 1,
    "ReduceMin": 1,
    "ReduceMean": 1,
    "ReduceProd": 1,
    "ReduceL1": 4,
    "ReduceL2": 4,
}


def noise(*shape: int, low: float = 0.1, high: float = 0.9) -> Array:
    return RNG.uniform(low, high, shape).astype(np.float32)


def x(*shape: int, low: float = 0.1, high: float = 0.9) -> Given:
    return Given(noise(*shape, low=low, high=high))


def distinct(*shape: int) -> Given:
    """No two numbers are equal."""
    return Given(RNG.permutation(int(np.prod(shape))).astype(np.float32).reshape(shape))


def ints(*values: int) -> Array:
    return np.array(values, np.int64)


def numbers(shape: tuple[int, ...], limit: int) -> Array:
    return RNG.integers(0, limit, shape).astype(np.int64)


def truths(*shape: int) -> Array:
    return RNG.integers(0, 2, shape).astype(np.bool_)


def counts(*shape: int) -> Array:
    return RNG.integers(0, 30, shape).astype(np.int32)


def boxes(n: int, size: float) -> Array:
    """x0, y0, x1, y1."""
    corner = RNG.uniform(0, size * 0.8, (n, 2))
    return np.concatenate([corner, corner + RNG.uniform(size / 50, size / 5, (n, 2))], 1).astype(np.float32)


def elementwise() -> Iterator[Case]:
    for name, opset in UNARY.items():
        attributes: dict[str, Attribute] = {"alpha": 1.0} if name == "Elu" else {}
        low = 1.1 if name == "Acosh" else 0.1
        yield Case(name, opset, [x(64, 4096, low=low, high=low + 0.8)], attributes)
    for name in BINARY:
        yield Case(name, 1, [x(64, 4096), x(64, 4096)])
    for name in ("IsFinite", "IsInf", "IsNaN"):
        yield Case(name, 10, [x(64, 4096)])
    for name in ("And", "Or", "Xor"):
        yield Case(f"Logical{name}", 2 if name == "Xor" else 1, [Given(truths(64, 4096)), Given(truths(64, 4096))])
        yield Case(f"Bitwise{name}", 13, [Given(counts(64, 4096)), Given(counts(64, 4096))])
    yield Case("LogicalNot", 1, [Given(truths(64, 4096))])
    yield Case("BitwiseNot", 13, [Given(counts(64, 4096))])
    for name in ("Left", "Right"):
        yield Case(f"Bitwise{name}Shift", 15, [Given(counts(64, 4096)), Given(counts(64, 4096))])
    yield Case("HardSigmoid", 1, [x(64, 4096), np.array(0.2, np.float32), np.array(0.5, np.float32)])
    yield Case("Selu", 1, [x(64, 4096, low=-1), np.array(1.7, np.float32), np.array(1.05, np.float32)])
    yield Case("Add", 1, [x(8, 64, 32, 32), x(1, 64, 1, 1)], note="by channel")
    yield Case("Select", 1, [Given(truths(64, 4096)), x(64, 4096), x(64, 4096)])
    yield Case("Clamp", 1, [x(64, 4096)], {"min": 0.2, "max": 0.7})
    yield Case("PReLU", 1, [x(8, 64, 32, 32, low=-1), noise(64)])
    yield Case("Convert", 1, [x(64, 4096, high=99)], {"destination_type": "i32"}, note="to i32")
    yield Case("Convert", 1, [x(64, 4096, high=99)], {"destination_type": "f16"}, note="to f16")
    limits = [noise(1, 64, 1, 1, low=-1, high=0), noise(1, 64, 1, 1, low=1, high=2)]
    yield Case("FakeQuantize", 1, [x(8, 64, 32, 32), *limits, *limits], {"levels": 256})


def along_axes() -> Iterator[Case]:
    for name, opset in REDUCTIONS.items():
        for axis in (1, 2) if name in ("ReduceSum", "ReduceMax") else (2,):
            yield Case(name, opset, [x(16, 128, 128), ints(axis)], {"keep_dims": False}, note=f"axis {axis} of 3")
    for name in ("ReduceLogicalAnd", "ReduceLogicalOr"):
        yield Case(name, 1, [Given(truths(16, 128, 128)), ints(2)], {"keep_dims": False}, note="axis 2 of 3")
    yield Case("ReduceMean", 1, [x(8, 64, 32, 32), ints(2, 3)], {"keep_dims": True}, note="of pictures")
    for axis in (1, 2):
        yield Case("SoftMax", 8, [x(16, 128, 128)], {"axis": axis}, note=f"axis {axis} of 3")
        yield Case("CumSum", 3, [x(16, 128, 128), np.array(axis)], note=f"axis {axis} of 3")
    yield Case("LogSoftmax", 5, [x(64, 4096)], {"axis": 1})
    best: dict[str, Attribute] = {"axis": 1, "mode": "max", "sort": "value"}
    yield Case("TopK", 11, [distinct(64, 4096), np.array(10)], best, 2, "10 of 4096")
    yield Case("TopK", 11, [distinct(16, 8192), np.array(1024)], best, 2, "1024 of 8192")
    yield Case("TopK", 11, [distinct(16, 8192), np.array(8192)], best, 2, "all of 8192")
    yield Case("TopK", 11, [distinct(64, 256, 16), np.array(5)], best, 2, "axis 1 of 3")
    yield Case("SearchSorted", 15, [Given(np.sort(noise(16, 256))), x(16, 1024)])
    yield Case("Bucketize", 3, [x(64, 4096), np.sort(noise(64))], {"output_type": "i32", "with_right_bound": True})


def normalizations() -> Iterator[Case]:
    parameters = [noise(64) for _ in range(4)]
    yield Case("BatchNormInference", 5, [x(8, 64, 32, 32), *parameters], {"epsilon": 1e-5})
    eps: dict[str, Attribute] = {"eps": 1e-5, "normalize_variance": True, "eps_mode": "inside_sqrt"}
    yield Case("MVN", 6, [x(64, 4096), ints(1)], eps)
    yield Case("MVN", 6, [x(8, 64, 32, 32), ints(2, 3)], eps, note="of pictures")
    yield Case("NormalizeL2", 1, [x(8, 64, 32, 32), ints(1)], {"eps": 1e-5, "eps_mode": "add"})
    yield Case("GroupNormalization", 12, [x(8, 64, 32, 32), noise(64), noise(64)], {"num_groups": 8, "epsilon": 1e-5})
    yield Case("LRN", 1, [x(4, 64, 32, 32), ints(1)], {"alpha": 1e-4, "beta": 0.75, "bias": 1.0, "size": 5})
    yield Case("GRN", 1, [x(8, 64, 32, 32)], {"bias": 1.0})


def movement() -> Iterator[Case]:
    for order in ((0, 2, 3, 1), (0, 2, 1, 3), (3, 2, 1, 0)):
        yield Case("Transpose", 1, [x(8, 64, 32, 32), ints(*order)], note=str(order).replace(" ", ""))
    yield Case("Concat", 1, [x(8, 64, 32, 32), x(8, 32, 32, 32)], {"axis": 1})
    yield Case("Split", 1, [x(8, 64, 32, 32), np.array(1)], {"num_splits": 2}, 2)
    yield Case("VariadicSplit", 1, [x(8, 64, 32, 32), np.array(1), ints(16, 48)], outputs=2)
    part = [x(8, 64, 32, 32), x(8, 64, 30, 30), ints(1, 1), ints(31, 31), ints(1, 1), ints(2, 3)]
    yield Case("SliceScatter", 15, part)
    yield Case("Slice", 8, [x(8, 64, 32, 32), ints(1, 1), ints(31, 31), ints(1, 1), ints(2, 3)])
    yield Case("Slice", 8, [x(8, 64, 32, 32), ints(31, 31), ints(-33, -33), ints(-1, -1), ints(2, 3)], note="backwards")
    bounds = [ints(0, 0, 0, 0), ints(8, 64, 64, 64), ints(1, 1, 2, 2)]
    yield Case("StridedSlice", 1, [x(8, 64, 64, 64), *bounds], {"begin_mask": [0] * 4, "end_mask": [0] * 4})
    for mode in ("constant", "reflect"):
        yield Case("Pad", 12, [x(8, 32, 32, 32), ints(0, 0, 2, 2), ints(0, 0, 2, 2)], {"pad_mode": mode}, note=mode)
    yield Case("Tile", 1, [x(8, 64, 32), ints(2, 2, 4)])
    yield Case("Broadcast", 3, [x(64, 1, 32), ints(8, 64, 32, 32)], {"mode": "numpy"})
    yield Case("Gather", 8, [x(4096, 256), numbers((1024,), 4096), np.array(0)], note="rows")
    yield Case("Gather", 8, [x(256, 4096), numbers((1024,), 4096), np.array(1)], note="columns")
    yield Case("GatherElements", 6, [x(256, 1024), numbers((256, 1024), 1024)], {"axis": 1})
    yield Case("GatherND", 8, [x(64, 64, 64), numbers((4096, 2), 64)])
    places = np.argsort(RNG.random((256, 1024)), 1)[:, :512].astype(np.int64)
    yield Case("ScatterElementsUpdate", 12, [x(256, 1024), places, x(256, 512), np.array(1)])
    added: dict[str, Attribute] = {"reduction": "sum"}
    yield Case("ScatterElementsUpdate", 12, [x(256, 1024), places, x(256, 512), np.array(1)], added, note="sum")
    pairs = np.stack(np.unravel_index(RNG.permutation(4096)[:2048], (64, 64)), -1).astype(np.int64)
    yield Case("ScatterNDUpdate", 15, [x(64, 64, 64), pairs, x(2048, 64)])
    rows = RNG.permutation(2048)[:1024].astype(np.int64)
    yield Case("ScatterUpdate", 3, [x(2048, 128), rows, x(1024, 128), np.array(0)])
    for name in ("SpaceToDepth", "DepthToSpace"):
        yield Case(name, 1, [x(8, 64, 32, 32)], {"block_size": 2, "mode": "blocks_first"})
    ends = Given(np.full(16, 100, np.int64))
    yield Case("ReverseSequence", 1, [x(16, 128, 128), ends], {"batch_axis": 0, "seq_axis": 1})
    yield Case("Roll", 7, [x(16, 128, 128), ints(3, 5), ints(1, 2)])
    yield Case("ShuffleChannels", 1, [x(8, 64, 32, 32)], {"axis": 1, "group": 4})
    some = Given(RNG.integers(0, 2, (256, 1024)).astype(np.float32))
    yield Case("NonZero", 3, [some])
    yield Case("Unique", 10, [Given(RNG.integers(0, 1000, 131072).astype(np.float32))], outputs=4)
    yield Case("Eye", 9, [np.array(512), np.array(512), np.array(0)], {"output_type": "f32"})
    yield Case(
        "Range",
        4,
        [Given(np.array(0.0, np.float32)), Given(np.array(131072.0, np.float32)), np.array(1.0, np.float32)],
        {"output_type": "f32"},
    )
    yield Case("Reverse", 1, [x(16, 128, 128), ints(1)], {"mode": "index"})
    yield Case("BatchToSpace", 2, [x(16, 32, 16, 16), ints(1, 1, 2, 2), ints(0, 0, 0, 0), ints(0, 0, 0, 0)])
    yield Case("SpaceToBatch", 2, [x(4, 32, 32, 32), ints(1, 1, 2, 2), ints(0, 0, 0, 0), ints(0, 0, 0, 0)])
    yield Case("ConvertLike", 1, [x(64, 4096, high=99), np.array(0, np.int32)])
    on, off = np.array(1.0, np.float32), np.array(0.0, np.float32)
    yield Case("OneHot", 1, [Given(numbers((4096,), 64)), np.array(64), on, off], {"axis": 1})
    patches: dict[str, Attribute] = {"sizes": [3, 3], "strides": [1, 1], "rates": [1, 1], "auto_pad": "same_upper"}
    yield Case("ExtractImagePatches", 3, [x(4, 16, 32, 32)], patches)
    window: dict[str, Attribute] = {"strides": [1, 1], "dilations": [1, 1], "pads_begin": [0, 0], "pads_end": [0, 0]}
    yield Case("Col2Im", 15, [x(4, 16 * 9, 900), ints(32, 32), ints(3, 3)], window)


def windows() -> Iterator[Case]:
    one: dict[str, Attribute] = {"strides": [1, 1], "dilations": [1, 1], "pads_begin": [1, 1], "pads_end": [1, 1]}
    yield Case("Convolution", 1, [x(1, 64, 56, 56), noise(64, 64, 3, 3)], one)
    yield Case("GroupConvolution", 1, [x(1, 128, 56, 56), noise(128, 1, 1, 3, 3)], one, note="depthwise")
    two = {**one, "strides": [2, 2]}
    yield Case("ConvolutionBackpropData", 1, [x(1, 64, 28, 28), noise(64, 32, 4, 4)], two)
    yield Case("GroupConvolutionBackpropData", 1, [x(1, 64, 28, 28), noise(64, 1, 1, 4, 4)], two)
    offsets = Given(noise(1, 18, 32, 32, low=-2, high=2))
    groups: dict[str, Attribute] = {"group": 1, "deformable_group": 1, "bilinear_interpolation_pad": False}
    yield Case("DeformableConvolution", 8, [x(1, 64, 32, 32), offsets, noise(64, 64, 3, 3)], {**one, **groups})
    pool: dict[str, Attribute] = {"kernel": [3, 3], "strides": [2, 2], "pads_begin": [1, 1], "pads_end": [1, 1]}
    yield Case("MaxPool", 1, [x(4, 64, 56, 56)], {**pool, "rounding_type": "floor"})
    yield Case("MaxPool", 8, [x(4, 64, 56, 56)], {**pool, "rounding_type": "floor", "dilations": [1, 1]}, 2, "indices")
    yield Case("AvgPool", 1, [x(4, 64, 56, 56)], {**pool, "exclude-pad": True, "rounding_type": "floor"})
    yield Case("AdaptiveAvgPool", 8, [x(4, 64, 56, 56), ints(7, 7)])
    yield Case("AdaptiveMaxPool", 8, [x(4, 64, 56, 56), ints(7, 7)], {"index_element_type": "i32"}, 2)
    yield Case("MatMul", 1, [x(256, 512), noise(512, 512)])
    yield Case("MatMul", 1, [x(256, 512), x(512, 512)], {"transpose_b": True}, note="of inputs, transposed")
    yield Case("Einsum", 7, [x(8, 64, 128), x(8, 128, 64)], {"equation": "bij,bjk->bik"})
    qkv = [x(1, 8, 256, 64) for _ in range(3)]
    yield Case("ScaledDotProductAttention", 13, qkv, {"causal": True})
    yield Case("Inverse", 14, [Given(np.add(noise(64, 48, 48), 30 * np.eye(48, dtype=np.float32)))])


def pictures() -> Iterator[Case]:
    for mode in ("nearest", "linear_onnx", "cubic"):
        attributes: dict[str, Attribute] = {"mode": mode, "shape_calculation_mode": "sizes"}
        yield Case("Interpolate", 11, [x(1, 64, 56, 56), ints(112, 112), ints(2, 3)], attributes, note=mode)
    for mode in ("bilinear", "bicubic", "nearest"):
        grid = Given(noise(1, 128, 128, 2, low=-1, high=1))
        yield Case("GridSample", 9, [x(1, 16, 64, 64), grid], {"mode": mode}, note=mode)
    rois, batch = boxes(100, 56), np.zeros(100, np.int32)
    cells: dict[str, Attribute] = {"pooled_h": 7, "pooled_w": 7, "spatial_scale": 1.0}
    align = {**cells, "sampling_ratio": 2, "mode": "avg"}
    yield Case("ROIAlign", 9, [x(1, 64, 56, 56), Given(rois), Given(batch)], align)
    turned = np.concatenate([rois, RNG.uniform(-1, 1, (100, 1)).astype(np.float32)], 1)
    yield Case(
        "ROIAlignRotated",
        15,
        [x(1, 64, 56, 56), Given(turned), Given(batch)],
        {
            **cells,
            "sampling_ratio": 2,
            "clockwise_mode": True,
        },
    )
    with_batch = np.concatenate([np.zeros((100, 1), np.float32), rois], 1)
    yield Case("ROIPooling", 2, [x(1, 64, 56, 56), Given(with_batch)], {**cells, "method": "max"})
    ps: dict[str, Attribute] = {"output_dim": 8, "group_size": 7, "spatial_scale": 1.0, "mode": "average"}
    yield Case("PSROIPooling", 1, [x(1, 392, 56, 56), Given(with_batch)], ps)
    planes = Given(RNG.integers(0, 255, (1, 720, 640, 1)).astype(np.uint8))
    yield Case("NV12toRGB", 8, [planes])
    yield Case("ReorgYolo", 2, [x(1, 64, 64, 64)], {"stride": 2})
    corners = boxes(2000, 1.0)[None]
    scores = Given(RNG.permutation(4000).astype(np.float32).reshape(1, 2, 2000) / 4000)
    limits = [np.array(200), np.array(0.5, np.float32), np.array(0.1, np.float32)]
    yield Case("NonMaxSuppression", 4, [Given(corners), scores, *limits])
    yield Case("NonMaxSuppression", 9, [Given(corners), scores, *limits], {}, 3)
    best: dict[str, Attribute] = {"nms_top_k": 200, "keep_top_k": 200, "score_threshold": 0.1, "background_class": -1}
    yield Case("MatrixNms", 8, [Given(corners), scores], best, 3)
    yield Case("MulticlassNms", 9, [Given(corners), scores], {**best, "iou_threshold": 0.5}, 3)
    yield Case("I420toRGB", 8, [planes])
    yield Case("NMSRotated", 13, [Given(np.concatenate([corners, noise(1, 2000, 1)], 2)), scores, *limits], outputs=3)
    yield Case(
        "PriorBox",
        8,
        [ints(64, 64), ints(512, 512)],
        {
            "min_size": [16.0],
            "max_size": [38.0],
            "aspect_ratio": [2.0],
            "flip": True,
            "step": 8.0,
            "offset": 0.5,
            "variance": [0.1, 0.1, 0.2, 0.2],
        },
    )
    yield Case(
        "RegionYolo",
        1,
        [x(1, 255, 26, 26)],
        {
            "anchors": [10.0, 14.0],
            "classes": 80,
            "coords": 4,
            "num": 3,
            "do_softmax": True,
            "axis": 1,
            "end_axis": 3,
        },
    )
    yield Case(
        "PriorBoxClustered",
        1,
        [ints(64, 64), ints(512, 512)],
        {
            "width": [16.0, 38.0],
            "height": [16.0, 38.0],
            "step": 8.0,
            "offset": 0.5,
            "variance": [0.1, 0.1, 0.2, 0.2],
        },
    )
    pyramid = [x(1, 64, 64, 64), x(1, 64, 32, 32)]
    levels: dict[str, Attribute] = {"output_size": 7, "pyramid_scales": [4, 8], "sampling_ratio": 2, "aligned": False}
    yield Case("ExperimentalDetectronROIFeatureExtractor", 6, [Given(np.multiply(rois, 4)), *pyramid], levels, 2)


def signals() -> Iterator[Case]:
    for n in (1024, 1000, 1021):
        yield Case("DFT", 7, [x(128, n, 2), ints(1)], note=f"of {n}")
    yield Case("DFT", 7, [x(4, 256, 256, 2), ints(1, 2)], note="of 256x256")
    yield Case("RDFT", 9, [x(128, 1024), ints(1)])
    yield Case("IDFT", 7, [x(128, 1024, 2), ints(1)])
    yield Case("IRDFT", 9, [x(128, 513, 2), ints(1)])
    yield Case("STFT", 15, [x(4, 48000), noise(512), np.array(512), np.array(256)], {"transpose_frames": False})


def sequences() -> Iterator[Case]:
    lengths = np.full(8, 32, np.int64)
    activations = {"RNN": "tanh", "GRU": "sigmoid,tanh", "LSTM": "sigmoid,tanh,tanh"}
    for name, gates in (("RNN", 1), ("GRU", 3), ("LSTM", 4)):
        states = [Given(noise(8, 1, 128, low=-1, high=1)) for _ in range(2 if name == "LSTM" else 1)]
        weights = [noise(1, gates * 128, 128, low=-0.1, high=0.1) for _ in range(2)]
        bias = noise(1, gates * 128, low=-0.1, high=0.1)
        given = [x(8, 32, 128, low=-1), *states, lengths, *weights, bias]
        shared: dict[str, Attribute] = {"hidden_size": 128, "activations": activations[name]}
        outputs = 3 if name == "LSTM" else 2
        yield Case(f"{name}Sequence", 5, given, {**shared, "direction": "forward"}, outputs)
        one = [x(512, 128), *(Given(noise(512, 128)) for _ in states), weights[0][0], weights[1][0], bias[0]]
        yield Case(f"{name}Cell", 4 if name == "LSTM" else 3 if name == "GRU" else 1, one, shared, outputs - 1)
    yield Case("CTCGreedyDecoderSeqLen", 6, [x(64, 64, 64), Given(np.full(64, 64, np.int32))], outputs=2)
    masks = np.ones((64, 64), np.float32)
    yield Case("CTCGreedyDecoder", 1, [x(64, 64, 64), Given(masks)])
    labels, logits = [Given(np.full(64, n, np.int32)) for n in (64, 16)], x(64, 64, 64)
    kinds = Given(RNG.integers(0, 63, (64, 64)).astype(np.int32))
    given = [logits, labels[0], kinds, labels[1], np.array(63, np.int32)]
    yield Case("CTCLoss", 4, given, {"ctc_merge_repeated": True})
    starts = Given(np.arange(0, 2048, 8))
    bags = Given(numbers((2048,), 4096))
    yield Case("EmbeddingBagOffsetsSum", 3, [noise(4096, 128), bags, starts])
    yield Case("EmbeddingBagPackedSum", 3, [noise(4096, 128), Given(numbers((256, 8), 4096))])
    yield Case("EmbeddingBagOffsets", 15, [noise(4096, 128), bags, starts], {"reduction": "sum"})
    yield Case("EmbeddingBagPacked", 15, [noise(4096, 128), Given(numbers((256, 8), 4096))], {"reduction": "sum"})
    sampled: dict[str, Attribute] = {"convert_type": "i32", "with_replacement": True, "log_probs": False}
    yield Case("Multinomial", 13, [x(64, 4096), np.array([100])], {**sampled, "global_seed": 1, "op_seed": 2})
    span = [ints(64, 4096), np.array(0.0, np.float32), np.array(1.0, np.float32)]
    yield Case("RandomUniform", 8, span, {"output_type": "f32", "global_seed": 1, "op_seed": 2})
    ids = Given(np.repeat(np.arange(256), 8))
    yield Case("EmbeddingSegmentsSum", 3, [noise(4096, 128), bags, ids, np.array(256)])
    trees = [Given(RNG.integers(0, 8, (100, 128, 8)).astype(np.int32)) for _ in range(2)]
    yield Case("GatherTree", 1, [*trees, Given(np.full(128, 100, np.int32)), np.array(7, np.int32)])


def cases() -> list[Case]:
    groups = (elementwise, along_axes, normalizations, movement, windows, pictures, signals, sequences)
    return [case for group in groups for case in group()]
