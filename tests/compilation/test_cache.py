"""The compile cache: found by content, whole or not there, made again when damaged, cleaned up."""

from __future__ import annotations

import errno
import logging
import multiprocessing
import os
import shutil
import time
from pathlib import Path

import numpy as np
import pytest
from typer.testing import CliRunner

from aot import cli
from aot.compilation import cache
from aot.compilation.driver import compile_model
from aot.frontends import read_model
from aot.options import CompileOptions
from aot.runtime.errors import UsageError
from aot.runtime.model import CompiledModel

DIGITS = Path(__file__).parents[2] / "examples" / "digits"
FAST = CompileOptions(level=None)


@pytest.fixture
def model(tmp_path: Path) -> Path:
    for name in ("model.xml", "model.bin"):
        shutil.copy(DIGITS / name, tmp_path / name)
    return tmp_path / "model.xml"


def compiled(model: Path, options: CompileOptions = FAST) -> CompiledModel:
    made = compile_model(model, options, cache_dir=model.parent / "cache")
    assert made(np.load(DIGITS / "seven.npy"))[0].argmax() == 7
    return made


def put(path: Path, data: bytes) -> None:
    """A new file: models that are loaded have the old one mapped."""
    path.with_suffix(".new").write_bytes(data)
    path.with_suffix(".new").replace(path)


def inode(model: Path) -> int:
    [entry] = cache.entries(model.parent / "cache")
    return entry.path.stat().st_ino


def test_found_again(model: Path) -> None:
    compiled(model)
    first = inode(model)
    compiled(model)
    assert inode(model) == first
    assert compiled(model).get_property("MODEL_HASH") == compile_model(model, FAST).get_property("MODEL_HASH")


def test_another_model_or_option_is_another_entry(model: Path) -> None:
    keys = {cache.key_of(model, FAST), cache.key_of(model, CompileOptions(level=None, save_temps=Path("x")))}
    assert len(keys) == 1
    keys |= {cache.key_of(model, CompileOptions()), cache.key_of(model, CompileOptions(target="x86-64-v2"))}
    keys.add(cache.key_of(model, CompileOptions(target="x86-64-v2,v3")))
    weights = bytearray(model.with_suffix(".bin").read_bytes())
    weights[-1] ^= 1
    model.with_suffix(".bin").write_bytes(weights)
    keys.add(cache.key_of(model, FAST))
    model.write_text(model.read_text() + "\n")
    keys.add(cache.key_of(model, FAST))
    assert len(keys) == 6


def test_files_that_a_model_names(tmp_path: Path) -> None:
    (tmp_path / "m.onnx").write_bytes(b"\x08\x07 weights.data and parts/a, others/")
    (tmp_path / "weights.data").write_bytes(b"1")
    (tmp_path / "parts").mkdir()
    (tmp_path / "parts" / "a").write_bytes(b"1")
    (tmp_path / "unrelated").write_bytes(b"1")
    (tmp_path / "others").mkdir()
    keys = [cache.key_of(tmp_path / "m.onnx", FAST)]
    for name, same in (("unrelated", True), ("others/a", True), ("weights.data", False), ("parts/a", False)):
        (tmp_path / name).write_bytes(b"2")
        keys.append(cache.key_of(tmp_path / "m.onnx", FAST))
        assert (keys[-1] == keys[-2]) is same


@pytest.mark.parametrize("given", ["deploy.prototxt", "net.caffemodel"])
def test_both_files_of_caffe(given: str, tmp_path: Path) -> None:
    for name in ("deploy.prototxt", "net.caffemodel"):
        (tmp_path / name).write_bytes(b"1")
    first = cache.key_of(tmp_path / given, FAST)
    (tmp_path / "net.caffemodel").write_bytes(b"2")
    second = cache.key_of(tmp_path / given, FAST)
    (tmp_path / "deploy.prototxt").write_bytes(b"2")
    assert len({first, second, cache.key_of(tmp_path / given, FAST)}) == 3


def test_files_of_a_language_model(tmp_path: Path) -> None:
    """The key ignores files that the compiler or the user writes into the folder."""
    for name in ("config.json", "model.safetensors", "tokenizer.json", "chat_template.jinja"):
        (tmp_path / name).write_bytes(b"1")
    keys = [cache.key_of(tmp_path, FAST)]
    for name, same in (("m.so", True), ("model.safetensors", False), ("chat_template.jinja", False)):
        (tmp_path / name).write_bytes(b"2")
        keys.append(cache.key_of(tmp_path, FAST))
        assert (keys[-1] == keys[-2]) is same


