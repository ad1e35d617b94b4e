"""Cases of aot/opset/image/resize.py and aot/opset/image/resampling.py."""

from __future__ import annotations

import numpy as np

from aot.ir.types import Array
from aot.opset.image.resampling import NearestResize, WeightedResize
from aot.opset.image.resize import Interpolate_1, Interpolate_4, Interpolate_11, ShapeFrom
from aot.opset.image.resize_weights import Coordinates, Mode, Rounding
from aot.runtime.abi import DType
from tests.cases import CLOSE, EXACT, Case

F32, F16, U8, I32 = DType.F32, DType.F16, DType.U8, DType.I32
TF = Coordinates.TF_HALF_PIXEL_FOR_NN
DATA = (F32, (1, 2, 6, 7))
RUN_TIME = (F32, (1, 2, "h=6", "w=7"))
BYTES = (U8, (1, 2, 6, 7))


def at(*values: int) -> Array:
    return np.array(values, np.int64)


AXES, UP, DOWN, ODD = at(2, 3), at(12, 21), at(3, 4), at(9, 5)
SCALES = np.array([2, 0.7], np.float32)
BY_SCALES = ShapeFrom.SCALES

CASES = [
    *(
        Case(Interpolate_11(mode, coordinate_transformation_mode=kind), [DATA, sizes, AXES])
        for mode in (Mode.NEAREST, Mode.LINEAR, Mode.CUBIC)
        for kind in Coordinates
        for sizes in (UP, ODD)
    ),
    *(
        Case(Interpolate_11(coordinate_transformation_mode=kind, nearest_mode=rounding), [DATA, sizes, AXES], EXACT)
        for kind in (Coordinates.ASYMMETRIC, Coordinates.HALF_PIXEL)
        for rounding in Rounding
        for sizes in (UP, DOWN)
    ),
    Case(Interpolate_11(Mode.LINEAR_ONNX, shape_calculation_mode=BY_SCALES), [DATA, SCALES, AXES]),
    Case(Interpolate_11(Mode.LINEAR, antialias=True), [DATA, DOWN, AXES]),
    Case(Interpolate_11(Mode.LINEAR, antialias=True), [DATA, UP, AXES]),
    Case(Interpolate_11(Mode.LINEAR, False, (0, 0, 1, 0), (0, 0, 0, 2)), [DATA, UP, AXES]),
    Case(Interpolate_11(Mode.BILINEAR_PILLOW), [DATA, ODD, AXES]),
    Case(Interpolate_11(Mode.BICUBIC_PILLOW, cube_coeff=-0.5), [DATA, DOWN, AXES]),
    Case(Interpolate_11(Mode.BICUBIC_PILLOW, cube_coeff=-0.5), [BYTES, ODD, AXES], EXACT, high=255),
    Case(Interpolate_11(Mode.BILINEAR_PILLOW), [BYTES, at(12, 14), AXES], EXACT, high=255),
    Case(Interpolate_11(Mode.LINEAR), [BYTES, at(12, 14), AXES], EXACT, high=255),
    Case(Interpolate_11(Mode.LINEAR), [(F16, (3, 5)), at(4, 9)]),
    Case(Interpolate_4(Mode.LINEAR_ONNX), [(F32, (1, 1, 3, 4, 5)), at(6, 4, 3), SCALES, at(2, 3, 4)]),
    Case(Interpolate_4(Mode.CUBIC, shape_calculation_mode=BY_SCALES), [DATA, UP, SCALES, AXES]),
    Case(Interpolate_1(Mode.NEAREST, axes=(2, 3)), [DATA, UP], EXACT),
    Case(Interpolate_1(Mode.LINEAR, axes=(2, 3), align_corners=False), [DATA, ODD], CLOSE),
    *(
        Case(Interpolate_11(mode, coordinate_transformation_mode=TF, nearest_mode=Rounding.CEIL), [DATA, sizes, AXES])
        for mode in (Mode.NEAREST, Mode.LINEAR, Mode.CUBIC)
        for sizes in (at(6, 9), at(9, 7))
    ),
    *(Case(NearestResize((2, 3), TF, nearest_mode=Rounding.CEIL), [RUN_TIME, at(*n)], EXACT) for n in ((6, 9), (9, 7))),
    *(Case(WeightedResize((2, 3), kind, (11, 10, 2, 1)), [RUN_TIME]) for kind in Coordinates),
    Case(Interpolate_11(Mode.LINEAR), [BYTES, at(12, 7), AXES], EXACT, low=0, high=5),
    Case(Interpolate_11(Mode.BILINEAR_PILLOW), [(I32, (1, 2, 6, 7)), at(12, 14), AXES], EXACT, low=0, high=5),
    Case(NearestResize((2, 3), Coordinates.ASYMMETRIC, (2, 1, 2, 1), Rounding.FLOOR), [RUN_TIME], EXACT),
    Case(NearestResize((3, 2), Coordinates.HALF_PIXEL), [RUN_TIME, at(9, 4)], EXACT),
    Case(NearestResize((2,), Coordinates.ALIGN_CORNERS, (3, 2), Rounding.SIMPLE), [RUN_TIME], EXACT),
    Case(WeightedResize((2, 3), Coordinates.HALF_PIXEL, (2, 1, 3, 2)), [RUN_TIME]),
    Case(WeightedResize((2, 3), Coordinates.PYTORCH_HALF_PIXEL, (2, 1, 1, 7)), [RUN_TIME]),
    Case(WeightedResize((2, 3), Coordinates.ALIGN_CORNERS, mode=Mode.CUBIC), [RUN_TIME, UP]),
    Case(WeightedResize((2, 3), Coordinates.ALIGN_CORNERS), [DATA, at(1, 13)]),
    *(Case(Interpolate_11(Mode.CUBIC), [data, at(2, 3, 9, 4)]) for data in (DATA, RUN_TIME)),  # two axes stay
    Case(Interpolate_11(Mode.CUBIC, coordinate_transformation_mode=Coordinates.ASYMMETRIC), [DATA, at(3, 7), AXES]),
]
