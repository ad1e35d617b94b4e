"""Convolution, pooling, normalisation, softmax, losses and attention."""

from __future__ import annotations

from typing import Any

import numpy as np

from tests.frontends.onnx.case import Case, case, known, row
from tests.frontends.onnx.models import Numbers, i64

N = Numbers(6)
A, IMAGE, LINE = N.f32(2, 3, 4), N.f32(2, 4, 7, 6), N.f32(2, 3, 9)
CHANNELS = [known(N.f32(4)), known(N.f32(4))]
STATISTICS = [*CHANNELS, known(N.f32(4)), known(np.abs(N.f32(4)) + 0.1)]
LABELS = N.rng.integers(0, 4, (2, 7, 6))
CLASSES = N.f32(2, 4, 7, 6)
ROIS = np.array([[0.5, 0.5, 4.0, 5.0], [1.0, 0.0, 5.5, 3.0]], np.float32)
OF_IMAGES = np.array([[0, 0, 0, 4, 5], [1, 1, 2, 5, 6]], np.float32)
CORNERS = N.f32(1, 1, 2, 2), i64(5, 7, 13, 15).reshape(1, 1, 2, 2)
PER_GROUP = known(N.f32(2)), known(N.f32(2))
Q, K, V = N.f32(2, 4, 3, 8), N.f32(2, 4, 5, 8), N.f32(2, 4, 5, 6)
WINDOW = {"kernel_shape": [3, 2], "strides": [2, 1], "pads": [1, 0, 1, 1]}


def rounded_up(op: str, shape: tuple[int, ...], **attrs: Any) -> Case:
    return case(op, N.f32(*shape), ceil_mode=1, **attrs)


