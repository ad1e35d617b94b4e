"""Files are checked before they are loaded: damaged ones, ones for other machines, replaced ones."""

from __future__ import annotations

import contextlib
import io
import json
import os
import platform
import random
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import runtime
from aot.runtime import abi
from aot.runtime.errors import AotError, CorruptError, PlatformError, UsageError
from aot.runtime.loading.elf import ElfFile
from aot.runtime.loading.library import read_manifest
from aot.runtime.machine import default_threads, missing_features
from aot.runtime.machines.aarch64 import AARCH64
from aot.runtime.systems.linux import processor
from aot.runtime.systems.linux.processor import cgroup_quota
from tests.programs import built, chain

X = np.arange(1000, dtype=np.float32)


def changed(path: Path, made: Path, **values: object) -> Path:
    """A copy whose manifest says something else, in as many bytes."""
    data = path.read_bytes()
    old = json.dumps(read_manifest(path).json, sort_keys=True, separators=(",", ":")).encode()
    tree = json.loads(old) | values
    tree["hash"] = ""
    new = json.dumps(tree, sort_keys=True, separators=(",", ":")).encode()
    assert data.count(old) == 1
    assert len(new) <= len(old)
    made.write_bytes(data.replace(old, new.ljust(len(old))))
    return made


def test_a_loaded_library_runs(chain_so: Path) -> None:
    model = runtime.load(chain_so)
    assert model.name == "chain net"
    np.testing.assert_array_equal(model(X)["y"], X * 32)


def test_runs_in_a_fresh_process_that_has_only_numpy(chain_so: Path) -> None:
    program = (
        "import sys, numpy as np, runtime\n"
        f"y = runtime.load({str(chain_so)!r})(np.ones(1000, np.float32))[0]\n"
        "assert (y == 32).all()\n"
        "extra = {'llvmlite', 'lxml', 'typer', 'aot.options', 'aot.codegen', 'numpy.typing'} & set(sys.modules)\n"
        "assert not extra, extra\n"
    )
    subprocess.run([sys.executable, "-c", program], check=True, cwd=Path(__file__).parents[3])


def test_wrong_abi(chain_so: Path, tmp_path: Path) -> None:
    with pytest.raises(PlatformError, match=f"abi version must be {abi.ABI_VERSION}, got 7"):
        runtime.load(changed(chain_so, tmp_path / "a.so", abi=7))


def test_wrong_machine(chain_so: Path, tmp_path: Path) -> None:
    data = bytearray(changed(chain_so, tmp_path / "a.so", machine=8).read_bytes())
    data[18] = 8
    (tmp_path / "a.so").write_bytes(data)
    with pytest.raises(PlatformError, match="compiled for ELF machine 8"):
        runtime.load(tmp_path / "a.so")


def test_missing_feature_is_named(chain_so: Path, tmp_path: Path) -> None:
    with pytest.raises(PlatformError, match="lacks: sse9000"):
        runtime.load(changed(chain_so, tmp_path / "a.so", features=["sse2", "sse9000"]))


