"""`--fast-math`: bf16 as is fastest on the target. How near results are, and what stays equal."""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import runtime
from aot.codegen.llvm.host import parse_target
from aot.compilation.compilation import Compilation
from aot.compilation.driver import stages
from aot.compilation.jit import in_memory
from aot.ir.build import Builder
from aot.ir.graph import OutPort
from aot.ir.interpret import interpret
from aot.lowering.context import Context
from aot.lowering.pipeline import pipeline
from aot.options import CompileOptions
from aot.precision import precision_of
from aot.runtime.abi import DType
from aot.runtime.describe import notes
from aot.runtime.machine import missing_features
from tests.lowering.check import conv, weights
from tests.lowering.numbers.short_networks import CASES, ERROR, linear, types
from tests.passes.check import graph_of, values

PAIRS = "x86-64-v4-bf16"
NAMES = ("x86-64-v3", "x86-64-v4", PAIRS)
LACKS = {name: missing_features(parse_target(name).isa_features) for name in NAMES}
MARKS = {name: pytest.mark.skipif(bool(lacks), reason=f"this machine lacks {lacks}") for name, lacks in LACKS.items()}
ON_ALL = ("picture", "attention", "recurrent", "stem", "dynamic")
CASES_RUN = [(name, PAIRS) for name in ON_ALL] + [
    ("picture", NAMES[0]),
    ("attention", NAMES[1]),
    ("recurrent", NAMES[0]),
]


def fast(name: str, target: str = PAIRS, precision: str = "bf16", fast_math: bool = True) -> Compilation:
    make, shape = CASES[name]
    options = CompileOptions(level=None, target=target, precision=precision, fast_math=fast_math, verify=True)
    return stages(graph_of(make, shape), options)


@pytest.mark.parametrize(("name", "target"), [pytest.param(n, t, marks=MARKS[t]) for n, t in CASES_RUN])
def test_results_are_near_those_of_f32_with_equal_bits_for_all_threads(name: str, target: str) -> None:
    make, shape = CASES[name]
    inputs = values(shape)
    expected = interpret(graph_of(make, shape), inputs)[0]
    built = fast(name, target).built
    found = [np.asarray(in_memory(built, threads=n)(*inputs)[0]).copy() for n in (1, 2, 3, 4)]
    assert len({y.tobytes() for y in found}) == 1
    error = np.abs(found[0] - expected).max() / np.abs(expected).max()
    assert 1e-8 < error < ERROR["bf16"]


@pytest.mark.parametrize("name", ["picture", "attention", "stem"])
def test_products_are_dots_where_there_is_the_instruction(name: str) -> None:
    """A machine without it stores what memory limits in bf16 and sums f32: chains would be slower than f32."""
    pairs, slow = fast(name), fast(name, "x86-64-v4")
    assert pairs.groups.count("dots=") >= 3 and types(pairs)["chains"] == 0
    assert "dots=" not in slow.groups and types(slow)["chains"] == 0


def test_tile_registers_sum_as_before() -> None:
    made = fast("attention", "x86-64-v4-amx")
    assert made.groups == fast("attention", "x86-64-v4-amx", fast_math=False).groups


@pytest.mark.parametrize("name", NAMES)
def test_f32_does_not_change(name: str) -> None:
    groups = [fast("picture", name, "f32", fast_math=on).groups for on in (True, False)]
    assert groups[0] == groups[1]


@pytest.mark.parametrize("precision", ["f16", "bf16"])
def test_strassen_needs_fast_math(precision: str) -> None:
    """Exact bits must not depend on the target's cost model; the choice of Winograd does not depend on it."""
    target = parse_target("x86-64-v4")
    for fast_math in (False, True):
        context = Context(target, precision_of(precision), fast_math=fast_math)
        names = {p.name for p in pipeline(context)}
        assert ("use_strassen" in names) == fast_math
        assert "use_winograd" in names


def widest(b: Builder, x: OutPort) -> OutPort:
    """3x3 with and without padding, of stride 2, ragged, and taps that lie apart: all become Winograd's."""
    y = b.Relu(conv(b, x, 64, 3))
    y = b.Relu(conv(b, y, 64, 3, stride=2))
    return conv(b, b.Relu(conv(b, y, 64, 3, begin=(0, 0), end=(0, 0))), 64, 3)


