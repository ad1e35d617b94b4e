"""Libraries without a linker: the limits of images and of relocations."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from aot.codegen.llvm.build import build, seal_section
from aot.codegen.llvm.linking.image_writers import write_library
from aot.codegen.llvm.linking.relocations import RELOCATIONS
from aot.codegen.target import Target
from aot.runtime.errors import InternalError, UnsupportedError
from tests.programs import chain

CALL, LOW_64 = 283, 286  # R_AARCH64_CALL26, R_AARCH64_LDST64_ABS_LO12_NC


@pytest.mark.parametrize("target", ["windows-v3", "macos-v8"])
def test_a_library_has_less_than_2_gb(target: str, tmp_path: Path) -> None:
    built = build(chain(), Target.parse(target))
    weights = replace(built.sections()[-1], size=2 << 30, blocks=[])
    sections = built.manifest_section(), seal_section(built.tag), weights
    with pytest.raises(UnsupportedError, match=f"{built.platform.name} has at most 2146435072 bytes.* are 2147483648"):
        write_library(tmp_path / "m", built.code, sections, built.platform, built.machine)
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize(
    ("kind", "here", "target", "rule"),
    [
        (CALL, 0, 1 << 27, "a call reaches 134217728 bytes"),
        (CALL, (1 << 27) + 4, 0, "a call reaches 134217728 bytes"),
        (CALL, 0, 6, "a call reaches"),
        (LOW_64, 0, 12, "an access is at a multiple of its 8 bytes, got 0xc"),
        (9999, 0, 0, "must be of a known type, got 9999"),
    ],
)
def test_addresses_that_code_does_not_reach(kind: int, here: int, target: int, rule: str) -> None:
    with pytest.raises(InternalError, match=rule):
        RELOCATIONS["aarch64"].apply(bytearray(4), 0, kind, here, target)


def test_calls_reach_both_ways() -> None:
    for distance, word in ((-(1 << 27), 0x2000000), ((1 << 27) - 4, 0x1FFFFFF), (-4, 0x3FFFFFF)):
        code = bytearray(4)
        RELOCATIONS["aarch64"].apply(code, 0, CALL, 1 << 27, (1 << 27) + distance)
        assert int.from_bytes(code, "little") == word