ROUNDED_UP = [  # such a window is divided by data and declared padding
    rounded_up("AveragePool", (1, 1, 8, 8), kernel_shape=[3, 3], strides=[4, 4], pads=[1] * 4, count_include_pad=1),
    rounded_up("AveragePool", (1, 2, 8), kernel_shape=[3], strides=[4], pads=[1, 0], count_include_pad=1),
    rounded_up("AveragePool", (1, 2, 9), kernel_shape=[3], strides=[4], pads=[0, 1], count_include_pad=1, version=11),
    rounded_up(
        "AveragePool", (1, 2, 8, 9), kernel_shape=[1, 3], strides=[1, 4], dilations=[1, 2], pads=[0, 0, 0, 1],
        count_include_pad=1,
    ),
    rounded_up(
        "AveragePool", (1, 2, 8, 7, 8), kernel_shape=[2, 3, 2], strides=[2, 4, 2], pads=[0, 0, 1, 0, 1, 0],
        count_include_pad=1,
    ),
    rounded_up("AveragePool", (1, 2, 8, 7), kernel_shape=[3, 2], strides=[2, 3], pads=[1, 0, 1, 1]),
    rounded_up("AveragePool", (1, 2, 8, 7), kernel_shape=[3, 2], strides=[2, 3], auto_pad="VALID", count_include_pad=1),
    rounded_up(
        "AveragePool", (1, 2, 7, 6), kernel_shape=[3, 3], strides=[2, 2], auto_pad="SAME_LOWER", count_include_pad=1,
    ),
    rounded_up("LpPool", (1, 2, 6, 8, 8), kernel_shape=[3, 1, 2], strides=[2, 2, 1], auto_pad="VALID", p=1),
    rounded_up("LpPool", (1, 2, 8, 7), kernel_shape=[3, 2], strides=[3, 2], pads=[1, 0, 0, 1], p=3),
    rounded_up("MaxPool", (1, 2, 8, 9), kernel_shape=[3, 2], strides=[2, 3], pads=[1, 0, 1, 1], dilations=[2, 1]),
]  # fmt: skip
CASES = [
    case("Conv", row(IMAGE, 1), known(N.f32(6, 2, 3, 3)), known(N.f32(6)), group=2, pads=[1, 0, 2, 1], strides=[2, 1]),
    case("Conv", row(IMAGE, 1), known(N.f32(3, 4, 3, 3)), auto_pad="SAME_LOWER", strides=[2, 2]),
    case("Conv", row(IMAGE, 1), known(N.f32(3, 4, 2, 3)), auto_pad="SAME_UPPER", dilations=[2, 1], by_evaluator=True),
    case("Conv", row(LINE, 1), known(N.f32(4, 3, 3)), auto_pad="VALID"),
    case(
        "ConvTranspose", row(IMAGE, 1), known(N.f32(4, 3, 3, 3)), known(N.f32(3)), strides=[2, 2], pads=[1, 1, 0, 1],
        output_padding=[1, 0],
    ),
    case("ConvTranspose", row(IMAGE, 1), known(N.f32(4, 1, 3, 2)), group=2, dilations=[1, 2]),
    case("ConvTranspose", N.f32(1, 2, 5), known(N.f32(2, 3, 4)), strides=[3], output_shape=[15], open=False),
    case("ConvTranspose", row(IMAGE, 1), known(N.f32(4, 3, 3, 3)), auto_pad="SAME_UPPER", strides=[2, 2]),
    case("Conv", row(LINE, 1), known(N.f32(4, 3, 3)), auto_pad=""),
    case("ConvTranspose", row(IMAGE, 1), known(N.f32(4, 3, 3, 2)), auto_pad=""),
    case("DeformConv", N.f32(1, 2, 5, 4), known(N.f32(3, 2, 3, 2)), N.f32(1, 12, 3, 3), open=False),
    case(
        "DeformConv", N.f32(1, 2, 5, 4), known(N.f32(3, 2, 3, 2)), N.f32(1, 12, 3, 3), known(N.f32(3)),
        N.f32(1, 6, 3, 3), open=False,
    ),
    case("MaxPool", IMAGE, **WINDOW),
    case("MaxPool", IMAGE, **WINDOW, ceil_mode=1),
    case("MaxPool", IMAGE, **WINDOW, dilations=[1, 2]),
    case("MaxPool", IMAGE, kernel_shape=[2, 2], strides=[2, 2], outputs=2),
    case("MaxPool", IMAGE, kernel_shape=[2, 2], strides=[2, 2], storage_order=1, outputs=2, open=False),
    case("MaxPool", LINE, kernel_shape=[3], auto_pad="SAME_UPPER", strides=[2]),
    case("MaxPool", LINE, kernel_shape=[3], auto_pad=""),
    case("AveragePool", IMAGE, **WINDOW),
    case("AveragePool", IMAGE, **WINDOW, count_include_pad=1),
    case("AveragePool", IMAGE, **WINDOW, count_include_pad=1, ceil_mode=1),
    case("AveragePool", IMAGE, **WINDOW, ceil_mode=1),
    case("AveragePool", IMAGE, **WINDOW, dilations=[2, 2]),
    *ROUNDED_UP,
    case("LpPool", IMAGE, **WINDOW),
    case("LpPool", IMAGE, **WINDOW, p=1),
    case("LpPool", IMAGE, **WINDOW, p=3),
    *(case(op, IMAGE) for op in ("GlobalAveragePool", "GlobalMaxPool")),
    *(case("GlobalLpPool", IMAGE, version=21, p=p) for p in (2, 3)),
    case("MaxUnpool", *CORNERS, kernel_shape=[2, 2], strides=[2, 2], open=False),
    case(  # ONNX Runtime takes the indices for those of the larger image
        "MaxUnpool", *CORNERS, known([1, 1, 5, 5]), kernel_shape=[2, 2], strides=[2, 2], open=False, by_evaluator=True,
    ),
    case("MaxRoiPool", IMAGE, OF_IMAGES, pooled_shape=[2, 3], version=21, open=False),
    case("RoiAlign", IMAGE, row(ROIS), i64(0, 1), version=21, output_height=2, output_width=3, sampling_ratio=2),
    case("RoiAlign", IMAGE, row(ROIS), i64(1, 0), version=21, coordinate_transformation_mode="output_half_pixel"),
    case("RoiAlign", IMAGE, row(ROIS), i64(1, 0), version=10, output_height=3, spatial_scale=0.5),
    case("RoiAlign", IMAGE, row(ROIS), i64(1, 0), version=21, mode="max", output_height=2, output_width=3),
    case("BatchNormalization", IMAGE, *STATISTICS),
    case("BatchNormalization", IMAGE, *STATISTICS, epsilon=0.1),
    case("BatchNormalization", A, *(known(np.abs(N.f32(3, 4))) for _ in range(4)), version=8, spatial=0),
    case("BatchNormalization", IMAGE, *STATISTICS, version=8, spatial=1),
    case("BatchNormalization", IMAGE, *STATISTICS, training_mode=1, outputs=3, tolerance=1e-4),
    case("BatchNormalization", IMAGE, *STATISTICS, training_mode=1, momentum=0.5, outputs=3, tolerance=1e-4),
    case("InstanceNormalization", IMAGE, *CHANNELS, tolerance=1e-4),
    case("LayerNormalization", A, known(N.f32(4)), known(N.f32(4)), tolerance=1e-4),
    case("LayerNormalization", A, known(N.f32(3, 4)), axis=1, epsilon=0.01, outputs=3, tolerance=1e-4),
    case("RMSNormalization", A, known(N.f32(4)), tolerance=1e-4),
    case("RMSNormalization", A, known(N.f32(3, 4)), axis=-2, epsilon=0.1, tolerance=1e-4),
    case("SimplifiedLayerNormalization", A, known(N.f32(4)), tolerance=1e-4),
    case("GroupNormalization", row(IMAGE, 1), *CHANNELS, num_groups=2, tolerance=1e-4),
    case("GroupNormalization", row(IMAGE, 1), *PER_GROUP, version=18, num_groups=2, tolerance=1e-4),
    case("LRN", IMAGE, size=3),
    case("LRN", IMAGE, size=5, alpha=0.5, beta=0.5, bias=2.0),
    *(case("LRN", N.f32(4, 4, 2, 3), size=n, alpha=0.5, beta=0.5, by_evaluator=True) for n in (2, 4)),
    *(case("LpNormalization", A, axis=axis, p=p) for axis, p in ((-1, 2), (1, 1))),
    case("LpNormalization", np.zeros((2, 3), np.float32)),
    case("MeanVarianceNormalization", IMAGE, tolerance=1e-4),
    case("MeanVarianceNormalization", IMAGE, axes=[1, 3], tolerance=1e-4),
    *(case(op, A, axis=axis) for op in ("Softmax", "LogSoftmax", "Hardmax") for axis in (-1, 1)),
    *(case(op, A) for op in ("Softmax", "LogSoftmax", "Hardmax")),
    *(case(op, A, version=11) for op in ("Softmax", "LogSoftmax", "Hardmax")),
    case("Softmax", A.astype(np.float16), axis=1),
    *(
        case("NegativeLogLikelihoodLoss", CLASSES, LABELS, reduction=how, open=False)
        for how in ("none", "sum", "mean")
    ),
    *(
        case("NegativeLogLikelihoodLoss", CLASSES, LABELS, known(np.abs(N.f32(4))), ignore_index=i, open=False)
        for i in (1, -1)
    ),
    *(
        case("SoftmaxCrossEntropyLoss", CLASSES, LABELS, reduction=how, outputs=2, open=False)
        for how in ("none", "sum", "mean")
    ),
    case("SoftmaxCrossEntropyLoss", CLASSES, LABELS, known(np.abs(N.f32(4))), ignore_index=2, outputs=1, open=False),
    case("Attention", Q, K, V, tolerance=1e-4),
    case("Attention", Q, K, V, is_causal=1, scale=0.3, tolerance=1e-4),
    case("Attention", Q, K, V, N.f32(3, 5), softcap=2.0, tolerance=1e-4),
    case("Attention", Q, K, V, N.f32(2, 1, 3, 5) > 0, tolerance=1e-4, outputs=(0, 3), qk_matmul_output_mode=1),
    case("Attention", N.f32(2, 3, 16), N.f32(2, 5, 8), N.f32(2, 5, 8), q_num_heads=4, kv_num_heads=2, tolerance=1e-4),
    case("Attention", Q, K, K, None, N.f32(2, 4, 2, 8), N.f32(2, 4, 2, 8), outputs=3, tolerance=1e-4),
    case("RotaryEmbedding", row(N.f32(2, 4, 3, 8)), N.f32(9, 4), N.f32(9, 4), i64(0, 1, 2, 4, 3, 2).reshape(2, 3)),
    case("RotaryEmbedding", row(N.f32(2, 3, 16)), N.f32(2, 3, 4), N.f32(2, 3, 4), num_heads=2, interleaved=1),
    case(
        "RotaryEmbedding", row(N.f32(2, 3, 16)), N.f32(2, 3, 2), N.f32(2, 3, 2), num_heads=2, rotary_embedding_dim=4,
    ),
]  # fmt: skip
