"""Objects with weights and manifest, written without a linker, also for another machine."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import numpy as np
import pytest

from aot.codegen.llvm.build import build
from aot.codegen.llvm.host import parse_target
from aot.codegen.llvm.linking.elf_writer import Data
from aot.codegen.llvm.linking.relocatable import add_sections
from aot.codegen.target import Target
from aot.runtime.errors import InternalError
from aot.runtime.loading.elf import ElfFile
from tests.programs import built, chain


@pytest.mark.parametrize(("target", "machine"), [("aarch64", 183), ("x86-64-v3", 62)])
def test_object_without_a_linker(target: str, machine: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", "/nowhere")
    made = build(chain(), parse_target(target))
    made.write_object(tmp_path / "m.o")
    with (tmp_path / "m.o").open("rb") as stream:
        file = ElfFile(stream, "m.o")
        assert (file.kind, file.machine) == (1, machine)
        assert file.section(".aot.manifest") == made.manifest_bytes()
        weights = file.find(".aot.weights")
        assert weights.offset % 4096 == 0
        assert np.frombuffer(file.section(".aot.weights"), np.float32)[16] == 2
    assert [p.name for p in tmp_path.iterdir()] == ["m.o"]


def test_other_tools_read_it(tmp_path: Path) -> None:
    reader = shutil.which("readelf")
    if reader is None:
        pytest.skip("needs binutils")
    made = build(chain(), Target.parse("aarch64"))
    made.write_object(tmp_path / "m.o")
    done = subprocess.run([reader, "-WSs", tmp_path / "m.o"], capture_output=True, text=True, check=True)
    assert not done.stderr
    rows = [line.split() for line in done.stdout.splitlines() if "aot_" in line]
    seen = {row[-1].rpartition("_")[0].removesuffix("_chain_net"): (row[4], row[5], row[6] == "UND") for row in rows}
    assert seen == {
        "aot_query": ("GLOBAL", "DEFAULT", False),
        "aot_weights": ("GLOBAL", "HIDDEN", False),
        "aot_manifest": ("GLOBAL", "HIDDEN", False),
    }


def test_a_symbol_that_the_code_has_is_not_defined_again(tmp_path: Path) -> None:
    made = built(chain())
    again = Data(".twice", f"aot_query_{made.tag}", 1, 1, [(0, b"x")])
    with (tmp_path / "m.o").open("wb") as stream, pytest.raises(InternalError, match="a symbol that it has"):
        add_sections(stream, made.code, [again])
