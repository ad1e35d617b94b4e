"""Weights in a file of their own: loaded, shared, exchanged; every wrong file is refused with the reason."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

import runtime
from aot.codegen.ir.program import ConstantBlock, Program
from aot.codegen.llvm.build import Built, build
from aot.codegen.llvm.host import parse_target
from aot.codegen.llvm.linking.append import append
from aot.runtime.abi import WEIGHTS_PAGE
from aot.runtime.errors import CorruptError, UnsupportedError, UsageError
from aot.runtime.loading.elf import ElfFile
from aot.runtime.loading.library import read_manifest
from tests.programs import built, chain

X = np.arange(1000, dtype=np.float32)


def external(factor: float = 2.0, calls: int = 2) -> Built:
    return build(chain(factor=factor, calls=calls), parse_target("native"), external=True)


@pytest.fixture
def path(tmp_path: Path) -> Path:
    external().write_shared(tmp_path / "m.so")
    return tmp_path / "m.so"


def test_external_weights_are_mapped_while_the_model_lives(path: Path) -> None:
    assert sorted(p.name for p in path.parent.iterdir()) == ["m.so", "m.weights"]
    np.testing.assert_array_equal(runtime.load(path)(X)[0], X * 4)
    maps = Path("/proc/self/maps").read_text()
    weights = str(path.with_suffix(".weights"))
    assert weights not in maps  # unloaded with the model
    model = runtime.load(path)
    line = next(line for line in Path("/proc/self/maps").read_text().splitlines() if weights in line)
    assert line.split()[1] == "r--s"
    np.testing.assert_array_equal(model(X)[0], X * 4)


def test_the_same_bytes_twice(path: Path, tmp_path: Path) -> None:
    external().write_shared(tmp_path / "again.so")
    for suffix in (".so", ".weights"):
        assert (tmp_path / "again").with_suffix(suffix).read_bytes() == path.with_suffix(suffix).read_bytes()


def test_in_another_place(path: Path, tmp_path: Path) -> None:
    (tmp_path / "elsewhere").mkdir()
    moved = path.with_suffix(".weights").rename(tmp_path / "elsewhere" / "w")
    with pytest.raises(FileNotFoundError):
        runtime.load(path)
    np.testing.assert_array_equal(runtime.load(path, weights=moved)(X)[0], X * 4)


def test_a_model_is_exported_with_its_weights(path: Path, tmp_path: Path) -> None:
    model = runtime.load(path)
    model.export_model(tmp_path / "copy.so")
    assert (tmp_path / "copy.weights").read_bytes() == path.with_suffix(".weights").read_bytes()
    np.testing.assert_array_equal(runtime.load(tmp_path / "copy.so")(X)[0], X * 4)
    with (tmp_path / "stream").open("wb") as stream, pytest.raises(UsageError, match="a second file"):
        model.export_model(stream)
    with pytest.raises(UsageError, match="needs the path of its weights"):
        runtime.import_model(path.read_bytes())


def test_wrong_files_are_refused_with_the_reason(path: Path, tmp_path: Path) -> None:
    side = path.with_suffix(".weights")
    good = side.read_bytes()
    external(3.0).write_shared(tmp_path / "other.so")
    external(calls=3).write_shared(tmp_path / "third.so")
    edited = bytearray(good)
    edited[WEIGHTS_PAGE + 66] ^= 1
    for data, reason in (
        (good[:-1], "cut short or damaged"),
        (good[:100], "must have a header of 65536 bytes, got 100"),
        (b"", "must begin with"),
        (bytes(edited), "edited or damaged"),
        ((tmp_path / "other.weights").read_bytes(), "update_weights takes other values"),
        ((tmp_path / "third.weights").read_bytes(), "got those of another"),
        (good[:14] + b"[" + good[15:], "the header"),
        (good + b"x", "cut short or damaged"),
    ):
        side.write_bytes(data)
        with pytest.raises(CorruptError, match=reason):
            runtime.load(path)
    side.write_bytes(good)
    runtime.load(path)


def test_updated_weights_hold_for_models_loaded_later(path: Path, tmp_path: Path) -> None:
    old = runtime.load(path)
    external(5.0).write_shared(tmp_path / "new.so")
    made = runtime.update_weights(path, tmp_path / "new.weights")
    assert made == read_manifest(path).json["hash"] == read_manifest(tmp_path / "new.so").json["hash"]
    np.testing.assert_array_equal(runtime.load(path)(X)[0], X * 25)
    np.testing.assert_array_equal(old(X)[0], X * 4)
    before = path.read_bytes()
    external(calls=3).write_shared(tmp_path / "third.so")
    with pytest.raises(CorruptError, match="got those of another"):
        runtime.update_weights(path, tmp_path / "third.weights")
    assert path.read_bytes() == before
    built(chain()).write_shared(tmp_path / "holds.so")
    with pytest.raises(UsageError, match="got embedded weights"):
        runtime.update_weights(tmp_path / "holds.so", tmp_path / "new.weights")


def test_the_weights_repeat_the_manifests_entry(path: Path) -> None:
    facts = read_manifest(path).json["external"]
    assert json.loads(path.with_suffix(".weights").read_bytes()[14:WEIGHTS_PAGE].rstrip(b"\0")) == facts


FAR = (2 << 30) + 4096  # bytes, beyond what code can address by offsets of 32 bits


def far() -> Program:
    """Return the chain with its weight at `FAR`."""
    program = chain()
    weight = ConstantBlock(FAR, np.array([2.0], np.float32))
    calls = tuple(
        replace(c, args=tuple(replace(p, offset=FAR) if p.region == "const" else p for p in c.args))
        for c in program.calls
    )
    return replace(program, calls=calls, constants=(weight,), constant_bytes=FAR + 64)


def no_hash(*_: object) -> str:
    """Return a hash in place of that of 2 GB of zeros."""
    return "0" * 64


@pytest.mark.slow
def test_more_than_two_gigabytes_outside(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The hash is left out: 2 GB of zeros take seconds to hash, when written and when loaded."""
    monkeypatch.setattr("aot.codegen.llvm.weights.weights_hash", no_hash)
    monkeypatch.setattr("aot.runtime.loading.weights._check_hash", no_hash)
    build(far(), parse_target("native"), external=True).write_shared(tmp_path / "m.so")
    np.testing.assert_array_equal(runtime.load(tmp_path / "m.so")(X)[0], X * 4)


def test_more_than_two_gigabytes_inside(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The file has a hole in place of zeros, so that it takes no room."""

    def without_zeros(path: Path, section: str, align: int, parts: object, file: object) -> None:
        append(path, section, align, ())
        with path.open("r+b") as stream:
            stream.truncate(2 * FAR)
            found = ElfFile(stream, path.name).find(section)
            stream.truncate(found.offset + found.size)
            stream.seek(found.offset + FAR)
            stream.write(np.float32(2).tobytes())

    monkeypatch.setattr("aot.codegen.llvm.build.append", without_zeros)
    monkeypatch.setattr("aot.codegen.llvm.weights.weights_hash", no_hash)
    built(far()).write_shared(tmp_path / "m.so")
    np.testing.assert_array_equal(runtime.load(tmp_path / "m.so")(X)[0], X * 4)


def test_an_object_holds_less_than_two_gigabytes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("aot.codegen.llvm.weights.weights_hash", no_hash)
    with pytest.raises(UnsupportedError, match="make them external"):
        built(far()).write_object(tmp_path / "m.o")
    assert not list(tmp_path.iterdir())
