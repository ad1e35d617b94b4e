"""Products, layers and images."""

from __future__ import annotations

import numpy as np
from flatbuffers import flexbuffers

from tests.frontends.tflite.case import c, case, f

# ---- products and layers

case(
    "fully_connected",
    "FULLY_CONNECTED",
    f(3, 8),
    c(f(5, 8), np.float32),
    c(f(5), np.float32),
    options="FullyConnected",
    FusedActivationFunction=1,
)
case("fully_connected_no_bias", "FULLY_CONNECTED", f(2, 3, 8), c(f(5, 8), np.float32), None, options="FullyConnected")
case(
    "fully_connected_keep",
    "FULLY_CONNECTED",
    f(2, 3, 8),
    c(f(5, 8), np.float32),
    None,
    options="FullyConnected",
    KeepNumDims=True,
)
case("batch_matmul", "BATCH_MATMUL", f(2, 3, 4), f(2, 4, 5), options="BatchMatMul")
case("batch_matmul_adj", "BATCH_MATMUL", f(2, 4, 3), f(1, 5, 4), options="BatchMatMul", AdjX=True, AdjY=True)
for pad in range(2):
    for stride, dilation in ((1, 1), (2, 1), (1, 2)):
        attrs = {
            "Padding": pad,
            "StrideW": stride,
            "StrideH": stride,
            "DilationWFactor": dilation,
            "DilationHFactor": dilation,
        }
        case(
            f"conv_{pad}{stride}{dilation}",
            "CONV_2D",
            f(2, 7, 8, 4),
            c(f(6, 3, 2, 4), np.float32),
            c(f(6), np.float32),
            options="Conv2D",
            FusedActivationFunction=3,
            **attrs,
        )
        case(
            f"depthwise_{pad}{stride}{dilation}",
            "DEPTHWISE_CONV_2D",
            f(2, 7, 8, 4),
            c(f(1, 3, 2, 8), np.float32),
            c(f(8), np.float32),
            options="DepthwiseConv2D",
            DepthMultiplier=2,
            FusedActivationFunction=1,
            **attrs,
        )
    case(
        f"transpose_conv_{pad}",
        "TRANSPOSE_CONV",
        c([1, 8, 6, 3] if not pad else [1, 9, 7, 3]),
        c(f(3, 3, 3, 4), np.float32),
        f(1, 4, 3, 4),
        c(f(3), np.float32),
        options="TransposeConv",
        Padding=pad,
        StrideW=2,
        StrideH=2,
    )
    case(
        f"max_pool_{pad}",
        "MAX_POOL_2D",
        f(2, 7, 8, 3),
        options="Pool2D",
        Padding=pad,
        StrideW=2,
        StrideH=2,
        FilterWidth=3,
        FilterHeight=2,
    )
    case(
        f"average_pool_{pad}",
        "AVERAGE_POOL_2D",
        f(2, 7, 8, 3),
        options="Pool2D",
        Padding=pad,
        StrideW=2,
        StrideH=1,
        FilterWidth=3,
        FilterHeight=2,
        FusedActivationFunction=1,
    )
    case(
        f"l2_pool_{pad}",
        "L2_POOL_2D",
        f(2, 7, 8, 3),
        options="Pool2D",
        Padding=pad,
        StrideW=2,
        StrideH=2,
        FilterWidth=3,
        FilterHeight=2,
    )
    case(
        f"conv_3d_{pad}",
        "CONV_3D",
        f(1, 4, 5, 6, 2),
        c(f(2, 3, 3, 2, 4), np.float32),
        c(f(4), np.float32),
        options="Conv3D",
        Padding=pad,
        StrideD=1,
        StrideW=2,
        StrideH=2,
    )
case(
    "conv_3d_transpose",
    "CONV_3D_TRANSPOSE",
    c([1, 4, 6, 6, 3]),
    c(f(2, 2, 2, 3, 4), np.float32),
    f(1, 2, 3, 3, 4),
    options="Conv3D",
    Padding=1,
    StrideD=2,
    StrideW=2,
    StrideH=2,
)
case(
    "conv_groups",
    "CONV_2D",
    f(1, 5, 5, 4),
    c(f(6, 3, 3, 2), np.float32),
    c(f(6), np.float32),
    options="Conv2D",
    Padding=0,
    StrideW=1,
    StrideH=1,
)
case("softmax", "SOFTMAX", f(2, 3, 5), options="Softmax", Beta=1.0)
case("softmax_beta", "SOFTMAX", f(2, 5), options="Softmax", Beta=0.5)
case("log_softmax", "LOG_SOFTMAX", f(2, 5))
case("l2_normalization", "L2_NORMALIZATION", f(2, 3, 5), options="L2Norm")
# the reference kernel leaves the last element of the window out; the other one does what TensorFlow does
case(
    "lrn",
    "LOCAL_RESPONSE_NORMALIZATION",
    f(1, 3, 3, 8),
    options="LocalResponseNormalization",
    Radius=2,
    Bias=1.0,
    Alpha=0.3,
    Beta=0.5,
    kernels="optimised",
)
case("dilate", "DILATE", f(2, 3, 2), c([1, 3, 2]), c(0.5, np.float32))

# ---- images

for name, flags in (("", {}), ("_align", {"AlignCorners": True}), ("_half", {"HalfPixelCenters": True})):
    case(f"resize_bilinear{name}", "RESIZE_BILINEAR", f(1, 4, 5, 3), c([7, 8]), options="ResizeBilinear", **flags)
    case(
        f"resize_nearest{name}",
        "RESIZE_NEAREST_NEIGHBOR",
        f(1, 4, 5, 3),
        c([7, 8]),
        options="ResizeNearestNeighbor",
        **flags,
    )
    case(f"resize_smaller{name}", "RESIZE_BILINEAR", f(1, 9, 8, 3), c([4, 3]), options="ResizeBilinear", **flags)
boxes = np.array(
    [[0, 0, 1, 1], [0, 0.1, 1, 1.1], [0, -0.1, 1, 0.9], [0, 10, 1, 11], [0, 10.1, 1, 11.1], [0, 100, 1, 101]],
    np.float32,
)
scores = np.array([0.9, 0.75, 0.6, 0.95, 0.5, 0.3], np.float32)
case(
    "nms_v4",
    "NON_MAX_SUPPRESSION_V4",
    boxes,
    scores,
    c(5),
    c(0.5, np.float32),
    c(0.0, np.float32),
    outputs=["i32", "i32"],
)
case(
    "nms_v5",
    "NON_MAX_SUPPRESSION_V5",
    boxes,
    scores,
    c(5),
    c(0.5, np.float32),
    c(0.0, np.float32),
    c(0.0, np.float32),
    outputs=["i32", "f32", "i32"],
)

# ---- detections

facts = {
    "max_detections": 5, "max_classes_per_detection": 1, "nms_score_threshold": 0.1, "nms_iou_threshold": 0.5,
    "num_classes": 3, "y_scale": 10.0, "x_scale": 10.0, "h_scale": 5.0, "w_scale": 5.0, "detections_per_class": 4,
}  # fmt: skip
anchors = c(np.concatenate([f(12, 2, low=0.2, high=0.8), f(12, 2, low=0.2, high=0.4)], 1), np.float32)
for regular in (False, True):
    case(
        f"detection_{regular}",
        "CUSTOM.TFLite_Detection_PostProcess",
        f(1, 12, 4),
        f(1, 12, 4, low=0.0, high=1.0),
        anchors,
        outputs=["f32"] * 4,
        custom=bytes(flexbuffers.Dumps({**facts, "use_regular_nms": regular})),
    )
