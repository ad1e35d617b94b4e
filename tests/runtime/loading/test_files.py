"""Special files, links in a circle, edited manifests, systems without /proc: an error with a reason, and no hang."""

from __future__ import annotations

import json
import os
import random
import shutil
import struct
import subprocess
import sys
import zipfile
from collections.abc import Callable
from functools import reduce
from pathlib import Path

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper
from typer.testing import CliRunner

import runtime
from aot import cli
from aot.codegen.llvm.host import host
from aot.compilation.cache import key_of
from aot.compilation.driver import compile_model, stages
from aot.frontends import read_model
from aot.options import CompileOptions
from aot.options.texts import values_of
from aot.runtime.arrays.files import read_arrays, read_inputs
from aot.runtime.describe import manifest_text
from aot.runtime.errors import CorruptError, PlatformError, UnsupportedError, UsageError
from aot.runtime.loading.elf import ElfFile
from aot.runtime.loading.library import read_manifest, verify
from aot.runtime.loading.manifest import parse
from aot.runtime.loading.weights import _header as header_of
from aot.runtime.loading.weights import update_weights
from aot.runtime.machine import missing_features, unreported
from aot.tools.supply import signature

ROOT = Path(__file__).parents[3]
DIGITS = ROOT / "examples" / "digits"

READERS: dict[str, Callable[[Path], object]] = {
    "load": runtime.load,
    "import": runtime.import_model,
    "info": read_manifest,
    "verify": verify,
    "model": read_model,
    "compile": compile_model,
    "arrays": read_arrays,
    "cache": lambda path: key_of(path, CompileOptions(level=None)),
    "value": lambda path: values_of([f"x={path}"]),
    "signed": lambda path: signature.verify(path, path),
    "weights": lambda path: update_weights(path, path),
    "new weights": lambda path: update_weights(external(path.parent), path),
    "external": lambda path: runtime.load(external(path.parent), weights=path),
}


def external(folder: Path) -> Path:
    """A library with external weights."""
    compile_model(DIGITS / "model.xml", CompileOptions(level=None, external_weights=True)).export_model(folder / "e.so")
    return folder / "e.so"


@pytest.mark.parametrize("reader", READERS)
@pytest.mark.parametrize("kind", ["a FIFO", "a device", "a folder"])
def test_special_files_are_refused(tmp_path: Path, reader: str, kind: str) -> None:
    path = tmp_path / "x.npy"
    {"a FIFO": os.mkfifo, "a device": lambda p: p.symlink_to("/dev/zero"), "a folder": Path.mkdir}[kind](path)
    if kind == "a folder" and reader == "cache":  # SavedModels are folders, and so have keys
        assert READERS[reader](path)
        return
    folder = kind == "a folder" and reader in ("model", "compile")  # which say what kind of folder it is
    error = UnsupportedError if folder else UsageError
    with pytest.raises(error, match=kind):
        READERS[reader](path)


def test_weights_of_a_model_must_be_a_file(tmp_path: Path) -> None:
    shutil.copy(DIGITS / "model.xml", tmp_path)
    os.mkfifo(tmp_path / "model.bin")
    for call in (read_model, READERS["cache"]):
        with pytest.raises(UsageError, match="a FIFO"):
            call(tmp_path / "model.xml")


@pytest.mark.parametrize(
    "arguments",
    [
        ["info", "a"],
        ["run", "a"],
        ["compile", "a"],
        ["compile", "{model}", "-o", "a"],
        ["compile", "{model}", "-o", "a/x.so"],
        ["compile", "{model}", "--header", "a", "-o", "m.so"],
        ["compile", "{model}", "--extensions", "a", "-o", "m.so"],
        ["verify", "a", "a"],
        ["cache", "ls", "a"],
    ],
)
def test_links_in_a_circle(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, arguments: list[str]) -> None:
    """A usage error; an output replaces the link."""
    monkeypatch.chdir(tmp_path)
    Path("a").symlink_to("b")
    Path("b").symlink_to("a")
    result = CliRunner().invoke(cli.app, [a.format(model=DIGITS / "model.xml") for a in arguments])
    replaced = "-o" in arguments and ("--header" in arguments or arguments[-1] == "a")
    assert result.exit_code == (0 if replaced else 2), result.output


