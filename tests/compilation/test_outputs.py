"""Paths of outputs: files that a model is read from stay as they are, and no output replaces another one."""

from __future__ import annotations

import os
from pathlib import Path
from shutil import copy

import numpy as np
import onnx
import pytest
from onnx.external_data_helper import convert_model_to_external_data
from onnx.numpy_helper import from_array
from typer.testing import CliRunner

import aot
from aot import cli
from aot.compilation import driver
from aot.compilation.outputs import check_outputs, is_read
from aot.runtime.errors import PlatformError, UsageError

DIGITS = Path(__file__).parents[2] / "examples" / "digits"


@pytest.fixture
def model(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An ONNX model whose weights lie in `m.weights`."""
    made = onnx.parser.parse_model(
        '<ir_version: 10, opset_import: ["": 21]> m (float[1,8] x) => (float[1,8] y) { y = MatMul(x, w) }'
    )
    made.graph.initializer.append(from_array(np.eye(8, dtype=np.float32), "w"))
    path = tmp_path / "m.onnx"
    convert_model_to_external_data(made, location="m.weights", size_threshold=0)
    onnx.save(made, path)
    monkeypatch.chdir(tmp_path)
    return path


@pytest.mark.parametrize(
    "command",
    [
        "compile m.onnx -o m.so --weights external",
        "compile m.onnx -o m.weights",
        "compile m.onnx -o m.onnx",
        "compile m.onnx -o m.so --header m.weights",
        "report m.onnx -o m.weights",
        "run m.onnx x.npy -o x.npy",
        "bench m.onnx x=x.npy --trace x.npy",
        "compile m.onnx -o m.so --header m.so",
        "compile m.onnx -o m.so --header folder/../m.so",
        "compile m.onnx -o m.so --weights external --tune 1 --tune-file m.new.weights --header m.new.weights",
    ],
)
def test_commands_replace_no_file_that_is_read_or_written(command: str, model: Path) -> None:
    np.save("x.npy", np.zeros((1, 8), np.float32))
    Path("folder").mkdir()
    before = {path.name: path.read_bytes() for path in model.parent.iterdir() if path.is_file()}
    done = CliRunner().invoke(cli.app, command.split())
    assert done.exit_code == 2
    assert "output: must be another file than " in done.stderr
    assert {path.name: path.read_bytes() for path in model.parent.iterdir() if path.is_file()} == before


def test_the_model_of_a_call_is_not_replaced(model: Path) -> None:
    for options in ({"output": "m.onnx"}, {"output": "m.so", "external_weights": True}):
        with pytest.raises(UsageError, match="must be another file than those that are read"):
            aot.compile_model(model, **options)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("source", "read", "other"),
    [
        ("m.xml", "m.bin", "m.so"),
        ("saved", "saved/variables/variables.index", "saved/m.xml"),
        ("saved/saved_model.pb", "saved/assets/words.txt", "saved/variables.txt"),
        ("m.meta", "m.data-00000-of-00001", "m.xml"),
        ("m.onnx", "m.weights", "m.bin"),
        ("m.onnx", "data/w.bin", "w.bin"),
        ("m.gguf", "m.gguf", "m.weights"),
        ("m.so", "m.weights", "m.html"),
        ("folder", "folder/model.safetensors", "folder/m.so"),
    ],
)
def test_files_of_a_model(source: str, read: str, other: str, tmp_path: Path) -> None:
    contents = {
        "m.onnx": b"location\x12\x09m.weightsoffset location\x12\x0c./data/w.bin",
        "m.gguf": b"GGUF m.weights",
        "m.so": b"\x7fELF m.html",
    }
    for name in (read, other, *((source,) if "." in source else ("folder/config.json",))):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_bytes(contents.get(name, b"x"))
    assert is_read(tmp_path / source, tmp_path / read)
    assert not is_read(tmp_path / source, tmp_path / other)


def test_links_and_other_spellings_of_a_model_are_the_model(tmp_path: Path) -> None:
    for name in ("model.xml", "model.bin"):
        copy(DIGITS / name, tmp_path)
    (tmp_path / "link.xml").symlink_to("model.xml")
    (tmp_path / "folder").mkdir()
    for name in ("link.xml", "folder/../model.xml", "folder/../model.bin"):
        with pytest.raises(UsageError, match="must be another file than those that are read"):
            check_outputs([tmp_path / name], tmp_path / "model.xml")


def test_a_folder_that_cannot_be_written_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Before any work. For the superuser permissions do not hold, so the answer of the system is changed."""
    monkeypatch.setattr(os, "access", lambda path, mode: (Path(path), mode) != (tmp_path, os.W_OK))
    with pytest.raises(UsageError, match="must be in a folder that can be written"):
        check_outputs([tmp_path / "m.so"])


@pytest.mark.parametrize("name", ["m.dll", "m.DLL", "m.1.dylib", "m.exe", "m.lib", "m.obj", "m.a", "m.wasm"])
def test_names_of_other_systems_files_are_refused(name: str, model: Path) -> None:
    for more in ("", "--emit obj", "--emit so"):
        done = CliRunner().invoke(cli.app, f"compile {model} -o {name} --target x86-64-v2 {more}".split())
        assert (
            done.exit_code == 2
            and f"output: a library for Linux must be named m.so, an object m.o, got {name}" in done.stderr
        )
    compiled = aot.compile_model(model, target="x86-64-v2")
    with pytest.raises(UsageError, match=r"a library for Linux must be named m\.so"):
        compiled.export_model(name)
    with pytest.raises(UsageError, match=r"a library for Linux must be named m\.so"):
        aot.compile_model(model, output=name)
    assert not Path(name).exists()


@pytest.mark.parametrize(
    ("target", "name", "there"),
    [
        ("windows-v3", "m.dll", "windows on x86_64"),
        ("macos-v8", "m.dylib", "macos on aarch64"),
        ("riscv64-v", "m.so", "linux on riscv64"),
    ],
)
def test_a_model_for_elsewhere_is_written_and_not_loaded(target: str, name: str, there: str, model: Path) -> None:
    for output in (name, None):
        with pytest.raises(PlatformError, match=f"a target for {there}"):
            aot.compile_model(model, output=output, target=target)
    assert not Path(name).exists()
    if name != "m.so":  # of which another machine's needs a linker
        aot.stages(model, target=target).write_library(name)
        with pytest.raises(PlatformError, match="this system is linux"):
            aot.runtime.load(name)


def test_a_target_for_a_later_processor_is_not_loaded(model: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(driver, "missing_features", lambda features: sorted({"avx512f"} & set(features)))
    with pytest.raises(PlatformError, match="without avx512f, got a target for x86-64-v4"):
        aot.compile_model(model, output="m.so", target="x86-64-v4")
    assert not Path("m.so").exists()
    assert aot.compile_model(model, target="x86-64-v2,x86-64-v4").threads > 0
