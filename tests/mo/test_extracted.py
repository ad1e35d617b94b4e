"""Attributes of Model Optimizer's names on nodes of files: a changed one changes the attribute of the file."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from aot.frontends.tf.files.tensors import TypeName
from aot.ir.op import Foreign
from aot.mo.extracted.nodes import extracted, written

PADS = np.array([[0, 0], [0, 0], [1, 2], [3, 4]])
CASES: list[tuple[str, dict[str, Any], dict[str, Any], dict[str, Any]]] = [
    ("LeakyRelu", {}, {"negative_slope": 0.5}, {"alpha": 0.5}),
    ("LeakyRelu", {"alpha": 0.25}, {"negative_slope": None}, {"alpha": None}),
    ("Conv", {}, {"stride": np.array([1, 1, 2, 3])}, {"strides": (2, 3)}),
    ("MaxPool", {}, {"pad": PADS}, {"pads": (1, 3, 2, 4)}),
    ("Cast", {"to": 1}, {"dst_type": np.float16}, {"to": 10}),
    ("DepthToSpace", {}, {"mode": "depth_first"}, {"mode": "CRD"}),
    ("Transpose", {"perm": (0, 1)}, {"order": np.array([1, 0])}, {"perm": (1, 0)}),
]


TENSORFLOW: list[tuple[str, dict[str, Any], dict[str, Any], dict[str, Any]]] = [
    ("Conv2D", {}, {"stride": np.array([1, 2, 2, 1])}, {"strides": (1, 2, 2, 1)}),
    ("Conv2D", {"padding": "SAME"}, {"auto_pad": "valid"}, {"padding": "VALID"}),
    ("Cast", {"DstT": TypeName("f32")}, {"dst_type": np.int64}, {"DstT": TypeName("i64")}),
    ("StridedSlice", {"begin_mask": 0}, {"begin_mask": np.array([0, 1, 0])}, {"begin_mask": 5}),
    ("LRN", {}, {"local_size": 7}, {"depth_radius": 3}),
    ("MirrorPad", {"mode": "REFLECT"}, {"mode": "symmetric"}, {"mode": "SYMMETRIC"}),
]


@pytest.mark.parametrize(("kind", "attrs", "changed", "wanted"), CASES)
def test_a_changed_attribute_is_written(
    kind: str, attrs: dict[str, Any], changed: dict[str, Any], wanted: dict[str, Any]
) -> None:
    op = Foreign("onnx", kind, (("domain", ""), ("opset", 13), *attrs.items()))
    assert written(op, changed) == wanted


@pytest.mark.parametrize(("kind", "attrs", "changed", "wanted"), TENSORFLOW)
def test_a_changed_attribute_of_tensorflow_is_written(
    kind: str, attrs: dict[str, Any], changed: dict[str, Any], wanted: dict[str, Any]
) -> None:
    found = written(Foreign("tf", kind, tuple(attrs.items())), changed)
    assert found == wanted and {n: type(v) for n, v in found.items()} == {n: type(v) for n, v in wanted.items()}


HOSTILE: list[tuple[str, str, dict[str, Any], str]] = [
    ("tf", "Conv2D", {"data_format": "XY", "strides": "wide"}, "stride"),
    ("tf", "StridedSlice", {"begin_mask": "all"}, "begin_mask"),
    ("tf", "FakeQuantWithMinMaxVars", {"num_bits": 1 << 60}, "levels"),
    ("tf", "Conv2D", {"data_format": 3}, "channel_dims"),
    ("onnx", "Conv", {"pads": (1, 2, 3), "strides": "x"}, "pad"),
    ("onnx", "LSTM", {"activations": 3, "direction": 1}, "direction"),
    ("onnx", "Slice", {"starts": 5}, "axes"),
]


@pytest.mark.parametrize(("dialect", "kind", "attrs", "name"), HOSTILE)
def test_attributes_of_a_wrong_file_are_left_out(dialect: str, kind: str, attrs: dict[str, Any], name: str) -> None:
    known = {"domain": "", "opset": 9} if dialect == "onnx" else {}
    found = extracted(Foreign(dialect, kind, tuple({**known, **attrs}.items())), 1)
    assert name not in found
