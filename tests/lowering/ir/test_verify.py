"""The rules for legal steps: each one is broken once, and the error names the step and the value."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import numpy as np
import pytest

from aot.codegen.ir.definition import Definition
from aot.codegen.ir.loops import Const, cast
from aot.codegen.target import Target
from aot.compilation.driver import stages
from aot.ir.build import Builder
from aot.ir.graph import OutPort
from aot.lowering.context import Context
from aot.lowering.define.define import define
from aot.lowering.define.regions import lower_region
from aot.lowering.fusion.fuse_steps import fuse_steps
from aot.lowering.ir.steps import Layouts, Step, Steps
from aot.lowering.ir.verify import verify_steps
from aot.lowering.pipeline import logical, pipeline
from aot.lowering.run import run_lowering
from aot.options import CompileOptions
from aot.runtime.abi import DType
from aot.runtime.errors import InternalError, UnsupportedError
from tests.lowering.check import compiled, weights
from tests.passes.check import graph_of

CONTEXT = Context(Target.parse("x86-64-v3"))


def steps_of(rows: int | str = 4) -> Steps:
    """The steps of two products, before any pass."""

    def make(b: Builder, x: OutPort) -> OutPort:
        return b.MatMul(b.Exp(b.MatMul(x, weights(b, 8, 8))), weights(b, 8, 8, seed=1))

    return define(stages(graph_of(make, (rows, 8)), CompileOptions(target="x86-64-v3")).optimized, lower_region)


def only(step: Step) -> Definition:
    assert step.definition is not None
    return step.definition


def change(steps: Steps, at: int, made: Callable[[Definition], Definition]) -> None:
    steps.steps[at].works = (made(only(steps.steps[at])),)


def read_before_written(s: Steps) -> None:
    s.steps.reverse()


def no_value(s: Steps) -> None:
    del s.values["Exp_3"]


def other_strides(s: Steps) -> None:
    value = s.values["Exp_3"]
    s.values["Exp_3"] = replace(value, buffer=replace(value.buffer, strides=(1, 4)))
    s.layouts = Layouts.FINAL


def early_strides(s: Steps) -> None:
    other_strides(s)
    s.layouts = Layouts.LOGICAL


def written_input(s: Steps) -> None:
    change(s, 0, lambda d: replace(d, out=s.values["x0"].buffer))


def equal_axes(s: Steps) -> None:
    change(s, 1, lambda d: replace(d, axes=(d.axes[0], d.axes[0])))


def short_index(s: Steps) -> None:
    change(s, 1, lambda d: replace(d, index=(d.axes[0],)))


def other_type(s: Steps) -> None:
    change(s, 1, lambda d: replace(d, value=cast(d.value, DType.F64)))


def free_variable(s: Steps) -> None:
    change(s, 1, lambda d: replace(d, axes=d.axes[:1], index=(d.axes[0], Const(0))))


def unwritten_output(s: Steps) -> None:
    s.steps.pop()


def wrong_data(s: Steps) -> None:
    s.values["Constant_1"] = replace(s.values["Constant_1"], data=np.zeros((8, 7), np.float32))


def other_name(s: Steps) -> None:
    s.values["z"] = s.values["x0"]


@pytest.mark.parametrize(
    ("break_it", "text"),
    [
        (read_before_written, "reads MatMul_5 before it is written"),
        (no_value, "writes Exp_3, which is no value"),
        (other_strides, "touches Exp_3 as f32[4, 8] with strides 8, 1 from 0, which is f32[4, 8] with strides 1, 4"),
        (early_strides, "Exp_3 has strides of its own before layouts are final"),
        (written_input, "writes x0, which is input"),
        (equal_axes, "has one axis twice: i, i"),
        (short_index, "indexes Exp_3 by 1 of 2 dimensions"),
        (other_type, "stores f64 in Exp_3, which holds f32"),
        (free_variable, "uses j, which nothing sets before it"),
        (unwritten_output, "output0 is an output that no step writes"),
        (wrong_data, "Constant_1 has data of shape [8, 7]"),
        (other_name, "z is listed under the name of x0"),
    ],
)
def test_broken_steps(break_it: Callable[[Steps], None], text: str) -> None:
    steps = steps_of()
    verify_steps(steps)
    break_it(steps)
    with pytest.raises(InternalError) as caught:
        verify_steps(steps)
    assert text in str(caught.value)


def test_a_symbol_that_nothing_sets() -> None:
    steps = steps_of("n=3")
    verify_steps(steps)
    steps.symbols = ()
    with pytest.raises(InternalError, match="uses n, which nothing sets before it"):
        verify_steps(steps)


def test_a_pass_that_breaks_steps_is_named() -> None:
    def lose_values(steps: Steps, _context: Context) -> None:
        no_value(steps)

    with pytest.raises(InternalError, match=r"lowering pass lose_values left broken steps: .*Exp_3"):
        run_lowering(steps_of(), [logical(lose_values)], CONTEXT, verify=True)


def test_two_passes_of_one_name_are_refused() -> None:
    twice = [logical(fuse_steps), logical(fuse_steps)]
    with pytest.raises(InternalError, match="lowering: a pass has a name of its own, got fuse_steps twice"):
        run_lowering(steps_of(), twice, CONTEXT)


def test_a_pass_at_the_wrong_place_is_refused() -> None:
    passes = pipeline(CONTEXT)
    late = [p for p in passes if p.name in ("assign_layouts", "group_rows")]
    with pytest.raises(InternalError, match="group_rows: needs logical layouts, got final ones"):
        run_lowering(steps_of(), sorted(late, key=lambda p: p.name), CONTEXT)


def test_an_error_of_the_model_keeps_its_class() -> None:
    def refuse(steps: Steps, context: Context) -> None:
        raise UnsupportedError("no")

    with pytest.raises(UnsupportedError) as caught:
        run_lowering(steps_of(), [logical(refuse)], CONTEXT)
    assert caught.value.__notes__ == ["in lowering pass refuse"]


def test_reports_count_what_changed() -> None:
    steps, seen = steps_of(), list[str]()
    passes = pipeline(CONTEXT)
    reports = run_lowering(steps, passes, CONTEXT, observe=lambda done, _: seen.append(done.name))
    assert seen == [p.name for p in passes]
    assert (reports[0].works, reports[0].new_works) == (2, 2)
    assert str(reports[1]).startswith("use_integer_dots: unchanged, 2 steps (")


@pytest.mark.parametrize("most", range(0, 17, 2))
def test_results_do_not_depend_on_how_many_passes_run(most: int) -> None:
    """A miscompile is found by halving: `--stop-after-lowering`."""

    def make(b: Builder, x: OutPort) -> OutPort:
        y = b.Softmax(b.MatMul(x, weights(b, 24, 64), transpose_b=True), axis=-1)
        return b.Relu(b.Add(b.MatMul(y, weights(b, 24, 40)), weights(b, 40)))

    made = compiled(make, (33, 64), options=CompileOptions(level=None, stop_after_lowering=most))
    ran = [r.name for r in made.lowering]
    assert "assign_layouts" in ran and len(ran) - most in (0, 1)


def test_an_empty_output_has_no_value() -> None:
    """No step touches it: `define` drops its value, and the steps are legal."""

    def make(b: Builder, x: OutPort) -> tuple[OutPort, OutPort]:
        none = b.const([0], DType.I64)
        return b.Exp(x), b.Slice(x, none, none, b.const([1], DType.I64))

    made = stages(graph_of(make, (4, 8)), CompileOptions(target="x86-64-v3", verify=True))
    assert "output1" not in made.steps.values
    assert len(made.steps.steps) == 1