def places(tree: object, path: tuple[object, ...] = ()) -> list[tuple[object, ...]]:
    """The way to every value of a JSON tree."""
    inner = tree.items() if isinstance(tree, dict) else enumerate(tree) if isinstance(tree, list) else ()
    return [path] * bool(path) + [found for key, value in inner for found in places(value, (*path, key))]


@pytest.fixture(scope="module")
def manifest(tmp_path_factory: pytest.TempPathFactory) -> str:
    """One that has levels, versions, symbols, capacities and a word that cancels."""
    path = tmp_path_factory.mktemp("model") / "m.onnx"
    x, y = (helper.make_tensor_value_info(name, TensorProto.FLOAT, ["n", 4]) for name in "xy")
    graph = helper.make_graph([helper.make_node("Relu", ["x"], ["y"])], "g", [x], [y])
    onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 19)], ir_version=10), path)
    options = CompileOptions(level=None, target="x86-64-v2,v3", dims=(("n", 1, 8),), specialise=(("n", (1, 2)),))
    tree = json.loads(json.dumps(stages(path, options).built.manifest))
    return json.dumps(tree | {"capacities": [{"of": "n", "initial": 4}], "late": ["v"], "computed": 2, "cancel": 3})


@pytest.mark.parametrize("edit", [None, -1, 1.5, "x", [], {}, [None], {"x": None}, "\ud800", 1 << 70, True, "absent"])
def test_edited_manifests(manifest: str, edit: object) -> None:
    """Every value, in turn, is another one: the manifest is described, or refused as damaged or of another version."""
    assert all(json.loads(manifest)[key] for key in ("levels", "versions", "symbols", "capacities"))
    manifest_text(parse(manifest.encode(), "m.so"), Path(__file__))
    refused = 0
    for where in places(json.loads(manifest)):
        edited = json.loads(manifest)
        holder = reduce(lambda tree, key: tree[key], where[:-1], edited)
        holder[where[-1]] = edit
        if edit == "absent" and isinstance(holder, dict):
            del holder[where[-1]]
        try:
            manifest_text(parse(json.dumps(edited).encode(), "m.so"), Path(__file__)).encode()
        except (CorruptError, PlatformError) as error:
            printed = str(error).encode()
            refused += bool(printed)
    assert refused > 20


def in_namespace(script: str) -> subprocess.CompletedProcess[str]:
    """Run a shell script with mounts of its own."""
    command = ["unshare", "-m", "sh", "-ec", script]
    return subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False, timeout=600)


LOAD = """
import sys, runtime, numpy as np
x = np.load("examples/digits/seven.npy")
for _ in range(2):
    models = [runtime.load(sys.argv[1], threads=1), runtime.import_model(open(sys.argv[1], "rb").read(), threads=1)]
    print(*(model(x)[0].argmax() for model in models))
"""


@pytest.mark.parametrize(
    ("mounts", "ways"),
    [
        ("", True),
        ("mount -t tmpfs none /proc", True),
        ("mount -t tmpfs -o noexec none $PLACE/m; cp $PLACE/m.so $PLACE/m", True),
        ("mount -t tmpfs -o noexec none $PLACE/m; cp $PLACE/m.so $PLACE/m; mount -t tmpfs none /proc", True),
        (
            "mount -t tmpfs -o noexec none $PLACE/m; cp $PLACE/m.so $PLACE/m; mount -t tmpfs none /proc; "
            "for d in /var/tmp /dev/shm /tmp; do test $d = /tmp && cp -r $PLACE/m /var/tmp; "
            "mount -t tmpfs -o noexec,remount none $d 2>&- || mount -o bind,noexec $d $d; done",
            False,
        ),
    ],
    ids=["plain", "no proc", "noexec", "noexec and no proc", "nothing"],
)
def test_ways_to_load(tmp_path: Path, mounts: str, ways: bool) -> None:
    if in_namespace("mount -t tmpfs none /proc").returncode:
        pytest.skip("needs the right to mount, in a namespace of its own")
    compile_model(DIGITS / "model.xml", CompileOptions(level=None)).export_model(tmp_path / "m.so")
    (tmp_path / "m").mkdir()
    shutil.copy(tmp_path / "m.so", tmp_path / "m")
    script = f"PLACE={tmp_path}; {mounts}\nPYTHONPATH=. {sys.executable} - {tmp_path}/m/m.so <<'END'\n{LOAD}\nEND"
    done = in_namespace(script)
    if ways:
        assert done.stdout == "7 7\n7 7\n", done.stderr
    else:
        assert "PlatformError" in done.stderr and "needs /proc, or a folder that is not mounted noexec" in done.stderr


