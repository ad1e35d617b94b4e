"""Quantised tensors."""

from __future__ import annotations

from typing import Any

import numpy as np

from tests.frontends.tflite.case import c, case, i, rng
from tests.frontends.tflite.models import Tensor

TYPES = {"i8": np.int8, "u8": np.uint8, "i16": np.int16}
ZERO = {"i8": -7, "u8": 121, "i16": 0}


def t(kind: str, *shape: int, scale: float = 0.05, zero: int | None = None, name: str = "x") -> Tensor:
    """A quantised tensor."""
    return Tensor(f"{name}{rng.integers(1 << 30)}", kind, shape, None, [scale], [ZERO[kind] if zero is None else zero])


def v(kind: str, *shape: int) -> np.ndarray:
    """Stored numbers of all sizes."""
    info = np.iinfo(TYPES[kind])
    return rng.integers(info.min, info.max + 1, shape).astype(TYPES[kind])


def w(kind: str, *shape: int, axis: int | None = None) -> Tensor:
    """Weights, with a scale for each slice of `axis`."""
    count = 1 if axis is None else shape[axis]
    scales = rng.uniform(0.001, 0.02, count).tolist()
    zeros = [131] if kind == "u8" else [0] * count
    data = v(kind, *shape) if kind == "u8" else np.maximum(v(kind, *shape), -127)
    return c(data, TYPES[kind], scales=scales, zeros=zeros, axis=axis or 0)


def bias(count: int, kind: str = "i8") -> Tensor:
    return c(i(count, low=-2000, high=2000), np.int64 if kind == "i16" else np.int32, scales=[0.001], zeros=[0])


def q(
    name: str, kind: str, tensors: list[Any], out: Tensor, options: str = "", outs: Any = None, **fields: Any
) -> None:
    """A case whose tensors without data are inputs."""
    values = [v(x.type, *x.shape) for x in tensors if isinstance(x, Tensor) and x.data is None]
    case(f"q_{name}", kind, *tensors, outputs=outs or [out], options=options, values=values, **fields)


for kind in ("i8", "u8", "i16"):
    wide, weights = "i8" if kind == "i16" else kind, {} if kind == "u8" else {"axis": 0}
    last = {} if kind == "u8" else {"axis": 3}
    for pad, act in ((0, 0), (1, 1), (0, 3)):
        q(
            f"conv_{kind}_{pad}{act}",
            "CONV_2D",
            [t(kind, 2, 5, 6, 3), w(wide, 7, 3, 2, 3, **weights), bias(7, kind)],
            t(kind, scale=0.07, zero=0 if kind == "i16" else 3),
            "Conv2D",
            Padding=pad,
            StrideW=1,
            StrideH=2,
            FusedActivationFunction=act,
        )
    q(
        f"depthwise_{kind}",
        "DEPTHWISE_CONV_2D",
        [t(kind, 2, 5, 6, 4), w(wide, 1, 3, 2, 8, **last), bias(8, kind)],
        t(kind, scale=0.05, zero=0 if kind == "i16" else 3),
        "DepthwiseConv2D",
        Padding=0,
        StrideW=1,
        StrideH=1,
        DepthMultiplier=2,
    )
    q(
        f"fully_connected_{kind}",
        "FULLY_CONNECTED",
        [t(kind, 3, 16), w(wide, 5, 16), bias(5, kind)],
        t(kind, scale=0.1, zero=0 if kind == "i16" else 3),
        "FullyConnected",
        FusedActivationFunction=1,
    )
