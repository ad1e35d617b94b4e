"""Shapes and indices."""

from __future__ import annotations

import numpy as np

from tests.frontends.tflite.case import b, c, case, f, i

# ---- shapes

case("reshape", "RESHAPE", f(2, 3, 4), c([4, -1]), options="Reshape", NewShape=[4, 6])
case("reshape_option", "RESHAPE", f(2, 3, 4), options="Reshape", NewShape=[6, 4])
case("squeeze", "SQUEEZE", f(1, 3, 1, 4), options="Squeeze", SqueezeDims=[0, 2])
case("squeeze_all", "SQUEEZE", f(1, 3, 1, 4), options="Squeeze")
case("expand_dims", "EXPAND_DIMS", f(3, 4), c(-1))
case("shape", "SHAPE", f(3, 4), outputs=["i32"], options="Shape", OutType=2)
case("rank", "RANK", f(3, 4), outputs=["i32"])
case("broadcast_to", "BROADCAST_TO", f(3, 1), c([2, 3, 4]))
case("broadcast_args", "BROADCAST_ARGS", np.array([3, 1], np.int32), np.array([2, 1, 4], np.int32), outputs=["i32"])
case("fill", "FILL", c([2, 3]), np.array(1.5, np.float32))
case("concatenation", "CONCATENATION", f(2, 3), f(2, 2), f(2, 1), options="Concatenation", Axis=-1)
case("pack", "PACK", f(2, 3), f(2, 3), options="Pack", ValuesCount=2, Axis=1)
case("unpack", "UNPACK", f(2, 3), outputs=["f32"] * 3, options="Unpack", Num=3, Axis=1)
case("split", "SPLIT", c(1), f(2, 6), outputs=["f32"] * 3, options="Split", NumSplits=3)
case("split_v", "SPLIT_V", f(2, 6), c([1, -1, 2]), c(1), outputs=["f32"] * 3, options="SplitV", NumSplits=3)
case("slice", "SLICE", f(4, 5), c([1, 2]), c([2, -1]))
case(
    "strided_slice",
    "STRIDED_SLICE",
    f(4, 5, 6),
    c([1, 3, 0]),
    c([4, 0, 4]),
    c([2, -1, 3]),
    options="StridedSlice",
    BeginMask=1,
    EndMask=2,
)
case(
    "strided_slice_shrink",
    "STRIDED_SLICE",
    f(4, 5, 6),
    c([1, 0, -1]),
    c([2, 5, 6]),
    c([1, 2, 1]),
    options="StridedSlice",
    ShrinkAxisMask=5,
)
case(
    "strided_slice_ellipsis",
    "STRIDED_SLICE",
    f(4, 5, 6),
    c([0, 1]),
    c([0, 4]),
    c([1, 2]),
    options="StridedSlice",
    EllipsisMask=1,
)
case(
    "strided_slice_new",
    "STRIDED_SLICE",
    f(4, 5),
    c([0, 1, 0]),
    c([0, 3, 4]),
    c([1, 1, 2]),
    options="StridedSlice",
    NewAxisMask=1,
)
case("dynamic_update_slice", "DYNAMIC_UPDATE_SLICE", f(4, 5), f(2, 3), np.array([1, 1], np.int32))
case("dynamic_update_slice_clamped", "DYNAMIC_UPDATE_SLICE", f(4, 5), f(2, 3), np.array([3, -2], np.int32))
case("range", "RANGE", np.array(1, np.int32), np.array(9, np.int32), np.array(3, np.int32), outputs=["i32"])
case(
    "one_hot",
    "ONE_HOT",
    i(2, 3, low=-1, high=5),
    c(4),
    c(2.0, np.float32),
    c(-1.0, np.float32),
    options="OneHot",
    Axis=-1,
)
case("transpose", "TRANSPOSE", f(2, 3, 4), c([2, 0, 1]))
case("tile", "TILE", f(2, 3), c([2, 3]))
case("pad", "PAD", f(2, 3), c([[1, 0], [0, 2]]))
case("padv2", "PADV2", f(2, 3), c([[1, 0], [0, 2]]), c(7.0, np.float32))
case("mirror_pad_reflect", "MIRROR_PAD", f(3, 4), c([[1, 2], [0, 3]]), options="MirrorPad", Mode=0)
case("mirror_pad_symmetric", "MIRROR_PAD", f(3, 4), c([[1, 2], [0, 3]]), options="MirrorPad", Mode=1)
case("reverse", "REVERSE_V2", f(3, 4), c([1]))
case(
    "reverse_sequence",
    "REVERSE_SEQUENCE",
    f(3, 4, 2),
    np.array([2, 4, 1], np.int32),
    options="ReverseSequence",
    SeqDim=1,
    BatchDim=0,
)
case("space_to_depth", "SPACE_TO_DEPTH", f(1, 4, 6, 3), options="SpaceToDepth", BlockSize=2)
case("depth_to_space", "DEPTH_TO_SPACE", f(1, 2, 3, 12), options="DepthToSpace", BlockSize=2)
case("space_to_batch", "SPACE_TO_BATCH_ND", f(1, 4, 5, 2), c([2, 3]), c([[0, 0], [0, 1]]))
case("batch_to_space", "BATCH_TO_SPACE_ND", f(6, 2, 2, 2), c([2, 3]), c([[0, 0], [0, 1]]))
case("matrix_diag", "MATRIX_DIAG", f(2, 3))
case("matrix_set_diag", "MATRIX_SET_DIAG", f(2, 3, 4), f(2, 3))

# ---- indices

case("gather", "GATHER", f(3, 4), np.array([[2, 0], [1, 1]], np.int32), options="Gather", Axis=1)
case("gather_batch", "GATHER", f(2, 3, 4), i(2, 2, low=0, high=3), options="Gather", Axis=1, BatchDims=1)
case("gather_nd", "GATHER_ND", f(3, 4), np.array([[2, 0], [1, 3]], np.int32))
case("scatter_nd", "SCATTER_ND", np.array([[0], [2], [0]], np.int32), f(3, 4), c([4, 4]))
case("sparse_to_dense", "SPARSE_TO_DENSE", np.array([[0, 1], [2, 0]], np.int32), c([3, 2]), f(2), c(0.5, np.float32))
case("segment_sum", "SEGMENT_SUM", f(5, 2), np.array([0, 0, 1, 2, 2], np.int32))
for kind in ("MAX", "MIN", "PROD", "SUM"):
    case(
        f"unsorted_segment_{kind.lower()}",
        f"UNSORTED_SEGMENT_{kind}",
        f(5, 2),
        np.array([0, 2, 1, 2, 0], np.int32),
        c(3),
    )
case("unique", "UNIQUE", np.array([3, 1, 3, 2, 1], np.int32), outputs=["i32", "i32"], options="Unique", IdxOutType=2)
case("where", "WHERE", b(3, 4), outputs=["i64"])
case("bucketize", "BUCKETIZE", f(3, 4), outputs=["i32"], options="Bucketize", Boundaries=[-1.0, 0.0, 1.0])
case("embedding_lookup", "EMBEDDING_LOOKUP", np.array([2, 0], np.int32), c(f(4, 3), np.float32))
case(
    "hashtable_lookup",
    "HASHTABLE_LOOKUP",
    np.array([7, 3], np.int32),
    c([1, 3, 5]),
    c(f(3, 2), np.float32),
    outputs=["f32", "u8"],
)
case("rfft2d_abs", "ABS", f(2, 2))