def test_features_without_proc(tmp_path: Path) -> None:
    """Code made there asks for nothing that a loader with /proc would miss."""
    features = [name for name, on in host().features.items() if on]
    asked = [name for name in features if name not in unreported(features, tmp_path / "none")]
    assert "avx10.1" in unreported(["avx10.1", "avx2"], tmp_path / "none")
    assert missing_features(asked) == [] and {"sse2", "neon"} & set(asked)


def test_damaged_embedded_weights(tmp_path: Path) -> None:
    """Noticed by `aot run` and `strict`, which read them all."""
    path = tmp_path / "m.so"
    compile_model(DIGITS / "model.xml", CompileOptions(level=None)).export_model(path)
    data = bytearray(path.read_bytes())
    with path.open("rb") as stream:
        data[ElfFile(stream, "m.so").find(".aot.weights").offset + 5] ^= 1
    path.write_bytes(data)
    runtime.load(path)
    with pytest.raises(CorruptError, match="edited or damaged"):
        runtime.load(path, strict=True)
    assert CliRunner().invoke(cli.app, ["run", str(path), str(DIGITS / "seven.npy")]).exit_code == 4


def npy(header: str) -> bytes:
    return b"\x93NUMPY\x01\x00" + struct.pack("<H", len(header) + 1) + header.encode() + b"\n"


SHAPE = "{{'descr': '<f4', 'fortran_order': False, 'shape': ({},)}}"
HEADERS = (
    "[" * 9000,
    "(" * 9000,
    "-" * 9000 + "1",
    "{'descr':" * 900,
    "3",
    "",
    *map(SHAPE.format, (-1, 10**12, 10**24)),
)


@pytest.mark.parametrize("header", HEADERS)
def test_damaged_arrays(tmp_path: Path, header: str) -> None:
    (tmp_path / "x.npy").write_bytes(npy(header))
    with zipfile.ZipFile(tmp_path / "x.npz", "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("a.npy", npy(header))
    for name in ("x.npy", "x.npz"):
        with pytest.raises(UsageError, match="of numbers or strings"):
            read_arrays(tmp_path / name)


def test_arrays_without_a_name_are_inputs_in_order(tmp_path: Path) -> None:
    one, two = str(tmp_path / "one.npy"), str(tmp_path / "two.npy")
    for path, value in ((one, 1), (two, 2)):
        np.save(path, value)
    assert read_inputs([one, two], ["x", "y"]) == {"x": 1, "y": 2}
    assert read_inputs([f"x={two}", one], ["x", "y"]) == {"x": 2, "y": 1}
    with pytest.raises(UsageError, match="run: inputs must be x, y, got one array more"):
        read_inputs([one, two, one], ["x", "y"])


def test_mutants_of_archives(tmp_path: Path) -> None:
    path, chance = tmp_path / "x.npz", random.Random(0)
    np.savez_compressed(path, a=np.arange(100), b=np.ones((3, 4), np.float32))
    whole, refused = path.read_bytes(), 0
    for _ in range(300):
        mutant = bytearray(whole)
        for _ in range(3):
            mutant[chance.randrange(len(mutant))] = chance.randrange(256)
        path.write_bytes(mutant)
        try:
            read_arrays(path)
        except UsageError:
            refused += 1
    assert refused > 100
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("a.txt", b"text")
    with pytest.raises(UsageError, match="of numbers or strings"):
        read_arrays(path)


def test_deep_texts(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="value: INPUT=VALUE"):
        values_of(["x=" + "[" * 100_000])
    path = tmp_path / "m.weights"
    path.write_bytes(b"AOT WEIGHTS 1\n".ljust(1 << 16, b"["))
    with path.open("rb") as stream, pytest.raises(CorruptError, match="the header must be JSON"):
        header_of(stream, "m.weights")
