"""Layers of Caffe with their parameters, inputs and blobs. Needs NumPy alone: `make.py` runs them by OpenCV.

A case without `wanted` has OpenCV's result, stored in `cases.npz`; the others say what is right: Caffe computes
otherwise than OpenCV, or OpenCV does not read the layer.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from tests.frontends.caffe.nets import inputs_of, layer, written

Array = np.ndarray[Any, np.dtype[Any]]
rng = np.random.default_rng(5)


def numbers(*shape: int, low: float = -2, high: float = 2) -> Array:
    return rng.uniform(low, high, shape).astype(np.float32)


@dataclass
class Case:
    """A layer. `wanted`: its results as a function of the inputs and the blobs."""

    kind: str
    text: str
    inputs: Sequence[Array]
    blobs: Sequence[Array] = ()
    wanted: Callable[..., Any] | None = None
    tops: int = 1
    asked: tuple[str, str] | None = None  # the type and the parameters that OpenCV has for it
    name: str = ""

    def write(self, folder: Path, kind: str = "", text: str = "") -> Path:
        """Write the network of this layer, or of another one."""
        bottoms = [f"x{i}" for i in range(len(self.inputs))]
        tops = [f"y{i}" for i in range(self.tops)]
        head = inputs_of({f"x{i}": x.shape for i, x in enumerate(self.inputs)})
        return written(
            folder,
            head + layer(kind or self.kind, "layer", bottoms, tops, text if kind else self.text),
            {"layer": self.blobs},
        )


X = numbers(2, 6, 7, 8)
Y = numbers(2, 6, 7, 8)
POSITIVE = numbers(2, 6, 7, 8, low=0.1)
MATRIX = numbers(3, 5)
GRAY = numbers(1, 1, 4, 5)


def along(p: Array, axis: int = 1, rank: int = 4) -> Array:
    return p.reshape(*[1] * axis, *p.shape, *[1] * (rank - axis - p.ndim))


def normalised(x: Array, axes: tuple[int, ...], eps: float, variance: bool = True) -> Array:
    gap = x - x.mean(axes, keepdims=True)
    return gap / (np.sqrt((gap * gap).mean(axes, keepdims=True)) + eps) if variance else gap


def around(x: Array, size: int) -> Array:
    """Sum channels around each channel."""
    wide = np.pad(x, ((0, 0), (size // 2, size // 2), (0, 0), (0, 0)))
    return sum((wide[:, i : i + x.shape[1]] for i in range(size)), np.zeros_like(x))


def sigmoid(x: Array) -> Array:
    return 1 / (1 + np.exp(-x))


def regions(x: Array) -> Array:
    """Take sigmoids of all channels of regions of 7 but of the logarithms of sizes, which are 2 and 3."""
    return np.where(np.isin(np.arange(x.shape[1]) % 7, (2, 3)).reshape(1, -1, 1, 1), x, sigmoid(x))


def reorganised(x: Array, stride: int) -> Array:
    """Darknet's order, by its own loops over flat indices."""
    n, c, h, w = x.shape
    flat, out, few = x.reshape(n, -1), np.empty((n, c * h * w), np.float32), c // stride**2
    for k, j, i in np.ndindex(c, h, w):
        column, row = i * stride + k // few % stride, j * stride + k // few // stride
        out[:, i + w * (j + h * k)] = flat[:, column + w * stride * (row + h * stride * (k % few))]
    return out.reshape(n, c * stride**2, h // stride, w // stride)


def best(x: Array, k: int, axis: int) -> tuple[Array, Array]:
    places = np.argsort(-x, axis=axis, kind="stable").take(range(k), axis)
    return places.astype(np.float32), np.take_along_axis(x, places, axis)


def resized(x: Array, height: int, width: int) -> Array:
    """Interpolate so that corners stay corners."""
    for axis, size in ((2, height), (3, width)):
        at = np.arange(size) * ((x.shape[axis] - 1) / max(size - 1, 1))
        low = np.minimum(at.astype(int), max(x.shape[axis] - 2, 0))
        share = (at - low).reshape([-1 if a == axis else 1 for a in range(4)])
        high = np.minimum(low + 1, x.shape[axis] - 1)
        x = x.take(low, axis) * (1 - share) + x.take(high, axis) * share
    return x


def repeated(x: Array, factor: int) -> Array:
    return x.repeat(factor, 2).repeat(factor, 3)


ROIS = np.array([[0, 0, 0, 9, 9], [1, 2, 4, 13, 11]], np.float32)
PROPOSAL = (
    "proposal_param { feat_stride: 8 base_size: 16 min_size: 4 ratio: 0.5 ratio: 1 ratio: 2 scale: 2 "
    "pre_nms_topn: 6000 post_nms_topn: 5 nms_thresh: 0.7 }"
)
PROPOSED = [numbers(1, 6, 4, 5, low=0), numbers(1, 12, 4, 5) / 8, np.array([[40, 48, 1]], np.float32)]
DETECTION = (
    "detection_output_param { num_classes: 3 share_location: true background_label_id: 0 "
    "nms_param { nms_threshold: 0.4 top_k: 20 } code_type: CENTER_SIZE keep_top_k: 10 confidence_threshold: 0.3 }"
)
CORNERS = rng.uniform(0, 0.6, (8, 2))
PRIORS = np.concatenate([CORNERS, CORNERS + rng.uniform(0.1, 0.4, (8, 2))], 1).reshape(-1)
DETECTED = [
    numbers(1, 32),
    numbers(1, 24, low=0, high=1),
    np.stack([PRIORS, np.tile([0.1, 0.1, 0.2, 0.2], 8)]).astype(np.float32)[None],
]

CASES = [
    Case("AbsVal", "", [X]),
    *(Case(kind, "", [X]) for kind in ("Sigmoid", "TanH", "BNLL", "ReLU")),
    Case("ReLU", "relu_param { negative_slope: 0.25 }", [X]),
    Case("ReLU6", "", [4 * X], wanted=lambda x: np.clip(x, 0, 6)),
    Case("Clip", "clip_param { min: -0.5 max: 1 }", [X], wanted=lambda x: np.clip(x, -0.5, 1)),
    Case("Swish", "swish_param { beta: 2 }", [X], wanted=lambda x: x / (1 + np.exp(-2 * x))),
    Case("ELU", "elu_param { alpha: 1 }", [X]),
    Case("PReLU", "", [X], [numbers(6)]),
    Case("PReLU", "prelu_param { channel_shared: true }", [X], [numbers(1)]),
    Case("Power", "power_param { power: 3 scale: 0.5 shift: 1 }", [X]),
    Case("Power", "", [X]),
    Case("Exp", "exp_param { base: 2 scale: 0.5 shift: 1 }", [X], wanted=lambda x: 2 ** (0.5 * x + 1)),
    Case("Exp", "", [X], wanted=np.exp),
    Case("Log", "log_param { base: 10 scale: 2 shift: 1 }", [POSITIVE], wanted=lambda x: np.log10(2 * x + 1)),
    Case("Threshold", "threshold_param { threshold: 0.5 }", [X], wanted=lambda x: (x > 0.5).astype(np.float32)),
    Case("Eltwise", "", [X, Y]),
    Case("Eltwise", "eltwise_param { operation: PROD }", [X, Y, X]),
    Case("Eltwise", "eltwise_param { operation: MAX }", [X, Y]),
    Case("Eltwise", "eltwise_param { operation: SUM coeff: 0.5 coeff: -2 }", [X, Y]),
    Case("Reduction", "reduction_param { axis: 2 coeff: 0.5 }", [X], wanted=lambda x: x.sum((2, 3)) / 2),
    *(
        Case("Reduction", f"reduction_param {{ operation: {kind} axis: -1 }}", [X], wanted=f)
        for kind, f in (
            ("MEAN", lambda x: x.mean(-1)),
            ("ASUM", lambda x: np.abs(x).sum(-1)),
            ("SUMSQ", lambda x: (x * x).sum(-1)),
        )
    ),
    Case("Convolution", "convolution_param { num_output: 4 kernel_size: 3 }", [X], [numbers(4, 6, 3, 3), numbers(4)]),
    Case(
        "Convolution",
        "convolution_param { num_output: 4 bias_term: false kernel_h: 3 kernel_w: 1 pad_h: 1 pad_w: 0 "
        "stride_h: 2 stride_w: 1 group: 2 }",
        [X],
        [numbers(4, 3, 3, 1)],
    ),
    Case(
        "Convolution",
        "convolution_param { num_output: 4 kernel_size: 3 dilation: 2 pad: 2 }",
        [X],
        [numbers(4, 6, 3, 3), numbers(4)],
    ),
    Case(
        "DepthwiseConvolution",
        "convolution_param { num_output: 6 kernel_size: 3 bias_term: false }",
        [X],
        [np.ones((6, 1, 3, 3), np.float32)],
        wanted=lambda x, w: np.lib.stride_tricks.sliding_window_view(x, (3, 3), (2, 3)).sum((-1, -2)),
    ),
    Case(
        "Deconvolution",
        "convolution_param { num_output: 4 kernel_size: 4 stride: 2 pad: 1 }",
        [X],
        [numbers(6, 4, 4, 4), numbers(4)],
    ),
    Case("Pooling", "pooling_param { kernel_size: 3 stride: 2 }", [X]),
    Case("Pooling", "pooling_param { kernel_size: 3 stride: 2 pad: 1 }", [X]),
    Case("Pooling", "pooling_param { pool: AVE kernel_h: 2 kernel_w: 3 stride: 2 }", [X]),
    Case("Pooling", "pooling_param { pool: AVE kernel_size: 3 stride: 2 pad: 1 }", [X]),
    Case("Pooling", "pooling_param { kernel_size: 2 stride: 2 ceil_mode: false }", [X]),
    *(Case("Pooling", f"pooling_param {{ pool: {kind} global_pooling: true }}", [X]) for kind in ("MAX", "AVE")),
    Case(
        "Pooling",
        "pooling_param { kernel_size: 2 stride: 2 round_mode: FLOOR }",
        [GRAY],
        wanted=lambda x: (
            x[:, :, :, :4].reshape(1, 1, 2, 2, 2, 2).max((3, 5)),
            np.array(
                [
                    [
                        [
                            [
                                int(x[0, 0].reshape(-1).tolist().index(x[0, 0, i : i + 2, j : j + 2].max()))
                                for j in (0, 2)
                            ]
                            for i in (0, 2)
                        ]
                    ]
                ],
                np.float32,
            ),
        ),
        tops=2,
    ),
    Case(
        "SPP",
        "spp_param { pyramid_height: 2 }",
        [numbers(2, 3, 4, 6)],
        wanted=lambda x: np.concatenate([x.max((2, 3)), x.reshape(2, 3, 2, 2, 2, 3).max((3, 5)).reshape(2, -1)], 1),
    ),
    Case("InnerProduct", "inner_product_param { num_output: 5 }", [X], [numbers(5, 336), numbers(5)]),
    Case("InnerProduct", "inner_product_param { num_output: 5 bias_term: false axis: 3 }", [X], [numbers(5, 8)]),
    Case(
        "InnerProduct",
        "inner_product_param { num_output: 4 transpose: true }",
        [MATRIX],
        [numbers(5, 4), numbers(4)],
        wanted=lambda x, w, b: x @ w + b,
    ),
    Case(
        "Embed",
        "embed_param { input_dim: 7 num_output: 3 }",
        [np.array([[0, 6, 2]], np.float32)],
        [numbers(7, 3), numbers(3)],
        wanted=lambda x, w, b: w[x.astype(int)] + b,
    ),
    Case("Scale", "", [X], [numbers(6)]),
    Case("Scale", "scale_param { bias_term: true }", [X], [numbers(6), numbers(6)]),
    Case("Scale", "scale_param { axis: 0 }", [X, numbers(2, 6)], wanted=lambda x, s: x * along(s, 0)),
    Case("Scale", "scale_param { num_axes: -1 }", [X], [numbers(6, 7, 8)], wanted=lambda x, s: x * s),
    Case("Bias", "", [X], [numbers(6)], wanted=lambda x, b: x + along(b)),
    Case("Axpy", "", [numbers(2, 6, 1, 1), X, Y], wanted=lambda a, x, y: a * x + y),
    Case("BatchNorm", "", [X], [numbers(6), numbers(6, low=0.5), np.array([2], np.float32)]),
    Case("BatchNorm", "batch_norm_param { eps: 0.01 }", [X], [numbers(6), numbers(6, low=0.5), np.ones(1, np.float32)]),
    Case(
        "BN",
        "bn_param { eps: 0.01 }",
        [X],
        [numbers(6), numbers(6), numbers(6), numbers(6, low=0.5)],
        wanted=lambda x, s, b, m, v: along(s) * (x - along(m)) / np.sqrt(along(v) + 0.01) + along(b),
    ),
    Case("LRN", "lrn_param { local_size: 3 alpha: 0.5 beta: 0.25 }", [X]),
    Case("LRN", "lrn_param { k: 2 }", [X], wanted=lambda x: x / (2 + around(x * x, 5) / 5) ** 0.75),
    Case(
        "LRN",
        "lrn_param { local_size: 3 alpha: 0.5 norm_region: WITHIN_CHANNEL }",
        [X],
        wanted=lambda x: (
            x
            * (
                1
                + 0.5
                * np.lib.stride_tricks.sliding_window_view(
                    np.pad(x * x, ((0, 0), (0, 0), (1, 1), (1, 1))), (3, 3), (2, 3)
                ).mean((-1, -2))
            )
            ** -0.75
        ),
    ),
    Case("MVN", "", [X], wanted=lambda x: normalised(x, (2, 3), 1e-9)),
    Case(
        "MVN",
        "mvn_param { across_channels: true eps: 0.5 }",
        [X],
        wanted=lambda x: normalised(x, (1, 2, 3), 0.5),
    ),
    Case(
        "MVN",
        "mvn_param { normalize_variance: false }",
        [X],
        wanted=lambda x: normalised(x, (2, 3), 0, variance=False),
    ),
    Case("Normalize", "norm_param { across_spatial: false channel_shared: false }", [X], [numbers(6)]),
    Case(
        "Normalize",
        "norm_param { eps: 0.5 }",
        [X],
        [numbers(1)],
        wanted=lambda x, s: s * x / np.sqrt((x * x).sum((1, 2, 3), keepdims=True) + 0.5),
    ),
    Case("GRN", "grn_param { bias: 0.5 }", [X], wanted=lambda x: x / np.sqrt((x * x).sum(1, keepdims=True) + 0.5)),
    Case("Softmax", "", [X]),
    Case("Softmax", "softmax_param { axis: -1 }", [X]),
    Case("Dropout", "dropout_param { dropout_ratio: 0.3 }", [X]),
    Case("ArgMax", "argmax_param { axis: 1 }", [X], wanted=lambda x: best(x, 1, 1)[0]),
    Case("ArgMax", "argmax_param { axis: 1 top_k: 2 out_max_val: true }", [X], wanted=lambda x: best(x, 2, 1)[1]),
    Case(
        "ArgMax",
        "argmax_param { top_k: 3 out_max_val: true }",
        [X],
        wanted=lambda x: np.stack(best(x.reshape(2, -1), 3, 1), 1),
    ),
    Case("ArgMax", "", [np.ones((1, 5), np.float32)], wanted=lambda x: np.array([[[4]]], np.float32)),
    Case("Concat", "concat_param { axis: 2 }", [X, numbers(2, 6, 1, 8)]),
    Case("Concat", "concat_param { concat_dim: 0 }", [X, Y], wanted=lambda x, y: np.concatenate([x, y])),
    Case(
        "Slice",
        "slice_param { axis: 1 slice_point: 1 slice_point: 4 }",
        [X],
        wanted=lambda x: np.split(x, [1, 4], 1),
        tops=3,
    ),
    Case("Slice", "slice_param { slice_dim: 1 }", [X], wanted=lambda x: np.split(x, 2, 1), tops=2),
    Case("Flatten", "", [X]),
    Case("Flatten", "flatten_param { axis: 1 end_axis: 2 }", [X]),
    Case("Reshape", "reshape_param { shape { dim: 0 dim: -1 dim: 4 } }", [X]),
    Case(
        "Reshape",
        "reshape_param { shape { dim: 2 dim: 3 } axis: 1 num_axes: 1 }",
        [X],
        wanted=lambda x: x.reshape(2, 2, 3, 7, 8),
    ),
    Case("Permute", "permute_param { order: 0 order: 2 order: 3 order: 1 }", [X]),
    Case("Tile", "tile_param { axis: 1 tiles: 2 }", [X], wanted=lambda x: np.tile(x, (1, 2, 1, 1))),
    Case("Crop", "crop_param { axis: 2 offset: 1 offset: 2 }", [X, numbers(2, 6, 4, 3)]),
    Case("Crop", "crop_param { axis: 2 offset: 1 }", [X, numbers(2, 6, 4, 3)]),
    Case("Reverse", "reverse_param { axis: 2 }", [X], wanted=lambda x: x[:, :, ::-1]),
    Case("BatchReindex", "", [X, np.array([1, 0, 1], np.float32)], wanted=lambda x, i: x[i.astype(int)]),
    Case("ShuffleChannel", "shuffle_channel_param { group: 3 }", [X]),
    Case("Split", "", [X], tops=2, wanted=lambda x: (x, x)),
    Case("Interp", "interp_param { height: 9 width: 5 }", [X], wanted=lambda x: resized(x, 9, 5)),
    Case("Interp", "interp_param { zoom_factor: 2 }", [X], wanted=lambda x: resized(x, 13, 15)),
    Case(
        "Interp", "interp_param { shrink_factor: 3 pad_end: -1 }", [X], wanted=lambda x: resized(x[:, :, :6, :7], 2, 3)
    ),
    Case("Interp", "", [X, numbers(2, 1, 4, 4)], wanted=lambda x, y: resized(x, 4, 4)),
    Case("Resample", "resample_param { type: NEAREST factor: 2 }", [X], wanted=lambda x: repeated(x, 2)),
    Case("Upsample", "upsample_param { scale: 2 }", [X], wanted=lambda x: repeated(x, 2)),
    Case("Parameter", "parameter_param { shape { dim: 2 dim: 3 } }", [], [numbers(2, 3)], wanted=lambda w: w),
    Case(
        "PriorBox",
        "prior_box_param { min_size: 3 max_size: 6 aspect_ratio: 2 clip: true variance: 0.1 variance: 0.1 "
        "variance: 0.2 variance: 0.2 step: 8 }",
        [X, numbers(2, 3, 50, 60)],
    ),
    Case(
        "PriorBox",
        "prior_box_param { min_size: 3 min_size: 5 aspect_ratio: 2 aspect_ratio: 3 flip: false clip: false "
        "variance: 0.1 }",
        [X, numbers(2, 3, 50, 60)],
    ),
    Case(
        "PriorBoxClustered",
        "prior_box_param { width: 4 width: 8 height: 6 height: 2 variance: 0.1 step: 10 }",
        [numbers(1, 6, 1, 2), numbers(1, 3, 20, 40)],
        wanted=lambda x, y: np.array(
            [
                [
                    [(5 + 10 * i - w / 2) / 40, (5 - h / 2) / 20, (5 + 10 * i + w / 2) / 40, (5 + h / 2) / 20]
                    for i in range(2)
                    for w, h in ((4, 6), (8, 2))
                ],
                [[0.1] * 4] * 4,
            ],
            np.float32,
        ).reshape(1, 2, -1),
    ),
    Case(
        "RegionYolo",
        "region_yolo_param { classes: 2 num: 3 do_softmax: false mask: 0 mask: 2 }",
        [numbers(2, 14, 3, 4)],
        wanted=regions,
    ),
    Case(
        "RegionYolo",
        "region_yolo_param { classes: 2 num: 1 } flatten_param { axis: 1 end_axis: -1 }",
        [numbers(2, 7, 3, 4)],
        wanted=lambda x: np.concatenate(
            [regions(x)[:, :5], np.exp(x[:, 5:]) / np.exp(x[:, 5:]).sum(1, keepdims=True)], 1
        ).reshape(2, -1),
    ),
    Case("ReorgYolo", "reorg_yolo_param { stride: 2 }", [numbers(2, 8, 4, 6)], wanted=lambda x: reorganised(x, 2)),
    Case("ROIPooling", "roi_pooling_param { pooled_h: 2 pooled_w: 3 spatial_scale: 0.5 }", [X, ROIS]),
    Case(
        "PSROIPooling",
        "psroi_pooling_param { output_dim: 2 group_size: 2 spatial_scale: 0.5 }",
        [numbers(2, 8, 7, 8), ROIS],
    ),
    Case("Proposal", PROPOSAL, PROPOSED),
    Case(
        "Python",
        "python_param { module: 'rpn.proposal_layer' layer: 'ProposalLayer' "
        "param_str: \"'feat_stride': 8, 'scales': (2,), 'post_nms_topn': 5, 'min_size': 4\" }",
        PROPOSED,
        asked=("Proposal", PROPOSAL),
    ),
    Case("DetectionOutput", DETECTION, DETECTED),
]
for number, one in enumerate(CASES):
    one.name = f"{one.kind}-{number}"