def test_a_level_that_the_processor_lacks_is_named(
    chain_so: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A Cortex-A53 refuses a library for a later level, and the error names the level and what the processor lacks."""
    monkeypatch.setattr(platform, "machine", lambda: "aarch64")
    monkeypatch.setattr(processor, "features", lambda cpuinfo: frozenset("fp asimd aes crc32".split()))
    features = list(AARCH64.levels["aarch64-v8.2"])
    path = changed(chain_so, tmp_path / "a.so", machine=183, features=features, options={"target": "aarch64-v8.2"})
    data = bytearray(path.read_bytes())
    data[18] = 183
    path.write_bytes(data)
    said = "compiled for aarch64-v8.2, this processor lacks: lse, fullfp16, dotprod; compile it for aarch64-v8"
    with pytest.raises(PlatformError, match=said):
        runtime.load(path)


def test_an_unknown_machine_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(platform, "machine", lambda: "ppc64le")
    with pytest.raises(PlatformError, match="must be one of x86_64, aarch64, riscv64, wasm32, got ppc64le"):
        missing_features(["sse2"])


def test_features_by_the_kernels_names(tmp_path: Path) -> None:
    info = tmp_path / "cpuinfo"
    info.write_text("processor\t: 0\nflags\t\t: sse4_1 pni abm avx512_vnni\n")
    assert missing_features(["sse4.1", "sse3", "+lzcnt", "-avx", "avx2"], info) == (["avx2"])


def test_no_file(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError):
        runtime.load(tmp_path / "none.so")


@pytest.mark.parametrize("part", [0.0, 0.001, 0.3, 0.7, 0.95, 0.9999])
def test_a_truncated_library_is_refused(chain_so: Path, tmp_path: Path, part: float) -> None:
    data = chain_so.read_bytes()
    (tmp_path / "a.so").write_bytes(data[: int(len(data) * part)])
    with pytest.raises(CorruptError):
        runtime.load(tmp_path / "a.so")


def test_other_files_are_refused(chain_so: Path, tmp_path: Path) -> None:
    for name, data in (("text", b"hello" * 100), ("zeros", bytes(1000)), ("object", None)):
        path = tmp_path / name
        if data is None:
            built(chain(calls=1)).write_object(path)
        else:
            path.write_bytes(data)
        with pytest.raises(CorruptError):
            runtime.load(path)


def test_mutated_headers_and_manifest_never_crash_the_reader(chain_so: Path, tmp_path: Path) -> None:
    data = chain_so.read_bytes()
    start = data.index(b'{"abi"')
    places = [*range(64), *range(64, 64 + 7 * 56), *range(start, start + 900), *range(len(data) - 15 * 64, len(data))]
    dice = random.Random(1)
    path = tmp_path / "a.so"
    for _ in range(300):
        bad = bytearray(data)
        for _ in range(dice.randint(1, 4)):
            bad[dice.choice(places)] = dice.randrange(256)
        path.write_bytes(bad)
        with contextlib.suppress(AotError):
            read_manifest(path)


def test_a_changed_byte_anywhere_is_noticed_before_the_code_is_loaded(chain_so: Path, tmp_path: Path) -> None:
    data = chain_so.read_bytes()
    with chain_so.open("rb") as stream:
        weights = ElfFile(stream, "chain").find(".aot.weights")
    dice = random.Random(2)
    path = tmp_path / "a.so"
    for _ in range(200):
        bad = bytearray(data)
        place = dice.randrange(len(data))
        if weights.offset <= place < weights.offset + weights.size:
            continue
        bad[place] ^= 1 << dice.randrange(8)
        path.write_bytes(bad)
        with pytest.raises(AotError):
            runtime.load(path)


def test_replaced_file_is_loaded_anew(tmp_path: Path) -> None:
    path = tmp_path / "m.so"
    built(chain(calls=1, factor=2.0)).write_shared(path)
    first = runtime.load(path)
    built(chain(calls=1, factor=5.0)).write_shared(path)
    second = runtime.load(path)
    np.testing.assert_array_equal(first(X)[0], X * 2)
    np.testing.assert_array_equal(second(X)[0], X * 5)


def test_export_and_import(chain_so: Path, tmp_path: Path) -> None:
    model = runtime.load(chain_so)
    stream = io.BytesIO()
    model.export_model(stream)
    assert stream.getvalue() == chain_so.read_bytes()
    model.export_model(tmp_path / "copy.so")
    assert (tmp_path / "copy.so").read_bytes() == chain_so.read_bytes()
    stream.seek(0)
    np.testing.assert_array_equal(runtime.import_model(stream)(X)[0], X * 32)
    with pytest.raises(FileNotFoundError, match=r"no such folder: '.*/missing'"):
        model.export_model(tmp_path / "missing" / "copy.so")
    with pytest.raises(FileNotFoundError, match=r": '/proc/copy.so'$"):  # where nobody can write
        model.export_model("/proc/copy.so")


def test_a_stream_is_read_to_the_end_of_the_model(tmp_path: Path) -> None:
    both = tmp_path / "both"
    with both.open("wb") as stream:
        for factor in (2.0, 5.0):
            built(chain(calls=1, factor=factor)).write_shared(tmp_path / "m.so")
            stream.write((tmp_path / "m.so").read_bytes())
        stream.write(b"tail")
    with both.open("rb", buffering=0) as stream:
        models = [runtime.import_model(stream) for _ in range(2)]
        assert stream.read() == b"tail"
    for model, factor in zip(models, (2, 5), strict=True):
        np.testing.assert_array_equal(model(X)[0], X * factor)


def test_invalid_streams_are_refused(chain_so: Path) -> None:
    data = chain_so.read_bytes()
    with pytest.raises(CorruptError, match="bytes behind it"):
        runtime.import_model(data + b"x")
    for bad in (data[:40], data[: len(data) // 2], data[:-1], b"\x7fELF" + b"\xff" * 200, b"text"):
        with pytest.raises(CorruptError):
            runtime.import_model(io.BytesIO(bad))
    text: Any = io.StringIO("text")
    with pytest.raises(UsageError, match="a stream of bytes, got one of str"):
        runtime.import_model(text)
    settings: Any = {"NUM_STREAMS": 2}
    with pytest.raises(UsageError, match=r"threads: must be an integer; .*NUM_STREAMS"):
        runtime.load(chain_so, settings)


def test_the_manifest_is_read_without_loading(chain_so: Path) -> None:
    manifest = read_manifest(chain_so)
    assert manifest.json["manifest"] == abi.MANIFEST_VERSION
    assert [str(i) for i in manifest.inputs] == ["f32[1000]"]
    assert manifest.inputs[0].names == ("x", "in")
    assert manifest.calls[4].layers == ("layer4",)
    assert manifest.tag.startswith("chain_net_")


def test_cgroup_quota(tmp_path: Path) -> None:
    proc, root = tmp_path / "cgroup", tmp_path / "fs"
    (root / "a" / "b").mkdir(parents=True)
    proc.write_text("0::/a/b\n")
    assert cgroup_quota(proc, root) is None
    (root / "a" / "cpu.max").write_text("150000 100000\n")
    (root / "a" / "b" / "cpu.max").write_text("max 100000\n")
    assert cgroup_quota(proc, root) == 1.5
    (root / "cpu,cpuacct" / "c").mkdir(parents=True)
    (root / "cpu,cpuacct" / "c" / "cpu.cfs_quota_us").write_text("200000\n")
    (root / "cpu,cpuacct" / "c" / "cpu.cfs_period_us").write_text("100000\n")
    proc.write_text("4:cpu,cpuacct:/c\n")
    assert cgroup_quota(proc, root) == 2.0


def test_default_threads(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OMP_NUM_THREADS", "3,2")
    assert default_threads() == 3
    for nonsense in ("", "none", "0", "-2"):
        monkeypatch.setenv("OMP_NUM_THREADS", nonsense)
        assert 1 <= default_threads() <= len(os.sched_getaffinity(0))