def test_a_damaged_entry_is_made_again(model: Path, caplog: pytest.LogCaptureFixture) -> None:
    compiled(model)
    [entry] = cache.entries(model.parent / "cache")
    good = entry.path.read_bytes()
    for bad in (b"", good[: len(good) // 2], good.replace(b"\x3f", b"\x3e")):
        put(entry.path, bad)
        assert len(list(cache.damaged(model.parent / "cache"))) == 1
        with caplog.at_level(logging.WARNING):
            compiled(model)
        assert "is made again" in caplog.text
        assert entry.path.read_bytes() == good
        caplog.clear()


def test_damaged_external_weights(model: Path) -> None:
    options = CompileOptions(level=None, external_weights=True)
    compiled(model, options)
    [entry] = cache.entries(model.parent / "cache")
    side = entry.path.with_suffix(".weights")
    put(side, side.read_bytes()[:-1])
    assert len(list(cache.damaged(model.parent / "cache"))) == 1
    compiled(model, options)
    assert not list(cache.damaged(model.parent / "cache"))


def test_many_processes_at_once(model: Path) -> None:
    context = multiprocessing.get_context("spawn")
    workers = [context.Process(target=compiled, args=(model,)) for _ in range(2)]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join(120)
    assert [worker.exitcode for worker in workers] == [0, 0]
    assert [p.suffix for p in (model.parent / "cache").iterdir()] == [".so"]


def test_a_graph_has_no_files(model: Path) -> None:
    with pytest.raises(UsageError, match="got a Graph"):
        compile_model(read_model(model), cache_dir=model.parent / "cache")


@pytest.mark.slow
def test_collect_and_command(model: Path) -> None:
    folder = model.parent / "cache"
    for target in ("x86-64-v2", "x86-64-v3"):
        compile_model(model, CompileOptions(target=target, level=None), cache_dir=folder)
        time.sleep(0.01)
    run = CliRunner().invoke
    listed = run(cli.app, ["cache", "ls", str(folder)]).stdout.splitlines()
    assert [line.rsplit(maxsplit=1)[1] for line in listed] == ["x86-64-v3", "x86-64-v2"]
    assert "2 entries are whole" in run(cli.app, ["cache", "verify", str(folder)]).stdout
    last, first = cache.entries(folder)
    other = folder / "model.so"
    other.write_bytes(b"not of the cache")
    (folder / ".aot-abc").mkdir()
    (folder / ".aot-abc" / "code.o").write_bytes(b"half")
    for name in (".x.so.abc", ".x.weights.abc", ".aot-abc"):
        if not (folder / name).exists():
            (folder / name).write_bytes(b"half")
        os.utime(folder / name, (0, 0))
    assert f"removed {first.key}" in run(cli.app, ["cache", "gc", str(folder), "--max-bytes", str(last.bytes)]).stdout
    assert sorted(p.name for p in folder.iterdir()) == sorted([last.path.name, other.name])
    put(last.path, b"bad")
    assert run(cli.app, ["cache", "verify", str(folder)]).exit_code == 1
    assert "damaged" in run(cli.app, ["cache", "ls", str(folder)]).stdout
    os.utime(last.path, (0, 0))
    assert cache.collect(folder, most_days=1) and list(folder.iterdir()) == [other]
    assert run(cli.app, ["cache", "ls", str(folder)]).stdout == "no entries\n"


def test_an_exchanged_entry_is_made_again(model: Path, caplog: pytest.LogCaptureFixture) -> None:
    """An entry of another model, whole in itself, under this one's key."""
    folder = model.parent / "cache"
    compiled(model)
    [entry] = cache.entries(folder)
    other = compile_model(model, CompileOptions(), cache_dir=folder)
    assert other.manifest.json["key"] != entry.key
    for wrong in cache.entries(folder):
        if wrong.key != entry.key:
            put(entry.path, wrong.path.read_bytes())
    assert [found.key for found, _ in cache.damaged(folder)] == [entry.key]
    with caplog.at_level(logging.WARNING):
        assert compiled(model).manifest.json["key"] == entry.key
    assert "its key must be" in caplog.text
    exported = model.parent / "plain.so"
    compile_model(model, FAST).export_model(exported)  # without a key
    put(entry.path, exported.read_bytes())
    assert compiled(model).manifest.json["key"] == entry.key


@pytest.mark.parametrize("mode", [0o777, 0o775, 0o757, 0o1777])
def test_a_folder_that_others_can_write_to_is_refused(model: Path, mode: int) -> None:
    compiled(model)
    (model.parent / "cache").chmod(mode)
    with pytest.raises(UsageError, match=rf"writable by its user alone, got .*mode {mode:o} \(chmod go-w\)"):
        compiled(model)


@pytest.mark.slow
def test_an_entry_that_others_could_have_written_is_made_again(model: Path, caplog: pytest.LogCaptureFixture) -> None:
    before = os.umask(0)
    try:
        compiled(model)
    finally:
        os.umask(before)
    [entry] = cache.entries(model.parent / "cache")
    assert not entry.path.stat().st_mode & 0o022 and not entry.path.parent.stat().st_mode & 0o077
    entry.path.chmod(0o666)
    assert [found.key for found, _ in cache.damaged(model.parent / "cache")] == [entry.key]
    compiled(model)
    assert not entry.path.stat().st_mode & 0o022
    elsewhere = entry.path.rename(model.parent / "elsewhere.so")
    entry.path.symlink_to(elsewhere)
    compiled(model)
    assert not entry.path.is_symlink()
    if os.geteuid() == 0:
        os.chown(entry.path, 12345, 12345)
        compiled(model)
        assert entry.path.stat().st_uid == 0
        assert "owner 12345" in caplog.text


@pytest.mark.parametrize("fails", ["mkdir", "chmod", "replace"])
def test_a_folder_that_cannot_be_written_keeps_nothing(
    model: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture, fails: str
) -> None:
    def full(*_: object, **__: object) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    with monkeypatch.context() as patched:
        patched.setattr(Path, fails, full)
        compiled(model)
    assert "nothing is kept: [Errno 28] No space left" in caplog.text
    assert not cache.entries(model.parent / "cache")


def test_a_file_in_place_of_the_folder_keeps_nothing(model: Path) -> None:
    (model.parent / "cache").write_text("a file")
    compiled(model)


def test_an_entry_that_is_removed_at_once_was_loaded_before(model: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    replace = Path.replace

    def evicted(self: Path, target: Path) -> None:
        replace(self, target)
        target.unlink()

    monkeypatch.setattr(Path, "replace", evicted)
    compiled(model)
    compiled(model, CompileOptions(level=None, external_weights=True))
    assert not cache.entries(model.parent / "cache")
