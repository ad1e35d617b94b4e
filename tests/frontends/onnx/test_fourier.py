"""DFT of known length: as a product with a matrix, and in stages where a length has small prime factors."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper
from onnx.numpy_helper import from_array

from aot.compilation.driver import stages
from aot.compilation.jit import in_memory


@pytest.mark.parametrize(("inverse", "onesided"), [(0, 0), (1, 0), (0, 1)])
@pytest.mark.parametrize(("extent", "length"), [(12, 12), (60, 60), (60, 40), (40, 60), (61, 61)])
def test_transforms_of_known_length(tmp_path: Path, extent: int, length: int, inverse: int, onesided: int) -> None:
    x = np.random.default_rng(length).normal(size=(2, extent, 3, 1 if onesided else 2)).astype(np.float32)
    node = helper.make_node("DFT", ["x", "n", "axis"], ["y"], inverse=inverse, onesided=onesided)
    given = helper.make_tensor_value_info("x", TensorProto.FLOAT, x.shape)
    made = helper.make_tensor_value_info("y", TensorProto.FLOAT, None)
    numbers = [from_array(np.array(v), name) for name, v in (("n", length), ("axis", 1))]
    graph = helper.make_graph([node], "g", [given], [made], numbers)
    onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 20)]), tmp_path / "m.onnx")
    signal = x[..., 0] if onesided else x[..., 0] + 1j * x[..., 1]
    transform = np.fft.rfft if onesided else np.fft.ifft if inverse else np.fft.fft
    wanted = transform(signal.astype(np.float64 if onesided else np.complex128), length, 1)
    found = np.asarray(in_memory(stages(tmp_path / "m.onnx").built, 1)(x)[0])
    np.testing.assert_allclose(found[..., 0] + 1j * found[..., 1], wanted, rtol=0, atol=1e-6 * np.abs(wanted).max())
