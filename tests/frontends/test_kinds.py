"""Files that are neither IR nor ONNX: what each is said to be, the next step, and the exit code; by content first."""

from __future__ import annotations

import bz2
import gzip
import lzma
import pickle
import tarfile
import zipfile
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from typer.testing import CliRunner

from aot import cli
from aot.frontends import read_model
from aot.runtime.describe import error_text, hint
from aot.runtime.errors import AotError, CorruptError
from aot.runtime.loading.library import open_library
from aot.tools.check import check
from tests.frontends.openvino.irfile import layer, network, parameter, result, write

Write = Callable[[Path], object]


def raw(data: bytes) -> Write:
    return lambda path: path.write_bytes(data)


def zipped(*names: str) -> Write:
    def made(path: Path) -> None:
        with zipfile.ZipFile(path, "w") as archive:
            for name in names:
                archive.writestr(name, b"x")

    return made


def tarred(path: Path) -> None:
    path.with_suffix(".txt").write_text("x")
    with tarfile.open(path, "w") as archive:
        archive.add(path.with_suffix(".txt"), "m.xml")


HDF = b"\x89HDF\r\n\x1a\n" + bytes(64)
SAFE = (2).to_bytes(8, "little") + b"{}" + bytes(16)
LFS = b"version https://git-lfs.github.com/spec/v1\noid sha256:00\nsize 12345\n"
LEGACY_TORCH = b"\x80\x02\x8a\nl\xfc\x9cF\xf9 j\xa8P\x19." + bytes(16)

FILES: list[tuple[str, Write, str, str, int]] = [
    ("m.ort", raw(b"\x20\0\0\0ORTM" + bytes(32)), "ONNX Runtime's own format", "the .onnx file", 3),
    ("m.onnx", raw(b"\x20\0\0\0ORTM" + bytes(32)), "ONNX Runtime's own format", "the .onnx file", 3),
    ("m.pt", zipped("m/data.pkl", "m/constants.pkl", "m/code/x.py"), "a TorchScript model", "torch.jit.load", 3),
    ("m.pth", zipped("archive/data.pkl", "archive/data/0"), "a PyTorch checkpoint", "torch.export.save", 3),
    ("m.pth", raw(LEGACY_TORCH), "a PyTorch checkpoint", "torch.export.save", 3),
    ("m.pt2", zipped("serialized_exported_program.json"), "exported by an older PyTorch", "torch.export.save", 3),
    ("m.pt", raw(b"\xfe\xfd\xfc" * 9), "damaged or encrypted", "torch.export.save", 4),
    ("m.h5", raw(HDF), "Keras's HDF5", "keras.saving.load_model", 3),
    ("m.keras", zipped("metadata.json", "config.json", "model.weights.h5"), "a Keras model", "aot compile 'm'", 3),
    ("m.safetensors", raw(SAFE), "safetensors", "optimum-cli", 3),
    ("m.bin", raw(b"tjgg\x03\0\0\0" + bytes(16)), "a format before GGUF", "optimum-cli", 3),
    ("m.onnx", raw(LFS), "a Git LFS pointer", "git lfs pull", 4),
    ("m.xml", raw(LFS), "a Git LFS pointer", "git lfs pull", 4),
    ("m.zip", zipped("m.xml", "m.bin"), "a zip archive", "unzip", 3),
    ("m.pt2", raw(b"PK\x03\x04" + bytes(60)), "a zip archive that is cut short", "copy the file again", 4),
    ("m.gguf", raw(bytes(64)), "a GGUF file that is damaged", "copy it again", 4),
    ("m.tflite", raw(b"\xfe\xfd\xfc" * 9), "a TensorFlow Lite file that is damaged", "copy it again", 4),
    ("m.npz", zipped("x.npy"), "arrays of NumPy", "aot run", 3),
    ("m.npy", lambda path: np.save(path, np.zeros(2)), "an array of NumPy", "aot run", 3),
    ("m.xml", raw(b"<!DOCTYPE html>\n<html><body>404</body></html>"), "a web page", "download", 4),
    ("m.onnx", raw(b"  <html lang='en'>"), "a web page", "download", 4),
    ("m.xml", raw(b"<?xml version='1.0'?><Error><Code>NoSuchKey</Code></Error>"), "a server", "download", 4),
    ("m.txt", raw(b"a model\n"), "a text", ".xml or .onnx", 3),
    ("config.json", raw(b'{"hidden_size": 768}'), "JSON", ".xml or .onnx", 3),
    ("m.json", raw(b'{"learner": {"attributes": {}}}'), "an XGBoost model", "onnxmltools", 3),
    ("m.txt", raw(b"tree\nversion=v4\nnum_class=1\n"), "a LightGBM model", "onnxmltools", 3),
    ("m.pkl", lambda path: path.write_bytes(pickle.dumps([1])), "pickled Python objects", "skl2onnx", 3),
    ("m.onnx.gz", lambda path: path.write_bytes(gzip.compress(b"x")), "a compressed file", "gunzip", 3),
    ("m.onnx.zst", raw(b"\x28\xb5\x2f\xfd" + bytes(9)), "a compressed file", "unzstd", 3),
    ("m.xz", lambda path: path.write_bytes(lzma.compress(b"x")), "a compressed file", "unxz", 3),
    ("m.bz2", lambda path: path.write_bytes(bz2.compress(b"x")), "a compressed file", "bunzip2", 3),
    ("m.tar", tarred, "an archive", "tar xf", 3),
    ("m.xml", raw(b"Salted__" + bytes(range(32))), "an encrypted file", "decrypt", 3),
    ("m.xml", raw(b"\xde\xad\xbe\xef" * 8), "encrypted or damaged", "decrypt", 4),
    ("m.mlmodel", raw(b"\x08\x04\x12\x02\x0a\x00"), "a Core ML model", "ONNX", 3),
    ("m-symbol.json", raw(b'{\n "nodes": [\n {\n "op": "null",'), "an MXNet network", "openvino-dev==2022.3", 3),
    ("m-0000.params", raw(b"\x12\x01" + bytes(30)), "weights of an MXNet", "openvino-dev==2022.3", 3),
    ("final.mdl", raw(b"\0B<TransitionModel> "), "a Kaldi model", "openvino-dev==2022.3", 3),
    ("final.nnet", raw(b"<Nnet>\n"), "a Kaldi model", "openvino-dev==2022.3", 3),
    ("m.bin", raw(bytes(64)), "weights without a network", ".xml or .onnx", 3),
    ("m.onnx", raw(b""), "an empty file", "", 4),
    ("m.so", raw(b"\x7fELF\x02\x01\x01" + bytes(64)), "a compiled file", "aot run", 2),
    ("m.wasm", raw(b"\0asm\x01\0\0\0" + bytes(64)), "a compiled file", "aot info", 2),
    ("m.dat", raw(b"\xff\x00\xfe" * 9), "something else", "openvino.convert_model", 3),
]


