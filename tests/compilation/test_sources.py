"""`compile_model` takes paths, bytes and messages, and writes a file where one is asked for."""

from __future__ import annotations

import os
import pickle
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest

import aot
from aot.runtime.errors import CorruptError, UsageError

FOLDER = Path(__file__).parents[2] / "examples" / "digits"
TEXT = '<ir_version: 10, opset_import: ["": 21]> m (float[n] x) => (float[n] y) { y = Add(x, x) }'
X = np.array([1, 2], np.float32)


@pytest.mark.parametrize("form", ["str", "Path", "PathLike", "bytes", "bytearray", "ModelProto"])
def test_forms_of_a_model(form: str, tmp_path: Path) -> None:
    model = onnx.parser.parse_model(TEXT)
    onnx.save(model, tmp_path / "m.onnx")
    data, path = model.SerializeToString(), tmp_path / "m.onnx"
    linked = type("Link", (), {"__fspath__": lambda self: str(path)})
    os.PathLike.register(linked)
    forms: dict[str, Any] = {"str": str(path), "Path": path, "PathLike": linked(), "bytes": data}
    forms |= {"bytearray": bytearray(data), "ModelProto": model}
    compiled = aot.compile_model(forms[form])
    assert compiled(X)[0].tolist() == [2, 4]
    assert compiled.content_hash == aot.compile_model(path).content_hash


def test_output_is_a_file_that_pickles(tmp_path: Path) -> None:
    compiled = aot.compile_model(onnx.parser.parse_model(TEXT), output=tmp_path / "m.so", threads=1)
    assert pickle.loads(pickle.dumps(compiled))(X)[0].tolist() == [2, 4]
    assert aot.runtime.load(tmp_path / "m.so")(X)[0].tolist() == [2, 4]
    assert list(tmp_path.iterdir()) == [tmp_path / "m.so"]


def test_bytes_are_cached_by_their_content(tmp_path: Path) -> None:
    data = onnx.parser.parse_model(TEXT).SerializeToString()
    for _ in range(2):
        assert aot.compile_model(data, cache_dir=tmp_path)(X)[0].tolist() == [2, 4]
    assert len(list(tmp_path.glob("*.so"))) == 1


@pytest.mark.parametrize(
    ("model", "more", "error", "says"),
    [
        (b"", {}, CorruptError, "got an empty file"),
        (b"\0" * 100, {}, Exception, "."),
        (7, {}, UsageError, "model must be a path, bytes, a ModelProto or a graph, got int"),
        (onnx.ModelProto, {}, UsageError, "got "),
        ("m.xml", {"output": "m.so", "cache_dir": "c"}, UsageError, "cannot be given together"),
    ],
)
def test_wrong_models(model: Any, more: Any, error: type[Exception], says: str) -> None:
    with pytest.raises(error, match=says):
        aot.compile_model(model, **more)
