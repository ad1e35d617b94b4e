"""Sparse and ragged tensors, decoders of sequences."""

import numpy as np
from make_op_cases import Known, Numbers, case

N = Numbers(10)
PLACES, VALUES = np.array([[0, 1], [1, 0], [3, 2]], np.int64), N.f32(3)
SHAPE = Known([4, 3], np.int64)
SPLITS = np.array([0, 2, 2, 5], np.int64)
SCORES = (N.f32(6, 2, 4) * 1.01).astype(np.float32)

CASES = [
    case("SparseTensorDenseMatMul", PLACES, VALUES, SHAPE, N.f32(3, 5)),
    case("SparseTensorDenseMatMul", PLACES, VALUES, SHAPE, N.f32(4, 5), adjoint_a=True),
    case("SparseTensorDenseMatMul", PLACES, VALUES, SHAPE, N.f32(5, 3), adjoint_b=True),
    case("SparseTensorDenseMatMul", PLACES, VALUES, np.array([4, 3], np.int64), N.f32(3, 5), dynamic=False),
    case("SparseTensorDenseAdd", PLACES, VALUES, SHAPE, N.f32(4, 3)),
    case("SparseReshape", PLACES, SHAPE, Known([2, -1], np.int64)),
    case("SparseReshape", PLACES, SHAPE, Known([12], np.int64)),
    case("SparseReshape", PLACES, SHAPE, Known([2, 3, 2], np.int64)),
    case("SparseFillEmptyRows", PLACES, VALUES, SHAPE, Known(-1.0, np.float32)),
    case(
        "SparseFillEmptyRows",
        np.array([[1, 0], [1, 2], [4, 1]], np.int64),
        N.ints(3),
        Known([6, 3], np.int64),
        Known(5, np.int32),
    ),
    case("RaggedTensorToSparse", [SPLITS], N.f32(5)),
    case(
        "RaggedTensorToTensor",
        Known(-1, np.int64),
        N.f32(5),
        Known(9.0, np.float32),
        [SPLITS],
        row_partition_types=["ROW_SPLITS"],
    ),
    case(
        "RaggedTensorToTensor",
        Known([4, 2], np.int64),
        N.f32(5),
        Known(9.0, np.float32),
        [SPLITS],
        row_partition_types=["ROW_SPLITS"],
    ),
    case(
        "RaggedTensorToTensor",
        Known(-1, np.int64),
        N.f32(5, 2),
        Known(0.0, np.float32),
        [Known(4, np.int64), np.array([0, 0, 2, 2, 2], np.int64)],
        row_partition_types=["FIRST_DIM_SIZE", "VALUE_ROWIDS"],
    ),
    case("CTCGreedyDecoder", SCORES, np.array([6, 4], np.int32)),
    case("CTCGreedyDecoder", SCORES, np.array([6, 4], np.int32), merge_repeated=True),
    case("CTCGreedyDecoder", SCORES, np.array([6, 4], np.int32), blank_index=0, merge_repeated=True),
    case(
        "CTCLoss",
        SCORES,
        np.array([[0, 0], [0, 1], [1, 0]], np.int64),
        np.array([1, 0, 2], np.int32),
        np.array([6, 4], np.int32),
        outputs=[0],
    ),
    case(
        "CTCLoss",
        SCORES,
        np.array([[0, 0], [0, 1], [1, 0]], np.int64),
        np.array([1, 1, 2], np.int32),
        np.array([6, 4], np.int32),
        preprocess_collapse_repeated=True,
        outputs=[0],
    ),
]
