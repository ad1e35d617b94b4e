"""Programs for ONNX Runtime run with `aot.compat.onnxruntime`, and see what they see there."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import onnx
import onnxruntime as theirs
import pytest

import aot
from aot.compat import onnxruntime as ours
from aot.runtime.errors import UsageError

TEXTS = [
    "m (float[n,3] x, double[2] y) => (float[n,3] z, double[2] w) { z = Relu(x) w = Neg(y) }",
    "m (int8[n] a, uint8[n] b, int16[n] c, int32[n] d) => (int32[n] e) "
    "{ f = Cast<to=6>(a) g = Cast<to=6>(b) h = Cast<to=6>(c) i = Add(f, g) j = Add(h, i) e = Add(j, d) }",
    "m (bool[2,k] a, int64[k] b, uint32[1] c, uint64[1] d, float16[1] e) => (bool[2,k] f) { f = Not(a) }",
]


def model(text: str) -> Any:
    return onnx.parser.parse_model(f'<ir_version: 10, opset_import: ["": 21]> {text}')


@pytest.mark.parametrize("text", TEXTS)
def test_arguments_are_described_alike(text: str) -> None:
    data = model(text).SerializeToString()
    sessions = [kind.InferenceSession(data, providers=["CPUExecutionProvider"]) for kind in (ours, theirs)]
    for method in ("get_inputs", "get_outputs"):
        found, expected = [[(a.name, a.type, a.shape) for a in getattr(s, method)()] for s in sessions]
        assert found == expected


@pytest.mark.parametrize("form", ["path", "text", "bytes", "library"])
def test_a_session_runs_as_in_onnx_runtime(form: str, tmp_path: Path) -> None:
    one = model(TEXTS[0])
    onnx.save(one, tmp_path / "m.onnx")
    source: Any = {"path": tmp_path / "m.onnx", "text": str(tmp_path / "m.onnx"), "bytes": one.SerializeToString()}
    source["library"] = tmp_path / "m.so"
    aot.compile_model(one, output=tmp_path / "m.so")
    session = ours.InferenceSession(source[form], ours.SessionOptions(intra_op_num_threads=1))
    assert session.model.threads == 1
    x, y = np.array([[-1, 2, 3]], np.float32), np.array([1.5, 2])
    expected = theirs.InferenceSession(one.SerializeToString()).run(None, {"x": x, "y": y})
    for names in (None, ["w"], ["w", "z"]):
        found = session.run(names, {"x": x, "y": y})
        wanted = expected if names is None else [dict(zip("zw", expected, strict=True))[n] for n in names]
        assert [a.tolist() for a in found] == [a.tolist() for a in wanted]


def test_meaningless_arguments_are_refused() -> None:
    data = model(TEXTS[0]).SerializeToString()
    with pytest.raises(UsageError, match="providers must contain CPUExecutionProvider, got CUDA"):
        ours.InferenceSession(data, providers=["CUDAExecutionProvider"])
    both = [("CUDAExecutionProvider", {}), "CPUExecutionProvider"]
    session = ours.InferenceSession(data, providers=both)
    assert session.get_providers() == ours.get_available_providers() == ["CPUExecutionProvider"]
    assert session.get_modelmeta().graph_name == "m"
    with pytest.raises(UsageError, match="run_options must be None"):
        session.run(None, {}, object())
    with pytest.raises(UsageError, match="must be one of z, w, got 'v'"):
        session.run(["v"], {"x": np.ones((1, 3), np.float32), "y": np.ones(2)})
