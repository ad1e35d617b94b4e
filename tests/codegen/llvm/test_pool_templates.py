"""The templates of LLVM IR name fields of structures, and every name of theirs has a value."""

from __future__ import annotations

import re
from importlib.resources import files
from itertools import product
from string import Template

import pytest

from aot.codegen.llvm.pool import system_texts, template_text
from aot.codegen.machines import MACHINES
from aot.codegen.platforms import LINUX, PLATFORMS, Platform

TEMPLATES = sorted(path.name for path in files("aot.codegen.llvm.pool").iterdir() if path.name.endswith(".ll"))


def raw(name: str) -> str:
    return (files("aot.codegen.llvm.pool") / name).read_text(encoding="utf-8")


@pytest.mark.parametrize("name", TEMPLATES)
def test_fields_have_names(name: str) -> None:
    assert not re.findall(r"getelementptr %(?:slot|seat|pool|job|request), .*i32 [1-9]", raw(name))


def test_names_of_a_template_have_values() -> None:
    with pytest.raises(KeyError, match="max_threads"):
        template_text("pool.ll", **LINUX.numbers)
    assert "i32 10, i64 %i" in template_text("pool.ll", max_threads=4, **LINUX.numbers)
    assert not Template(template_text("dispatch_cpuid.ll")).get_identifiers()


@pytest.mark.parametrize("platform", PLATFORMS.values(), ids=PLATFORMS)
def test_a_platform_has_all_functions_that_a_pool_asks_for(platform: Platform) -> None:
    texts = (raw(file) for file in ("waiting.ll", "placement.ll"))
    asked = {name for text in texts for name in re.findall(r"^\$(\w+)$", text, re.MULTILINE)}
    for machine, feature in product(platform.machines, ("", *platform.pool_with)):
        assert system_texts(platform, MACHINES[machine], [feature]).keys() == asked - {"pause_declaration"}
