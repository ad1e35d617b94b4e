"""One library for several instruction sets: the highest that runs here is taken, and equals a library of its own."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

import runtime
from aot.codegen.ir.program import ConstantBlock
from aot.codegen.llvm.build import Built, build
from aot.codegen.llvm.host import parse_target
from aot.codegen.llvm.levels import Levels, dispatch_text, join, names_of
from aot.codegen.machines.x86_64 import _SAVED, X86_64
from aot.codegen.target import Target
from aot.compilation.driver import compile_model, stages
from aot.compilation.jit import in_memory
from aot.options import CompileOptions
from aot.runtime.abi import WEIGHTS_SECTION
from aot.runtime.errors import CorruptError, InternalError, PlatformError, UsageError
from aot.runtime.loading.elf import ElfFile
from aot.runtime.loading.library import read_manifest, verify
from aot.runtime.machine import missing_features
from tests.programs import chain

X = np.arange(1000, dtype=np.float32)
SAVED = X86_64.dispatch["linux"].words[_SAVED]  # registers that the system must save
NAMES = ("x86-64-v2", "x86-64-v3", "x86-64-v4")
DIGITS = Path(__file__).parents[3] / "examples" / "digits"


def level(name: str) -> Built:
    return build(chain(), parse_target(name), options={"target": name})


@pytest.fixture(scope="module")
def levels() -> Levels:
    return join(NAMES, [level(name) for name in NAMES])


def best() -> str:
    return [name for name in NAMES if not missing_features(parse_target(name).isa_features)][-1]


def test_names_of_levels_are_sorted_and_checked() -> None:
    assert names_of("native") == ("native",)
    assert names_of("x86-64-v4,v2") == names_of("x86-64-v2,x86-64-v4") == ("x86-64-v2", "x86-64-v4")
    assert names_of("aarch64,v8.2") == names_of("v8.2,aarch64-v8") == ("aarch64-v8", "aarch64-v8.2")
    for wrong in ("x86-64-v2,native", "aarch64,x86-64-v3"):
        with pytest.raises(UsageError, match="levels of one machine"):
            names_of(wrong)


def test_the_highest_level_is_taken(levels: Levels, tmp_path: Path) -> None:
    levels.write_shared(tmp_path / "m.so")
    model = runtime.load(tmp_path / "m.so")
    np.testing.assert_array_equal(model(X)[0], X * 4)
    assert model.get_property("COMPILE_OPTIONS") == {"level": 1, "target": best()}
    assert model.content_hash == levels.manifest["hash"]
    with (tmp_path / "m.so").open("rb") as stream:
        symbols = ElfFile(stream, "m.so").dynamic_symbols()
    assert [s.name for s in symbols if s.defined] == [f"aot_query_{levels.tag}"]


def test_a_level_that_does_not_run_here_is_passed_over(
    levels: Levels, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The system pretends not to save the registers of a level: it waits for a bit of XCR0 that is never set."""
    monkeypatch.setitem(SAVED, "avx512f", 1 << 20)
    levels.write_shared(tmp_path / "m.so")
    model = runtime.load(tmp_path / "m.so")
    assert model.get_property("COMPILE_OPTIONS") == {"level": 1, "target": min(best(), NAMES[1])}
    np.testing.assert_array_equal(model(X)[0], X * 4)


def test_none_runs_here(levels: Levels, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(SAVED, "avx", 1 << 20)
    join(NAMES[1:], levels.built[1:]).write_shared(tmp_path / "m.so")
    with pytest.raises(PlatformError, match="none of its levels runs here"):
        runtime.load(tmp_path / "m.so")
    unknown = replace(levels.built[0], manifest=levels.built[0].manifest | {"features": ["sse9000"]})
    with pytest.raises(PlatformError, match="sse9000"):
        _ = join(NAMES[:1], [unknown]).best
    with pytest.raises(InternalError, match="got no bit for it"):
        dispatch_text(join(NAMES[:1], [unknown]))


def test_manifest_names_the_levels(levels: Levels, tmp_path: Path) -> None:
    levels.write_shared(tmp_path / "m.so")
    manifest = read_manifest(tmp_path / "m.so")
    assert [entry["target"] for entry in manifest.json["levels"]] == list(NAMES)  # type: ignore[index,union-attr]
    assert "avx" not in manifest.features


def test_levels_have_their_weights_inside() -> None:
    made = build(chain(), Target.parse("x86-64-v2"), external=True)
    with pytest.raises(InternalError, match="got external ones"):
        join(NAMES[:2], [made, made])


def test_a_network(tmp_path: Path) -> None:
    """A level in a library of several computes what it does alone; what their weights have in common is there once."""
    options = CompileOptions(target="x86-64-v2,v3", level=None)
    made = stages(DIGITS / "model.xml", options).built
    assert isinstance(made, Levels)
    alone = [stages(DIGITS / "model.xml", replace(options, target=name)).built for name in NAMES[:2]]
    made.write_shared(tmp_path / "m.so")
    image = np.load(DIGITS / "seven.npy")
    found = runtime.load(tmp_path / "m.so")(image)[0]
    assert found.argmax() == 7
    np.testing.assert_array_equal(compile_model(DIGITS / "model.xml", options)(image)[0], found)
    highest = alone[1] if best() != "x86-64-v2" else alone[0]
    assert isinstance(highest, Built)
    np.testing.assert_array_equal(in_memory(highest)(image)[0], found)
    assert made.built[0].constant_bytes < sum(one.constant_bytes for one in alone if isinstance(one, Built))


def test_weights_lie_in_one_place(levels: Levels) -> None:
    moved = replace(levels.built[1], constants=(ConstantBlock(64, np.zeros(2, np.float32)),))
    with pytest.raises(InternalError, match="got two at 64"):
        join(NAMES[:2], [levels.built[0], moved])
    with pytest.raises(InternalError, match="got several sizes"):
        join(NAMES[:2], [levels.built[0], replace(levels.built[1], constant_bytes=64)])


def test_weights_of_all_levels_are_checked(levels: Levels, tmp_path: Path) -> None:
    path = tmp_path / "m.so"
    levels.write_shared(path)
    verify(path)
    with path.open("r+b") as stream:
        place = ElfFile(stream, "m.so").find(WEIGHTS_SECTION).offset
        stream.seek(place + 64)
        stream.write(b"\x01")
    with pytest.raises(CorruptError, match="edited or damaged"):
        verify(path)


def test_entries_of_the_manifest_that_change_no_hash_are_read_from_each_level(tmp_path: Path) -> None:
    """A tokenizer, or the bits of weights: the table of a level tells the length of all that is written."""
    added: dict[str, object] = {"weight_bits": 4}
    made = [build(chain(), parse_target(name), added=added) for name in ("x86-64-v2", "x86-64-v3")]
    join(("x86-64-v2", "x86-64-v3"), made).write_shared(tmp_path / "m.so")
    assert runtime.load(tmp_path / "m.so").manifest.json["weight_bits"] == 4
    assert made[0].manifest["hash"] == build(chain(), parse_target("x86-64-v2")).manifest["hash"]
