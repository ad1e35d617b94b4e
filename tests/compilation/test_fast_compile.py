"""`fast_compile`: the numbers of plain products, bit by bit, from less code, whose functions are called."""

from __future__ import annotations

import re
from functools import partial
from pathlib import Path

import numpy as np
import pytest

from aot.compilation.driver import stages
from aot.compilation.jit import in_memory
from aot.options import CompileOptions
from aot.runtime.errors import UsageError
from tests.codegen.web import run_in_node
from tests.networks import picture
from tests.passes.check import values

TARGET = "x86-64-v2"  # any machine of the tests has it


def test_the_same_numbers_from_less_code(tmp_path: Path) -> None:
    made = partial(CompileOptions, plain_products=True)
    options = made(fast_compile=True, target=TARGET), made(target=TARGET), made(fast_compile=True, target="wasm")
    fast, plain, web = (stages(picture(), chosen) for chosen in options)
    inputs = values((1, 3, 18, 17))
    models = [in_memory(one.built, threads=1) for one in (fast, plain)]
    found, expected = (model(*inputs).to_tuple() for model in models)
    web.write_library(tmp_path / "m.wasm")
    (there,) = run_in_node(tmp_path, [("m.wasm", [{models[0].inputs[0].name: inputs[0]}])])[0]
    assert isinstance(there, dict), there
    for one, other, third in zip(found, expected, there.values(), strict=True):
        np.testing.assert_array_equal(one, other)
        np.testing.assert_array_equal(third, other)
    assert 1.2 * len(fast.llvm()) < len(plain.llvm())
    functions = re.findall(r"define internal .*exp", fast.llvm())
    assert functions and len(functions) < len(re.findall(r"= call .*exp", fast.llvm()))


def test_a_measured_search_is_refused() -> None:
    with pytest.raises(UsageError, match="fast_compile"):
        CompileOptions(fast_compile=True, tune=1.0)
