"""Convolutions with groups, and convolutions and pools with channels last, that extensions make."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from onnx import helper

from aot.compilation.driver import stages
from aot.ir.interpret import interpret
from aot.opset.products.convolution import GroupConvolution
from aot.opset.products.deconvolution import GroupConvolutionBackpropData
from aot.opset.products.pool_windows import AutoPad
from aot.options import CompileOptions
from aot.runtime.errors import AotError
from tests.frontends.onnx.models import model, save
from tests.mo.test_loading import HEAD, folder

RNG = np.random.default_rng(4)
X = RNG.standard_normal((1, 4, 5, 6)).astype(np.float32)
CODE = (
    HEAD
    + """
import numpy as np
from openvino.tools.mo.ops.const import Const
from openvino.tools.mo.ops.convolution import Convolution
from openvino.tools.mo.ops.deconvolution import Deconvolution
from openvino.tools.mo.ops.op import PermuteAttrs
from openvino.tools.mo.ops.pooling import Pooling

class Replace(FrontReplacementOp):
    op = "Tanh"
    enabled = True
    def replace_op(self, graph, node):
        made = {cls}(graph, dict({attrs})).create_node()
        node.in_port(0).get_source().connect(made.in_port(0))
        weights = {weights}
        if weights is not None:
            made.add_input_port(1, skip_if_exist=True)
            Const(graph, dict(value=weights)).create_node().out_port(0).connect(made.in_port(1))
        return [made.id]
"""
)
W = "np.arange(8 * 2 * 9, dtype=np.float32).reshape({shape}) / 50"
ONES = "stride=np.array([1, 1, 1, 1]), dilation=np.array([1, 1, 1, 1]), auto_pad='same_upper'"
FIRST = ONES + ", spatial_dims=np.array([2, 3])"
DIMS = "channel_dims=np.array([3]), batch_dims=np.array([0])"
LAST = f"{ONES}, {DIMS}"
HALVED = f"{DIMS}, stride=np.array([1, 2, 2, 1]), window=np.array([1, 2, 2, 1]), pad=np.zeros((4, 2), int)"
PERMUTED = ", get_weights_permute=PermuteAttrs.Permutation(perm=np.array([3, 2, 0, 1]), inv=np.array([2, 3, 1, 0]))"


def weights(*shape: int) -> Any:
    return (np.arange(8 * 2 * 9, dtype=np.float32) / 50).reshape(shape)


def grouped(x: Any, w: Any, group: int = 2, kind: Any = GroupConvolution) -> Any:
    op = kind(auto_pad=AutoPad.SAME_UPPER, strides=(1, 1), dilations=(1, 1), pads_begin=(0, 0), pads_end=(0, 0))
    return op.reference(x, w.reshape(group, w.shape[0] // group, *w.shape[1:]))


def last(x: Any) -> Any:
    return x.transpose(0, 2, 3, 1)


NHWC = last(X)
PATCHES = RNG.standard_normal((1, 6, 6, 4)).astype(np.float32)
CASES: dict[str, tuple[str, str, str, Any, Any]] = {
    "groups": ("Convolution", f"{FIRST}, group=2", W.format(shape="8, 2, 3, 3"), X, grouped(X, weights(8, 2, 3, 3))),
    "groups of a transposed one": (
        "Deconvolution",
        f"{FIRST}, group=2",
        W.format(shape="4, 4, 3, 3"),
        X,
        grouped(X, weights(4, 4, 3, 3), kind=GroupConvolutionBackpropData),
    ),
    "channels last": (
        "Convolution",
        LAST + PERMUTED,
        W.format(shape="3, 3, 4, 4"),
        NHWC,
        last(grouped(X, weights(3, 3, 4, 4).transpose(3, 2, 0, 1), 1)),
    ),
    "a pool with channels last": (
        "Pooling",
        HALVED + ", auto_pad='valid', pool_method='max'",
        "None",
        PATCHES,
        PATCHES.reshape(1, 3, 2, 3, 2, 4).max((2, 4)),
    ),
}


def made(tmp_path: Path, cls: str, attrs: str, given: str, x: Any) -> Any:
    text = CODE.format(cls=cls, attrs=attrs, weights=given)
    path = save(tmp_path, model([helper.make_node("Tanh", ["x"], ["y"])], {"x": x}, ["y"]))
    options = CompileOptions(level=None, extensions=folder(tmp_path, front_x=text))
    return interpret(stages(path, options).optimized, [x])[0]


@pytest.mark.parametrize(("cls", "attrs", "given", "x", "wanted"), CASES.values(), ids=CASES)
def test_they_compute_what_model_optimizer_wrote(
    tmp_path: Path, cls: str, attrs: str, given: str, x: Any, wanted: Any
) -> None:
    np.testing.assert_allclose(made(tmp_path, cls, attrs, given, x), wanted, rtol=1e-4, atol=1e-4)


def test_groups_that_do_not_divide(tmp_path: Path) -> None:
    with pytest.raises(AotError, match="group divides the first dimension of the weights, got 3 and"):
        made(tmp_path, "Convolution", f"{FIRST}, group=3", W.format(shape="8, 2, 3, 3"), X)
