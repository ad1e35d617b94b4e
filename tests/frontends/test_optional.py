"""Packages of an extra are needed by that extra alone."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

import aot
from aot.runtime.errors import MissingError

EXTRAS = [  # a file, its first bytes, the missing module, the extra
    ("m.onnx", b"\x08\x08\x12\x00", "onnx", "onnx"),
    ("m.pb", b"\x0a\x00", "tensorboard", "tf"),
    ("m.pb", b"\x0a\x00", "google", "tf"),
    ("m.tflite", b"\x1c\0\0\0TFL3", "flatbuffers", "tflite"),
    ("m.prototxt", b'input: "x"', "google", "caffe"),
]


@pytest.mark.parametrize("module", ["aot", "cli"])
def test_the_compiler_works_without_the_onnx_package(module: str) -> None:
    code = f"import sys; sys.modules['onnx'] = None; import {module}"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr


@pytest.mark.parametrize(("name", "head", "module", "extra"), EXTRAS)
def test_a_file_whose_reader_is_missing_names_the_extra(
    name: str, head: bytes, module: str, extra: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """If `google` itself is missing, a search for `google.protobuf` raises an error of its own."""
    monkeypatch.setitem(sys.modules, module, None)
    monkeypatch.delitem(sys.modules, f"{module}.protobuf", raising=False)
    (tmp_path / name).write_bytes(head)
    with pytest.raises(MissingError, match=rf"{name}: .* needs the packages? .*: pip install 'aot\[{extra}\]'"):
        aot.read_model(tmp_path / name)
