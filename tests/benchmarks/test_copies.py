"""Networks made of others for the benchmarks: sizes that vary, quantised weights."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import aot
from benchmarks.networks.folder import Folder, largest_error
from tests.benchmarks.test_benchmarks import ROOT

WITHOUT = "the extra `bench` is not installed"
ov: Any = pytest.importorskip("openvino", reason=WITHOUT)
ops: Any = pytest.importorskip("openvino.opset13", reason=WITHOUT)


@pytest.fixture
def heads(tmp_path: Path) -> Folder:
    """x[1, 6, 32] - MatMul - Reshape to [1, 6, 4, 16] - Transpose - Relu, as attention begins."""
    x = ops.parameter([1, 6, 32], np.float32, name="x")
    w = np.random.default_rng(0).normal(size=(32, 64)).astype(np.float32)
    y = ops.reshape(ops.matmul(x, w, False, False), [1, 6, 4, 16], False)
    y = ops.relu(ops.transpose(y, [0, 2, 1, 3]))
    path = tmp_path / "heads"
    path.mkdir()
    ov.save_model(ov.Model([y], [x], "heads"), path / "model.xml", compress_to_fp16=False)
    np.save(path / "in_x.npy", np.random.default_rng(1).normal(size=(1, 6, 32)).astype(np.float32))
    return Folder(path)


def copied(module: str, folder: Folder, *options: str) -> Folder:
    out = folder.path.parent / module
    command = [sys.executable, "-m", f"benchmarks.{module}", str(folder.path), str(out), *options]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=600, check=False)
    assert done.returncode == 0, done.stderr
    return Folder(out)


def error(folder: Folder) -> float:
    """Return the error of our results against those stored in the folder."""
    model = aot.compile_model(folder.xml)
    expected = folder.outputs()
    return largest_error([np.asarray(y) for y in model(list(folder.inputs().values())).to_tuple()], expected)


def test_sizes_vary_and_patterns_of_reshapes_follow(heads: Folder) -> None:
    made = copied("vary", heads, "--shape", "x=?,?,32")
    model = aot.compile_model(made.xml)
    assert error(made) < 1e-5
    assert model(np.zeros((3, 9, 32), np.float32))[0].shape == (3, 4, 9, 16)


def test_products_are_quantized(heads: Folder) -> None:
    made = copied("quantize", heads)
    types = [n.get_type_name() for n in ov.Core().read_model(made.xml).get_ordered_ops()]
    assert types.count("FakeQuantize") == 1
    assert made.tolerance == 0.1
    assert error(made) < 0.02


def test_weights_alone_are_quantized(heads: Folder) -> None:
    made = copied("quantize", heads, "--weights-only")
    kinds = {n.get_element_type().to_string() for n in ov.Core().read_model(made.xml).get_ordered_ops()}
    assert kinds == {"f32", "u8", "i64"}
    assert error(made) < 1e-5
    assert json.loads((made.path / "meta.json").read_text())["inputs"] == [{"name": "x"}]
