"""Convolutions, transposed, binary and deformable ones."""

from __future__ import annotations

import numpy as np

from aot.opset.products.convolution import AutoPad, BinaryConvolution, Convolution, GroupConvolution
from aot.opset.products.deconvolution import ConvolutionBackpropData, GroupConvolutionBackpropData
from aot.opset.products.deformable import DeformableConvolution, DeformableConvolution_1
from aot.runtime.abi import DType
from tests.cases import EXACT, LOOSE, Case

F32, F16, I32 = DType.F32, DType.F16, DType.I32
UPPER, LOWER, VALID = AutoPad.SAME_UPPER, AutoPad.SAME_LOWER, AutoPad.VALID
BITS = np.random.default_rng(0).integers(0, 2, (4, 8, 3, 3)).astype(np.uint8)
SHAPE = np.array([9, 11], np.int64)

CASES = [
    Case(Convolution(), [(F32, (2, 3, 9)), (F32, (4, 3, 3))], LOOSE),
    Case(Convolution((1, 1), (1, 1), (1, 1)), [(F32, (2, 3, 7, 8)), (F32, (5, 3, 3, 3))], LOOSE),
    Case(Convolution((2, 1), (0, 2), (1, 0), (1, 2)), [(F32, (1, 3, 7, 8)), (F32, (5, 3, 3, 2))], LOOSE),
    Case(Convolution(), [(F32, (1, 8, 5, 5)), (F32, (6, 8, 1, 1))], LOOSE),
    Case(Convolution(), [(F32, (1, 1, 5, 5)), (F32, (3, 1, 1, 1))], LOOSE),
    Case(Convolution((2, 2, 1)), [(F32, (1, 2, 5, 6, 7)), (F32, (3, 2, 2, 3, 3))], LOOSE),
    Case(Convolution((2, 2), auto_pad=UPPER), [(F32, (1, 2, 7, 8)), (F32, (3, 2, 3, 3))], LOOSE),
    Case(Convolution((2, 2), auto_pad=LOWER), [(F32, (1, 2, 7, 8)), (F32, (3, 2, 4, 4))], LOOSE),
    Case(Convolution((1, 1), (9, 9), (9, 9), auto_pad=VALID), [(F32, (1, 2, 7, 8)), (F32, (3, 2, 3, 3))], LOOSE),
    Case(Convolution((1, 1), (1, 1), (1, 1)), [(F32, ("n=2", 3, "h=6", "w=5")), (F32, (4, 3, 3, 3))], LOOSE),
    Case(Convolution((2, 2), auto_pad=UPPER), [(F32, (1, 3, "h=6", "w=5")), (F32, (4, 3, 3, 3))], LOOSE),
    Case(Convolution((1, 1), (1, 1), (1, 1)), [(F16, (1, 3, 6, 5)), (F16, (4, 3, 3, 3))], LOOSE),
    Case(Convolution((1, 1), (1, 1), (0, 0)), [(I32, (1, 3, 6, 5)), (I32, (4, 3, 3, 3))], EXACT),
    Case(GroupConvolution((1, 1), (1, 1), (1, 1)), [(F32, (2, 6, 7, 8)), (F32, (6, 1, 1, 3, 3))], LOOSE),
    Case(GroupConvolution((2, 1)), [(F32, (2, 6, 7, 8)), (F32, (2, 4, 3, 3, 2))], LOOSE),
    Case(GroupConvolution((1, 1), (2, 2), (2, 2), (2, 2)), [(F32, (1, 4, 7, 8)), (F32, (4, 2, 1, 3, 3))], LOOSE),
    Case(GroupConvolution(), [(F32, (1, 4, 9)), (F32, (2, 1, 2, 3))], LOOSE),
    Case(GroupConvolution(auto_pad=UPPER), [(F32, ("n=2", 4, "h=5", 6)), (F32, (4, 1, 1, 3, 3))], LOOSE),
    Case(ConvolutionBackpropData((2, 2)), [(F32, (1, 3, 4, 5)), (F32, (3, 4, 2, 2))], LOOSE),
    Case(ConvolutionBackpropData((2, 2), (1, 1), (1, 1)), [(F32, (1, 3, 4, 5)), (F32, (3, 4, 4, 4))], LOOSE),
    Case(
        ConvolutionBackpropData((2, 3), (1, 0), (0, 1), output_padding=(1, 2)),
        [(F32, (2, 3, 4, 5)), (F32, (3, 4, 3, 3))],
        LOOSE,
    ),
    Case(ConvolutionBackpropData((2, 2), dilations=(2, 3)), [(F32, (1, 3, 4, 5)), (F32, (3, 4, 3, 3))], LOOSE),
    Case(ConvolutionBackpropData((4,), (1,), (0,), (6,)), [(F32, (1, 3, 5)), (F32, (3, 2, 3))], LOOSE),
    Case(ConvolutionBackpropData((2, 2), auto_pad=UPPER), [(F32, (1, 3, 4, 5)), (F32, (3, 4, 4, 4)), SHAPE], LOOSE),
    Case(ConvolutionBackpropData((2, 2), auto_pad=VALID), [(F32, (1, 3, 4, 5)), (F32, (3, 4, 3, 4)), SHAPE], LOOSE),
    Case(ConvolutionBackpropData((2, 2)), [(F32, (1, 3, "h=4", "w=5")), (F32, (3, 4, 3, 3))], LOOSE),
    Case(ConvolutionBackpropData((2, 2, 2)), [(F32, (1, 2, 2, 3, 2)), (F32, (2, 2, 2, 2, 2))], LOOSE),
    Case(GroupConvolutionBackpropData((2, 2)), [(F32, (1, 4, 4, 5)), (F32, (4, 1, 1, 2, 2))], LOOSE),
    Case(GroupConvolutionBackpropData((2,), (1,), (1,)), [(F32, (2, 6, 7)), (F32, (2, 3, 2, 4))], LOOSE),
    Case(
        BinaryConvolution((1, 1), (1, 1), (1, 1), pad_value=-1.0),
        [(F32, (1, 8, 5, 6)), BITS],
        EXACT,
    ),
    Case(BinaryConvolution((2, 1), (1, 0), (1, 1)), [(F32, (1, 8, 5, 6)), BITS], EXACT),
    Case(BinaryConvolution((2, 1), (1, 0), (1, 1)), [(DType.U8, (1, 8, 5, 6)), BITS], EXACT),
    Case(BinaryConvolution((2, 1)), [(F32, (1, 8, 5, 6)), (DType.U8, (4, 8, "h=3", 3))], EXACT, high=3),
    Case(ConvolutionBackpropData((2, 2)), [(I32, (1, 3, 4, 5)), (I32, (3, 4, 3, 3))], EXACT),
    Case(GroupConvolutionBackpropData((1,)), [(DType.I8, (1, 4, 5)), (DType.I8, (2, 2, 1, 3))], EXACT),
    Case(
        DeformableConvolution((1, 1), (1, 1), (1, 1), deformable_group=2, bilinear_interpolation_pad=True),
        [(F32, (1, 4, 5, 6)), (F32, (1, 36, 5, 6)), (F32, (3, 4, 3, 3)), (F32, (1, 18, 5, 6))],
        LOOSE,
    ),
    Case(
        DeformableConvolution_1((2, 2), (1, 1), (1, 1), group=2),
        [(F32, (2, 4, 5, 6)), (F32, (2, 18, 3, 3)), (F32, (6, 2, 3, 3))],
        LOOSE,
    ),
]