@pytest.mark.parametrize(("name", "made", "what", "step", "code"), FILES, ids=[f"{f[0]}: {f[2]}" for f in FILES])
def test_a_file_of_another_kind_is_named_with_the_next_step(
    tmp_path: Path, name: str, made: Write, what: str, step: str, code: int
) -> None:
    made(tmp_path / name)
    with pytest.raises(AotError) as caught:
        read_model(tmp_path / name)
    assert what in str(caught.value)
    assert step in hint(caught.value)
    assert caught.value.exit_code == code
    assert caught.value.advice not in error_text(caught.value) or not caught.value.advice


FOLDERS = [
    (("openvino_model.xml", "openvino_model.bin"), "an OpenVINO model", ".xml"),
    (("model.onnx",), "an ONNX model", ".onnx"),
    (("Manifest.json", "Data/x"), "a Core ML package", "ONNX"),
    (("config.json", "pytorch_model.bin"), "a Hugging Face model", "save_pretrained"),
    (("config.json", "m.gguf"), "a GGUF model", ".gguf"),
    (("deploy.prototxt", "m.caffemodel"), "a Caffe model", ".prototxt"),
    (("config.json", "tokenizer.json"), "a Hugging Face model without weights", "hf download"),
    (("config.json", "inference.json"), "a PaddlePaddle model without weights", ".pdiparams"),
    (("m.pdmodel",), "a folder of a PaddlePaddle model without weights", ".pdiparams"),
    (("readme.md",), "a folder", ".xml or .onnx"),
]


@pytest.mark.parametrize(("names", "what", "step"), FOLDERS, ids=[f[1] for f in FOLDERS])
def test_a_folder_is_named_with_the_next_step(tmp_path: Path, names: tuple[str, ...], what: str, step: str) -> None:
    for name in names:
        (tmp_path / "m" / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / "m" / name).write_bytes(b"x")
    ran = CliRunner().invoke(cli.app, ["compile", str(tmp_path / "m")])
    assert ran.exit_code == 3
    assert what in ran.stderr and step in ran.stderr.split("next: ")[1]


def test_this_folder_has_a_name(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    with pytest.raises(AotError, match=f"^{tmp_path.name}: "):
        read_model(".")


def test_weights_of_an_ir_are_taken_for_its_file(tmp_path: Path) -> None:
    write(tmp_path, network([parameter(), result(1)], "0.0->1.0"), bytes(64))
    with pytest.raises(AotError, match="the weights of an IR") as caught:
        read_model(tmp_path / "m.bin")
    assert hint(caught.value) == "give the .xml file beside it: m.xml"


@pytest.mark.parametrize("name", ["config.json", "model.safetensors"])
def test_a_file_of_a_folder_is_taken_for_the_folder(name: str, tmp_path: Path) -> None:
    (tmp_path / "config.json").write_text("{}")
    (tmp_path / "model.safetensors").write_bytes(SAFE)
    with pytest.raises(AotError, match="a file of a Hugging Face model") as caught:
        read_model(tmp_path / name)
    assert hint(caught.value) == f"give its folder: aot compile '{tmp_path}'"


def test_a_tokenizer_runs_outside(tmp_path: Path) -> None:
    split = layer(1, "split", "RegexSplit", "extension", inputs=(0,), outputs=(1,))
    path = write(tmp_path, network([parameter(element_type="string"), split, result(2)], "0.0->1.0 1.1->2.0"))
    with pytest.raises(AotError, match="RegexSplit") as caught:
        read_model(path)
    assert "run the tokenizer outside" in hint(caught.value)
    assert "run the tokenizer outside" in check(path)[0].advice


def test_a_model_is_compiled_before_it_is_loaded(tmp_path: Path) -> None:
    path = tmp_path / "m.onnx"
    path.write_bytes(b"\x08\x07\x12\x00" * 32)
    with pytest.raises(CorruptError) as caught:
        open_library(path)
    assert "aot compile" in hint(caught.value)
