"""Cached libraries and extensions: a key depends on all files that an extension imports, and on no other."""

from __future__ import annotations

import os
import sys
from pathlib import Path

import pytest

from aot.compilation.cache import key_of
from aot.compilation.driver import compile_model
from aot.options import CompileOptions
from tests.extensions.folders import (
    RULES,
    SCALED,
    X,
    absolute,
    folder,
    options,
    scaled,
    scaled_model,
)


def test_the_cache_sees_what_extensions_say(tmp_path: Path) -> None:
    path = absolute(tmp_path)
    before = key_of(path, options(folder(tmp_path, middle_flip=RULES)))
    elsewhere = folder(tmp_path / "copy", middle_flip=RULES)
    assert key_of(path, options(elsewhere)) == before != key_of(path, CompileOptions(level=None))
    folder(tmp_path, middle_flip=RULES + "\n# changed")
    assert key_of(path, options(tmp_path / "mine")) != before


@pytest.mark.parametrize(
    ("imports", "file"),
    [
        ("from ..shared import FACTOR", "mine/shared.py"),
        ("from ..deep.er import FACTOR", "mine/deep/er.py"),
        ("from .other import FACTOR", "mine/ops/other.py"),
        ("from shared_beside import FACTOR", "shared_beside.py"),
        ("import shared_package.part\nFACTOR = shared_package.part.FACTOR", "shared_package/part.py"),
        ("from through import FACTOR", "shared_behind.py"),
    ],
)
def test_the_cache_sees_modules_that_extensions_import(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, imports: str, file: str
) -> None:
    """A changed module is loaded anew, in this process too, also if its size and time are as before."""
    monkeypatch.syspath_prepend(tmp_path)
    path, mine = scaled_model(tmp_path), scaled(tmp_path, 0, imports)
    (tmp_path / "through.py").write_text("import shared_behind\nFACTOR = shared_behind.FACTOR\n")
    (tmp_path / file).parent.mkdir(exist_ok=True)
    for factor in (2, 3, 2):
        (tmp_path / file).write_text(f"FACTOR = {factor}\n")
        os.utime(tmp_path / file, (1e9, 1e9))
        made = compile_model(path, options(mine), cache_dir=tmp_path / "cache")
        assert made(X)[0][0, 0] == factor
    assert len(list((tmp_path / "cache").glob("*.so"))) == 2
    assert not {"shared_beside", "shared_package", "through"} & set(sys.modules)


def test_a_model_is_not_kept_under_a_key_that_its_files_outlived(tmp_path: Path) -> None:
    late = "FACTOR = 1\n\ndef late():\n    from ..late import VALUE\n    return VALUE\n"
    text = SCALED.format(imports=late).replace("return x * FACTOR", "return x * late()")
    path, mine = scaled_model(tmp_path), folder(tmp_path, ops_scaled=text)
    (mine / "late.py").write_text("VALUE = 7\n")
    for factor in (7, 8):
        (mine / "late.py").write_text(f"VALUE = {factor}\n")
        made = compile_model(path, options(mine), cache_dir=tmp_path / "cache")
        assert made(X)[0][0, 0] == factor
