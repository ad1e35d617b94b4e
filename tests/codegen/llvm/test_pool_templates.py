"""The templates of LLVM IR name fields of structures, and every name of theirs has a value."""

from __future__ import annotations

import re
from importlib.resources import files
from string import Template

import pytest

from aot.codegen.llvm.pool import template_text

TEMPLATES = sorted(path.name for path in files("aot.codegen.llvm.pool").iterdir() if path.name.endswith(".ll"))


@pytest.mark.parametrize("name", TEMPLATES)
def test_fields_have_names(name: str) -> None:
    text = (files("aot.codegen.llvm.pool") / name).read_text(encoding="utf-8")
    assert not re.findall(r"getelementptr %(?:slot|seat|pool|job|request), .*i32 [1-9]", text)


def test_names_of_a_template_have_values() -> None:
    with pytest.raises(KeyError, match="max_threads"):
        template_text("pool.ll")
    assert "i32 10, i64 %i" in template_text("pool.ll", max_threads=4)
    assert not Template(template_text("dispatch.ll")).get_identifiers()