@pytest.mark.skipif(bool(LACKS[NAMES[0]]), reason="this machine lacks AVX2")
def test_winograd_of_bf16() -> None:
    shape = (1, 64, 45, 38)
    options = CompileOptions(level=None, target=NAMES[0], precision="bf16", fast_math=True, verify=True)
    made = stages(graph_of(widest, shape), options)
    assert made.groups.count("group winograd") >= 3
    x = values(shape)[0]
    expected = interpret(graph_of(widest, shape), [x])[0]
    found = [np.asarray(in_memory(made.built, threads=n)(x)[0]).copy() for n in (1, 3)]
    assert found[0].tobytes() == found[1].tobytes()
    assert np.abs(found[0] - expected).max() < 0.02 * np.abs(expected).max()


def windows(b: Builder, x: OutPort, both: bool) -> OutPort:
    """A 1x1 whose result a window over channels reads, and, if `both`, another 1x1."""
    y = b.Relu(conv(b, x, 48, 1, begin=(0, 0)))
    ones = {"strides": (1, 1), "pads_begin": (1, 1), "pads_end": (1, 1), "dilations": (1, 1)}
    z = conv(b, b.GroupConvolution(y, weights(b, 48, 1, 1, 3, 3), **ones), 32, 1, begin=(0, 0))
    return b.Add(z, conv(b, y, 32, 1, begin=(0, 0), seed=1)) if both else z


@pytest.mark.parametrize(
    ("target", "both", "kind"), [(PAIRS, False, "f32"), (PAIRS, True, "bf16"), (NAMES[0], False, "f32")]
)
def test_windows_over_channels_read_f32_unless_dots_read_it_too(target: str, both: bool, kind: str) -> None:
    """A window would convert each element wherever it loads it."""
    options = CompileOptions(level=None, target=target, precision="bf16", fast_math=True, verify=True)
    made = stages(graph_of(partial(windows, both=both), (1, 32, 12, 14)), options)
    read = [x.buffer for s in made.steps.steps if "GroupConvolution" in s.kind for x in s.reads()]
    assert [b.dtype.value for b in read if b.shape == (1, 48, 12, 14)] == [kind]


def test_states_of_recurrences_are_rounded_for_dots() -> None:
    made = fast("recurrent")
    assert made.groups.count("dots=") == 2  # of the inputs, and of the states
    read = {x.buffer.dtype for s in made.steps.steps for x in s.reads() if x.buffer.shape[-2:] == (512, 128)}
    assert read == {DType.BF16}


@pytest.mark.parametrize(
    ("target", "precision", "fast_math", "count"),
    [
        ("x86-64-v4", "bf16", False, 1),
        (PAIRS, "second=bf16", False, 1),
        ("x86-64-v4", "f16", False, 0),
        (PAIRS, "bf16", True, 0),
        ("x86-64-v4", "f32", False, 0),
        ("x86-64-v4-amx", "bf16", False, 0),
        ("x86-64-v4,v4-amx", "bf16", False, 0),
    ],
)
def test_types_that_may_be_slower_than_f32_say_so(target: str, precision: str, fast_math: bool, count: int) -> None:
    options = CompileOptions(level=None, target=target, precision=precision, fast_math=fast_math)
    found = notes(stages(graph_of(linear, (32, 64)), options).built.manifest)
    assert sum("--fast-math" in note for note in found) == count


def test_a_library_says_so_and_has_a_level_for_it(tmp_path: Path) -> None:
    options = CompileOptions(level=None, target=f"x86-64-v2,v4,{PAIRS}", precision="bf16", fast_math=True)
    stages(graph_of(linear, (32, 64)), options).built.write_shared(tmp_path / "m.so")
    model = runtime.load(tmp_path / "m.so")
    told: Any = model.get_property("COMPILE_OPTIONS")
    assert (told["precision"], told["fast_math"]) == ("bf16", True)
    x = values((32, 64))[0]
    expected = interpret(graph_of(linear, (32, 64)), [x])[0]
    np.testing.assert_allclose(np.asarray(model(x)[0]), expected, atol=0.03 * float(np.abs(expected).max()), rtol=0)