q(
    "fully_connected_by_axis",
    "FULLY_CONNECTED",
    [t("i8", 3, 16), w("i8", 5, 16, axis=0), bias(5)],
    t("i8", scale=0.1, zero=3),
    "FullyConnected",
)
q(
    "transpose_conv",
    "TRANSPOSE_CONV",
    [c([1, 8, 6, 3]), w("i8", 3, 3, 3, 4, axis=0), t("i8", 1, 4, 3, 4)],
    t("i8", scale=0.1),
    "TransposeConv",
    Padding=0,
    StrideW=2,
    StrideH=2,
)
q(
    "batch_matmul",
    "BATCH_MATMUL",
    [t("i8", 2, 3, 8), t("i8", 2, 8, 4, name="y")],
    t("i8", scale=0.4, zero=5),
    "BatchMatMul",
)
for kind in ("i8", "u8"):
    for act in (0, 1, 3):
        q(
            f"add_{kind}_{act}",
            "ADD",
            [t(kind, 4, 64, scale=0.03), t(kind, 4, 64, scale=0.11, name="y")],
            t(kind, scale=0.12, zero=9),
            "Add",
            FusedActivationFunction=act,
        )
    q(
        f"sub_{kind}",
        "SUB",
        [t(kind, 4, 64, scale=0.03), t(kind, 4, 64, scale=0.011, name="y")],
        t(kind, scale=0.05, zero=9),
        "Sub",
    )
    q(
        f"mul_{kind}",
        "MUL",
        [t(kind, 4, 64, scale=0.03), t(kind, 4, 64, scale=0.011, name="y")],
        t(kind, scale=0.007, zero=9),
        "Mul",
    )
    same = {"scale": 0.05, "zero": ZERO[kind]}
    for pad in range(2):
        q(
            f"average_pool_{kind}_{pad}",
            "AVERAGE_POOL_2D",
            [t(kind, 2, 7, 8, 3)],
            t(kind, **same),
            "Pool2D",
            Padding=pad,
            StrideW=2,
            StrideH=1,
            FilterWidth=3,
            FilterHeight=2,
        )
    q(
        f"max_pool_{kind}",
        "MAX_POOL_2D",
        [t(kind, 2, 7, 8, 3)],
        t(kind, **same),
        "Pool2D",
        Padding=0,
        StrideW=2,
        StrideH=1,
        FilterWidth=3,
        FilterHeight=2,
        FusedActivationFunction=1,
    )
    q(f"relu_{kind}", "RELU", [t(kind, 4, 64)], t(kind, scale=0.03, zero=4))
    q(f"relu6_{kind}", "RELU6", [t(kind, 4, 64)], t(kind, scale=0.03, zero=4))
    q(f"leaky_relu_{kind}", "LEAKY_RELU", [t(kind, 4, 64)], t(kind, scale=0.03, zero=4), "LeakyRelu", Alpha=0.2)
    q(f"mean_{kind}", "MEAN", [t(kind, 2, 7, 5, 3), c([1, 2])], t(kind, scale=0.03, zero=4), "Reducer", KeepDims=True)
    q(f"mean_flat_{kind}", "MEAN", [t(kind, 2, 7, 5, 3), c([1])], t(kind, scale=0.02, zero=4), "Reducer")
    q(
        f"concatenation_{kind}",
        "CONCATENATION",
        [t(kind, 2, 3), t(kind, 2, 5, name="y")],
        t(kind, **same),
        "Concatenation",
        Axis=1,
    )
    q(f"pad_{kind}", "PAD", [t(kind, 2, 3), c([[1, 0], [0, 2]])], t(kind, **same))
    q(f"maximum_{kind}", "MAXIMUM", [t(kind, 2, 9), t(kind, 2, 9, name="y")], t(kind, **same), "MaximumMinimum")
    q(f"reduce_max_{kind}", "REDUCE_MAX", [t(kind, 2, 9), c([1])], t(kind, **same), "Reducer")
    q(f"reshape_{kind}", "RESHAPE", [t(kind, 2, 9), c([3, 6])], t(kind, **same), "Reshape")
    q(f"dequantize_{kind}", "DEQUANTIZE", [t(kind, 4, 64)], Tensor("y", "f32", []))
    case(
        f"q_quantize_{kind}",
        "QUANTIZE",
        (np.arange(-999, 1001, 4, dtype=np.float32) / 40),
        outputs=[t(kind, scale=0.05)],
    )
    q(
        f"resize_nearest_{kind}",
        "RESIZE_NEAREST_NEIGHBOR",
        [t(kind, 1, 4, 5, 3), c([7, 8])],
        t(kind, **same),
        "ResizeNearestNeighbor",
    )
q("requantize_i8_i8", "QUANTIZE", [t("i8", 4, 64)], t("i8", scale=0.083, zero=9))
q("requantize_i8_u8", "QUANTIZE", [t("i8", 4, 64)], t("u8", scale=0.05, zero=121))
q("requantize_u8_i8", "QUANTIZE", [t("u8", 4, 64)], t("i8", scale=0.05, zero=-7))
q("near_logistic", "LOGISTIC", [t("i8", 4, 64)], t("i8", scale=1 / 256, zero=-128))
q("near_tanh", "TANH", [t("i8", 4, 64)], t("i8", scale=1 / 128, zero=0))
q("near_softmax", "SOFTMAX", [t("i8", 4, 64)], t("i8", scale=1 / 256, zero=-128), "Softmax", Beta=1.0)
q("near_hard_swish", "HARD_SWISH", [t("i8", 4, 64)], t("i8", scale=0.03, zero=-100))
q("near_resize_bilinear", "RESIZE_BILINEAR", [t("i8", 1, 4, 5, 3), c([7, 8])], t("i8"), "ResizeBilinear")
q(
    "near_sum", "SUM", [t("i8", 2, 9), c([1])], t("i8", scale=0.1), "Reducer", kernels="optimised"
)  # the reference kernel gives -1
q("near_squared_difference", "SQUARED_DIFFERENCE", [t("i8", 2, 9), t("i8", 2, 9, name="y")], t("i8", scale=0.3))
q("near_prelu", "PRELU", [t("i8", 1, 3, 2, 4), w("i8", 1, 1, 4)], t("i8", scale=0.03))
q("near_l2_normalization", "L2_NORMALIZATION", [t("i8", 2, 9)], t("i8", scale=1 / 128, zero=0), "L2Norm")
