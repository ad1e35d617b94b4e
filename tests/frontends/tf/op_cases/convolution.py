"""Convolutions, transposed ones, patches."""

import numpy as np
from make_op_cases import Known, Numbers, Row, case

N = Numbers(11)
X, W = N.f32(2, 7, 6, 4), Known(N.f32(3, 2, 4, 5))
ONES, TWO = [1, 1, 1, 1], [1, 2, 2, 1]
DEEP, DEEP_W = N.f32(1, 4, 5, 6, 2), Known(N.f32(2, 3, 3, 2, 3))
DEPTH = Known(N.f32(3, 3, 4, 2))


def i32(*values):
    return Known(np.array(values, np.int32))


BACK = Known(N.f32(3, 3, 3, 5))  # height, width, outputs of the gradient, its inputs

CASES = [
    *(
        case("Conv2D", X, W, strides=s, padding=p)
        for s, p in ((ONES, "SAME"), (ONES, "VALID"), (TWO, "SAME"), (TWO, "VALID"), ([1, 3, 2, 1], "SAME"))
    ),
    case("Conv2D", X, W, strides=TWO, padding="EXPLICIT", explicit_paddings=[0, 0, 1, 2, 0, 1, 0, 0]),
    case("Conv2D", X, W, strides=ONES, padding="SAME", dilations=TWO),
    case("Conv2D", X, W, strides=ONES, padding="VALID", dilations=[1, 3, 2, 1]),
    case("Conv2D", Row(X), Known(N.f32(3, 3, 2, 6)), strides=ONES, padding="SAME"),
    case("Conv2D", N.f32(1, 5, 5, 3), N.f32(1, 1, 3, 2), strides=ONES, padding="SAME", dynamic=False),
    case("Conv2D", X, Known(N.f32(1, 1, 4, 3)), strides=TWO, padding="SAME"),
    *(
        case("DepthwiseConv2dNative", X, DEPTH, strides=s, padding=p)
        for s, p in ((ONES, "SAME"), (TWO, "VALID"), (TWO, "SAME"))
    ),
    case(
        "DepthwiseConv2dNative",
        X,
        Known(N.f32(3, 3, 4, 1)),
        strides=ONES,
        padding="EXPLICIT",
        explicit_paddings=[0, 0, 1, 0, 2, 1, 0, 0],
    ),
    case("Conv3D", DEEP, DEEP_W, strides=[1] * 5, padding="SAME"),
    case("Conv3D", DEEP, DEEP_W, strides=[1, 2, 1, 2, 1], padding="VALID"),
    case("Conv3D", DEEP, DEEP_W, strides=[1, 2, 2, 2, 1], padding="SAME"),
    *(
        case("Conv2DBackpropInput", i32(2, *size, 3), BACK, N.f32(2, *out, 5), strides=[1, *s, 1], padding=p)
        for size, out, s, p in (
            ((7, 6), (4, 3), (2, 2), "SAME"),
            ((8, 6), (4, 3), (2, 2), "SAME"),
            ((9, 7), (4, 3), (2, 2), "VALID"),
            ((10, 8), (4, 3), (2, 2), "VALID"),
            ((4, 3), (4, 3), (1, 1), "SAME"),
            ((13, 10), (4, 3), (4, 4), "SAME"),
        )
    ),
    case(
        "Conv2DBackpropInput",
        i32(2, 7, 6, 3),
        BACK,
        N.f32(2, 4, 3, 5),
        strides=TWO,
        padding="EXPLICIT",
        explicit_paddings=[0, 0, 1, 1, 1, 0, 0, 0],
    ),
    case(
        "Conv2DBackpropInput",
        np.array([2, 8, 5, 3], np.int32),
        BACK,
        N.f32(2, 4, 3, 5),
        strides=TWO,
        padding="SAME",
        dynamic=False,
    ),
    case("Conv2DBackpropInput", i32(8, 5), BACK, N.f32(2, 4, 3, 5), strides=TWO, padding="SAME"),
    case(
        "Conv2DBackpropInput",
        i32(2, 9, 8, 3),
        Known(N.f32(2, 2, 3, 5)),
        N.f32(2, 3, 3, 5),
        strides=[1, 3, 3, 1],
        padding="SAME",
    ),
    case(
        "Conv3DBackpropInputV2",
        i32(1, 8, 6, 6, 2),
        DEEP_W,
        N.f32(1, 4, 3, 6, 3),
        strides=[1, 2, 2, 1, 1],
        padding="SAME",
    ),
    case("Conv3DBackpropInputV2", i32(1, 5, 8, 8, 2), DEEP_W, N.f32(1, 4, 6, 6, 3), strides=[1] * 5, padding="VALID"),
    case("DepthwiseConv2dNativeBackpropInput", i32(2, 7, 6, 4), DEPTH, N.f32(2, 4, 3, 8), strides=TWO, padding="SAME"),
    case("ExtractImagePatches", X, ksizes=[1, 3, 2, 1], strides=TWO, rates=ONES, padding="VALID"),
    case("ExtractImagePatches", X, ksizes=[1, 3, 3, 1], strides=ONES, rates=TWO, padding="SAME"),
    case("Dilation2D", X, Known(N.f32(3, 2, 4)), strides=TWO, rates=ONES, padding="SAME", dynamic=False),
    case("Dilation2D", X, Known(N.f32(2, 2, 4)), strides=ONES, rates=TWO, padding="VALID", dynamic=False),
    case(
        "_FusedConv2D",
        X,
        W,
        [Known(N.f32(5))],
        [],
        fused_ops=["BiasAdd", "Relu6"],
        num_args=1,
        strides=TWO,
        padding="SAME",
    ),
    case(
        "_FusedConv2D",
        X,
        W,
        [Known(N.f32(5, low=0.5)) for _ in range(4)],
        [],
        fused_ops=["FusedBatchNorm", "LeakyRelu"],
        num_args=4,
        strides=ONES,
        padding="VALID",
        epsilon=1e-3,
    ),
    case(
        "Conv2D",
        X.astype(np.float16),
        Known(N.f32(2, 2, 4, 3).astype(np.float16)),
        strides=ONES,
        padding="SAME",
        tolerance=1e-2,
    ),
    case("Conv2D", X.astype(np.float64), Known(N.f32(2, 2, 4, 3).astype(np.float64)), strides=TWO, padding="SAME"),
]
