"""Random numbers that seeds in the file determine."""

import numpy as np
from make_op_cases import Known, case

SHAPE, ODD = Known([3, 5], np.int32), Known([7], np.int64)
SEEDS = ({"seed": 7, "seed2": 3}, {"seed": 1, "seed2": 0}, {"seed": 0, "seed2": 42})

CASES = [
    *(
        case(op, shape, dtype=np.float32, **seeds)
        for op in ("RandomUniform", "RandomStandardNormal")
        for shape in (SHAPE, ODD)
        for seeds in SEEDS
    ),
    case("RandomUniform", np.array([2, 3], np.int32), dtype=np.float32, seed=5, dynamic=False),
    case("RandomStandardNormal", np.array([3, 3], np.int32), dtype=np.float32, seed=5, dynamic=False),
    case("RandomUniform", SHAPE, dtype=np.float64, seed=5),
    case("RandomUniform", SHAPE, dtype=np.float16, seed=5),
    case("RandomUniformInt", SHAPE, Known(-3, np.int32), Known(90, np.int32), seed=7, seed2=3),
    *(
        case(op, shape, Known(seed, np.int64), dtype=np.float32)
        for op in ("StatelessRandomUniform", "StatelessRandomNormal")
        for shape, seed in ((SHAPE, [1, 2]), (ODD, [-5, 1 << 40]))
    ),
    case("StatelessRandomUniform", SHAPE, Known([3, 4], np.int32), dtype=np.float64),
    *(
        case(op, SHAPE, Known([77], np.uint64), Known([0, 99], np.uint64), Known(1, np.int32), dtype=np.float32)
        for op in ("StatelessRandomUniformV2", "StatelessRandomNormalV2")
    ),
    case("StatelessRandomGetKeyCounter", Known([3, -4], np.int64)),
    case("StatelessRandomGetKeyCounterAlg", Known([3, -4], np.int64)),
    case("StatelessRandomGetAlg"),
    case("StatelessRandomUniformInt", SHAPE, Known([3, 4], np.int32), Known(-3, np.int32), Known(90, np.int32)),
    case(
        "StatelessRandomUniformIntV2",
        SHAPE,
        Known([77], np.uint64),
        Known([0, 99], np.uint64),
        Known(1, np.int32),
        Known(-3, np.int32),
        Known(90, np.int32),
    ),
]
